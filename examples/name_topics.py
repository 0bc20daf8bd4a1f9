"""Topics named by a language model on your own machine, through any server with the OpenAI interface.

Such servers are llama.cpp, vLLM and others. Start one, and run the example with its address:

    python examples/name_topics.py http://127.0.0.1:8080/v1

Words and parts of documents are sent to that server, and to no other.
"""

import json
import sys
import urllib.request

import topicloom as tl

QUESTION = """The most important words of a topic are: {words}.
Parts of documents about it:
{documents}
Give the topic a name of two to four words, in the language of the documents. Answer with the name alone."""


class ChatNamer:
    """A function from the words and documents of a topic to a name, which it asks a server for."""

    def __init__(self, url: str, model: str = "default", timeout: float = 60) -> None:
        self.url, self.model, self.timeout = url.rstrip("/") + "/chat/completions", model, timeout

    def __call__(self, words: list[str], documents: list[str]) -> str:
        question = QUESTION.format(words=", ".join(words), documents="\n".join(f"- {text}" for text in documents))
        body = {"model": self.model, "temperature": 0, "messages": [{"role": "user", "content": question}]}
        request = urllib.request.Request(
            self.url, json.dumps(body).encode("utf-8"), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            return json.load(response)["choices"][0]["message"]["content"]


def main(epochs: int = 60, url: str | None = None) -> list[str]:
    corpus = tl.datasets.python_docs()
    model = tl.GSM(n_topics=10, epochs=epochs, random_state=0).fit(corpus)
    topics = tl.Topics(model, corpus)
    # Without a server, a rule finds names: the words that a topic has much of, and other topics little.
    named = topics.name("words" if url is None else ChatNamer(url), n_documents=3)
    for number, name in enumerate(named.names):
        print(number, name)
    return named.names


if __name__ == "__main__":
    main(url=sys.argv[1] if len(sys.argv) > 1 else None)

"""The shortest way from texts to topics, with the documentation of your own Python as the texts.

Run the example with: python examples/quickstart.py
"""

import topicloom as tl


def main(epochs: int = 60) -> list[list[str]]:
    corpus = tl.datasets.python_docs()  # or tl.Corpus.from_file("news.txt"), or from_texts(a list of strings)
    model = tl.GSM(n_topics=10, epochs=epochs, random_state=0).fit(corpus)
    topics = model.topics(top_n=8)
    for number, words in enumerate(topics):
        print(number, *words)
    return topics


if __name__ == "__main__":
    main()

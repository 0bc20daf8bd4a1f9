"""Topics of new documents: save a model, load it, and apply it to raw text that it was not trained on.

A saved model includes its tokenizer. Run the example with: python examples/new_documents.py
"""

import tempfile
from pathlib import Path

import numpy as np

import topicloom as tl

NEW = ["Open a socket and send the request to the server.", "Round the decimal number to two digits.", ""]


def main(epochs: int = 60) -> np.ndarray:
    model = tl.GSM(n_topics=10, epochs=epochs, random_state=0).fit(tl.datasets.python_docs())
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        loaded = tl.load(Path(folder) / "model")
    theta = loaded.transform(NEW)  # (3, 10), rows sum to 1; the empty text gets the model's average shares
    topics = loaded.topics(top_n=5)
    for text, shares in zip(NEW, theta, strict=True):
        best = shares.argmax()
        print(f"{text!r}: {shares[best]:.0%} of topic {best} ({', '.join(topics[best])})")
    return theta


if __name__ == "__main__":
    main()

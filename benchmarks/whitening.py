"""What is left of planted groups of related words after the word vectors are whitened.

    python benchmarks/whitening.py [--size 300]

Each of 25 groups has a random direction, and the vector of a word is that of its group plus noise. For growing numbers
of words, a row has the mean cosine of words of one group and of different groups, and the share of the words whose
nearest word is of the same group, before and after whitening. The limit of ETM(whiten="full") comes from this table.
"""

from __future__ import annotations

import argparse

import numpy as np

from topicloom.models.etm import placed_vectors

N_GROUPS = 25
NOISE = 0.73  # relative to the groups; words of one group then have a cosine of about .64
WORDS_PER_DIMENSION = (0.5, 1.0, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 17.0)


def figures(vectors: np.ndarray, group: np.ndarray) -> tuple[float, float, float]:
    """Return the two mean cosines, and the share of the words whose nearest word is of their group."""
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine, same, other = rows @ rows.T, group[:, None] == group, ~np.eye(len(group), dtype=bool)
    nearest = np.where(other, cosine, -1).argmax(1)
    return cosine[same & other].mean(), cosine[~same].mean(), (group[nearest] == group).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=300, help="dimensions of the vectors")
    size = parser.parse_args().size
    print("| words | words per dimension | within, between, nearest before | within, between, nearest after |")
    print("| --- | --- | --- | --- |")
    for ratio in WORDS_PER_DIMENSION:
        n_words, found = int(ratio * size), []
        for seed in range(2):
            random = np.random.default_rng(seed)
            group = random.integers(N_GROUPS, size=n_words)
            vectors = random.normal(size=(N_GROUPS, size))[group] + NOISE * random.normal(size=(n_words, size))
            before, after = (placed_vectors(vectors.astype(np.float32), kind) for kind in ("length", "full"))
            found.append([figures(before, group), figures(after, group)])
        columns = [", ".join(f"{value:.2f}" for value in row) for row in np.mean(found, axis=0)]
        print(f"| {n_words:,} | {ratio} | {columns[0]} | {columns[1]} |")


if __name__ == "__main__":
    main()

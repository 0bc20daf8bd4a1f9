"""One case of a target: its random numbers, a folder of its own, and mutated texts and bytes.

A case depends on the name of its target, the seed and its number alone, so that these three repeat it.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from hostile import BYTES, MARKS, PLAIN_WORDS

SEEDS = Path(__file__).parent / "seeds"
T = TypeVar("T")


class Case:
    """The randomness and the folder of one case.

    Args:
        target: the name of the target.
        seed: the seed of the campaign.
        number: the number of the case.
        folder: an existing folder that the target may fill.
    """

    def __init__(self, target: str, seed: int, number: int, folder: Path) -> None:
        self.random = random.Random(zlib.crc32(target.encode()) << 96 | seed << 64 | number)
        self.folder = folder

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def below(self, stop: int) -> int:
        """A whole number from 0, below `stop`. Unlike randrange, it is fast."""
        return int(self.random.random() * stop)

    def pick(self, values: Sequence[T]) -> T:
        return values[int(self.random.random() * len(values))]

    def some(self, make: Callable[[], T], most: int, least: int = 0) -> list[T]:
        return [make() for _ in range(least + self.below(most - least + 1))]

    def character(self) -> str:
        """Any character but a surrogate, most often one of the first planes' scripts."""
        code = int(self.random.random() ** 3 * 0x10FFFF)
        return chr(code) if not 0xD800 <= code <= 0xDFFF else "\ufffd"

    def text(self, also: Sequence[str] = (), most: int = 12) -> str:
        """A short text of words and hostile pieces, without line breaks unless `also` has them."""
        random = self.random
        pool = MARKS if random.random() < 0.6 else PLAIN_WORDS
        pieces = random.choices(pool, k=int(random.random() * most))
        if also and random.random() < 0.4:
            pieces.insert(int(random.random() * (len(pieces) + 1)), self.pick(also))
        if random.random() < 0.4:
            pieces.append(self.character())
        if random.random() < 0.5:
            pieces.extend(random.choices(PLAIN_WORDS, k=2))
            random.shuffle(pieces)
        text = ("", " ")[random.random() < 0.5].join(pieces)
        if text and random.random() < 0.1:
            place = int(random.random() * len(text))
            text = text[place:] + text[:place] if random.random() < 0.5 else text + text[:place] * 3
        return text

    def mutated(self, data: bytes) -> bytes:
        """Bytes with one to four changes: flipped, inserted, removed, repeated, overwritten or cut short."""
        changed = bytearray(data)
        for _ in range(1 + self.below(4)):
            place, how = self.below(len(changed) + 1), self.below(7)
            length = 1 + int(self.random.random() ** 3 * len(changed))
            if how == 0 and place < len(changed):
                changed[place] ^= 1 << self.below(8)
            elif how == 1:
                changed[place:place] = self.pick(BYTES)
            elif how == 2:
                del changed[place : place + length]
            elif how == 3 and len(changed) < 1 << 16:
                changed[place:place] = changed[place : place + length]
            elif how == 4:
                piece = self.pick(BYTES)
                changed[place : place + len(piece)] = piece
            elif how == 5:
                del changed[place:]
            elif place < len(changed):
                changed[place] = self.below(256)
        return bytes(changed)

    def seed_bytes(self, ending: str) -> bytes:
        """One of the kept files with this ending."""
        return self.pick(kept(ending))

    def damage_one_of(self, folder: Path) -> None:
        """Remove, replace or change one file of a folder."""
        path = self.pick(sorted(folder.iterdir()))
        how = self.below(8)
        if how == 0:
            path.unlink()
        elif how == 1:
            path.write_bytes(self.pick(sorted(folder.iterdir())).read_bytes())
        else:
            path.write_bytes(self.mutated(path.read_bytes()))

    def write(self, name: str, data: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(data)
        return path


@cache
def kept(ending: str) -> list[bytes]:
    files = sorted(SEEDS.glob(f"*{ending}"))
    assert files, f"no file in {SEEDS} ends in {ending}"
    return [file.read_bytes() for file in files]


def same(found: Iterable[object], expected: Iterable[object], what: object = "") -> None:
    """Fail unless two sequences are equal, and name the first difference."""
    found, expected = list(found), list(expected)
    for place, (one, other) in enumerate(zip(found, expected, strict=False)):
        assert one == other, f"{what} {place}: {one!r:.200} instead of {other!r:.200}"
    assert len(found) == len(expected), f"{what}: {len(found)} instead of {len(expected)}"

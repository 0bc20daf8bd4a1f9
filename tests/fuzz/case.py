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

SEEDS = Path(__file__).parent / "seeds"
T = TypeVar("T")

WORDS = [
    "the", "cat", "dog", "and", "stocks", "market", "don't", "l'homme", "über", "naïve", "привет", "мир", "γειά",
    "co-operate", "rock'n'roll", "北京", "天气", "很好", "我们", "東京", "です", "ありがとう", "안녕하세요", "ภาษาไทย",
    "กรุงเทพ", "ກະລຸນາ", "မြန်မာ", "ភាសាខ្មែរ", "हिन्दी", "தமிழ்", "שלום", "مرحبا", "3.14", "2024", "x_y", "a1", "I",
]  # fmt: skip
MARKS = [
    "\0", "\x01", "\x1a", "\x1b[31m", "\x7f", "\x85", "\xa0", "\xad", "\u200b", "\u200d", "\u2028", "\u2029",
    "\u202e",
    "\ufeff", "\ufffd", "\uffff", "\U0010ffff", "\u0301", "\u0e33", "\u0e4d\u0e32", "\u20e3", "İ", "ß", "ﬁ",
    "ﷺ", "ŉ", "ǰ",
    "Ⅷ", "①", "🙂", "👩\u200d👩\u200d👧", "🇨🇳", "𠮷", "𝔘", "々", "ー", "ｶﾞ", "가", "ㄱ", "’", "ʼ", "'", "-",
    "–", ".", "_",
    "'s", "--", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\t", " ", "   ", "e\u0301" * 3, "a" * 40,
    "中" * 30, "@",
    "<b>", "</b>", "<", ">", "<!--", "-->", "<script>", "</script >", "<style a>", "<a href='x'>", "<![CDATA[",
    "<?xml",
    "<o:p>", "&amp;", "&amp;nbsp;", "&#0;", "&#x110000;", "&#xD800;", "&#9999999;", "&notit;", "&", "&lt;b&gt;",
    "http://a.b/c",
    "www.x", "ftp://", "a@b.co", "a.b+c@d-e.fg.h", "@@", "%s", "{0}", "\\", "\\n", "\\ud800", "null", "NaN",
    "-1", "1e309",
    "=cmd()", "../..", "[", "]", "{", "}", ":", "#", "*", "!", "|", "`", "~",
]  # fmt: skip
SEPARATORS = [",", ";", "\t", "|", '"', '""', "'", " ", "\n", "\r", "\r\n", "\n\n"]
SURROGATES = ["\ud800", "\udfff", "\udc80", "\ud83d\ude00", "\ude00\ud83d"]
HOSTILE_BYTES = [
    b"\0", b"\xff", b"\xfe", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xc0\x80", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x80", b"\xe4\xb8", b"\n", b"\r", b"\r\n", b"\x1a", b'"', b'""', b",", b"\t", b"{", b"[", b"\\u",
    b"\x00\x00\x00\x80",
    b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"9" * 20, b"-1", b"nan", b"1e999", b"\xe2\x80\xa8", b" " * 9,
    b"\x1f\x8b",
]  # fmt: skip


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
        pool = MARKS if random.random() < 0.6 else WORDS
        pieces = random.choices(pool, k=int(random.random() * most))
        if also and random.random() < 0.4:
            pieces.insert(int(random.random() * (len(pieces) + 1)), self.pick(also))
        if random.random() < 0.4:
            pieces.append(self.character())
        if random.random() < 0.5:
            pieces.extend(random.choices(WORDS, k=2))
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
                changed[place:place] = self.pick(HOSTILE_BYTES)
            elif how == 2:
                del changed[place : place + length]
            elif how == 3 and len(changed) < 1 << 16:
                changed[place:place] = changed[place : place + length]
            elif how == 4:
                piece = self.pick(HOSTILE_BYTES)
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

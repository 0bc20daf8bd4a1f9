"""Chinese names with a verb of speech, such as 贾政道 ("Jia Zheng said"), which segmenters take for one word."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

VERBS = "道笑问叹说听骂哭"
MOST_CHARACTERS = 3_000_000  # of the texts in which names are looked for

_FEWEST_SPEECHES = 20  # of a text that tells a story
_SPEECH = re.compile(r"(?<![报知])道[：:]")
_FEWEST = 5  # occurrences of a name
_OF_ANY_NAME = "道笑问叹"  # the other verbs are parts of many words, such as 不用说
_TIMES = 3  # how many times as often a name occurs alone, if it has a single verb
_FEWEST_NAMES = 10  # with two verbs, so that those with a single one are names, too, and not places such as 北海道
_NO_NAME = ("不", "没", "别", "这")


def has_speeches(texts: Iterable[str]) -> bool:
    """Return whether Chinese texts tell a story, whose speeches begin with 道：, so that there may be such names."""
    n_speeches = 0
    for text in texts:
        n_speeches += len(_SPEECH.findall(text)) if "道" in text else 0
        if n_speeches >= _FEWEST_SPEECHES:
            return True
    return False


def find_speakers(counts: Mapping[str, int]) -> list[str]:
    """Return the words that are a name and a verb of speech.

    Their first part is a frequent word, too. It occurs with two verbs or, if many do, much more often than with its
    only verb: 北海道 and 随身听 are words of their own.

    Args:
        counts: how often each word occurs.

    Examples:
        >>> from topicloom.text.speakers import find_speakers
        >>> find_speakers({"贾政": 9, "贾政道": 5, "贾政笑": 2, "北海": 9, "北海道": 3, "知道": 7})
        ['贾政笑', '贾政道']
    """
    verbs_of: defaultdict[str, list[str]] = defaultdict(list)
    for word in counts:
        if len(word) > 2 and word[-1] in VERBS and not word.startswith(_NO_NAME) and len(set(word[:-1])) > 1:
            verbs_of[word[:-1]].append(word[-1])

    def is_name(name: str) -> bool:
        return counts.get(name, 0) >= max(_FEWEST, *(counts[name + verb] for verb in verbs_of[name]))

    several = {name for name, verbs in verbs_of.items() if len(verbs) > 1 and is_name(name)}
    single = {
        name
        for name, verbs in verbs_of.items()
        if len(verbs) == 1
        and verbs[0] in _OF_ANY_NAME
        and counts.get(name, 0) >= max(_FEWEST, _TIMES * counts[name + verbs[0]])
    }
    names = several | single if len(several) >= _FEWEST_NAMES else several
    return sorted(name + verb for name in names for verb in verbs_of[name])

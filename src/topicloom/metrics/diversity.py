"""How different topics are from one another, by their top words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np


def topic_diversity(topics: Sequence[Sequence[Hashable]], top_n: int = 25) -> float:
    """Different words among the top words of all topics, as a share: 1 when no two topics share a word.

    Args:
        topics: each topic's words (or word ids), best first.

    Source: Dieng, Ruiz & Blei 2020, section 5.
    """
    words = [word for topic in topics for word in topic[:top_n]]
    return len(set(words)) / len(words) if words else 0.0


def topic_uniqueness(topics: Sequence[Sequence[Hashable]], top_n: int = 10) -> float:
    """Mean over topics and their words of 1 / the number of topics that have the word among their top words.

    Source: Nan, Ding, Nallapati & Xiang 2019, section 4.1.
    """
    counts = Counter(word for topic in topics for word in topic[:top_n])
    shares = [np.mean([1 / counts[word] for word in topic[:top_n]]) for topic in topics if topic]
    return float(np.mean(shares)) if shares else 0.0

"""How diverse sessions are, by their topics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

_FREQUENT = 0.02


class TopicDiversity(NamedTuple):
    """What many sessions are about (APOLLO, appendix A.2).

    Attributes:
        sessions: How many there are.
        topics: K, the topics among them.
        entropy: H / log K: 1 if all topics are as frequent, 0 if there is only one.
        frequent: Topics that have more than 2 % of the sessions.
    """

    sessions: int
    topics: int
    entropy: float
    frequent: int


def topic_diversity(topics: Iterable[str]) -> TopicDiversity:
    """The diversity of sessions, from the topic of each."""
    counts = Counter(topics)
    total = counts.total()
    shares = [count / total for count in counts.values()]
    spread = -sum(share * math.log(share) for share in shares)
    return TopicDiversity(
        total,
        len(counts),
        spread / math.log(len(counts)) if len(counts) > 1 else 0.0,
        sum(share > _FREQUENT for share in shares),
    )

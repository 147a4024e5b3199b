"""The variety of openings: which nearly repeat an earlier one of the same task, and how varied they are."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from .outcome import USER, Outcome
from .reporting.diversity import MOST_COMPARED, varied
from .reporting.table import Table

MOST_EARLIER = 500
"""The most earlier openings of the same task with which an opening is compared: the last ones."""

_SIZES = (10, 30, 100, 300, 1000, 3000)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Opening:
    """The user's first message of a finished conversation.

    Attributes:
        position: The scenario's position in the plan.
        task: The task, as a text.
        text: The message.
        times: How often the conversation was drawn again.
    """

    position: int
    task: str
    text: str
    times: int


def opening_of(outcome: Outcome) -> str:
    """Return the user's first message; empty if there is none."""
    return next((line.content for line in outcome.messages if line.role == USER), "")


def repeated(openings: Iterable[Opening], redraws: int, similarity: float) -> list[int]:
    """Return the positions of the openings that nearly repeat an earlier one of the same task.

    Two openings are nearly the same if the Jaccard index of their pairs of adjacent words is at least `similarity`.

    Args:
        openings: In the order of the plan.
        redraws: Conversations that were drawn again so often are left as they are.
        similarity: The least index, above 0 and at most 1.
    """
    earlier: dict[str, deque[frozenset[tuple[str, str]]]] = defaultdict(lambda: deque(maxlen=MOST_EARLIER))
    found: list[int] = []
    for opening in openings:
        pairs = frozenset(pairwise(["", *_WORD.findall(opening.text.lower()), ""]))
        known = earlier[opening.task]
        if opening.times < redraws and any(len(pairs & other) >= similarity * len(pairs | other) for other in known):
            found.append(opening.position)
        else:
            known.append(pairs)
    return found


def variety_table(openings: list[str]) -> Table:
    """Return how varied the first n openings are, for growing n.

    Args:
        openings: The users' first messages, in the order of the plan.
    """
    columns = ["n", "distinct openings", "Dist-1", "Dist-2", "Self-BLEU"]
    table = Table("variety", "Variety of openings", columns, decimals=dict.fromkeys(columns[2:], 3))
    for size in [*(size for size in _SIZES if size < len(openings)), len(openings)]:
        first = openings[:size]
        figures = varied(first)
        distinct = len({" ".join(_WORD.findall(text.lower())) for text in first})
        table.rows.append([size, distinct, figures.dist_1, figures.dist_2, figures.self_bleu])
    table.notes.append(
        "Of the users' first messages, in the order of the plan. Dist-n: distinct n-grams of all, which falls with n; "
        f"Self-BLEU: how similar an opening is to the others (of at most {MOST_COMPARED:,})."
    )
    return table

"""How much of what is sent a provider has read before: prompts begin with what does not change.

Counted on the rendered requests of whole runs, in the order in which they were sent. What a provider's prompt cache
can give back is what a request has in common, from its first letter on, with some earlier one of the same model; four
letters are taken for a token, as everywhere.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dialoom.runs.store.connections import open_for_reading
from tests.conftest import REAL, Command, needs_real_data


@dataclass
class Sent:
    """What one model was sent.

    Attributes:
        tokens: Of all requests.
        read_before: Those of them with which an earlier request began.
        texts: The requests, in the order of their text.
    """

    tokens: float = 0
    read_before: float = 0
    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """The next request."""
        place = bisect_left(self.texts, text)
        # Of all texts in order, a neighbour is the one with the longest common beginning.
        neighbours = self.texts[max(place - 1, 0) : place + 1]
        common = max((len(os.path.commonprefix([text, near])) for near in neighbours), default=0)  # noqa: RUF071
        self.texts.insert(place, text)
        self.tokens += len(text) / 4
        self.read_before += common / 4

    @property
    def share(self) -> float:
        """Of the tokens that were read before."""
        return self.read_before / self.tokens


def sent_by_role(run: Path) -> dict[str, Sent]:
    """Each role played by a model of its own."""
    sent: dict[str, Sent] = defaultdict(Sent)
    for role, text in _requests(run):
        sent[role].add(text)
    return sent


def share_of(run: Path) -> float:
    """Over all roles, each played by a model of its own, which is the worse case."""
    sent = sent_by_role(run).values()
    return sum(each.read_before for each in sent) / sum(each.tokens for each in sent)


def _requests(run: Path) -> Iterator[tuple[str, str]]:
    """Role and text of every request."""
    connection = open_for_reading(run)
    try:
        texts = dict(connection.execute("SELECT id, content FROM texts").fetchall())
        for role, messages in connection.execute("SELECT role, messages FROM calls ORDER BY id"):
            yield role, "".join(f"<{who}>{texts[id_]}" for who, id_ in json.loads(messages))
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("recipe", "options", "least"),
    [
        ("personalens", ["--limit", 8], 0.6),
        ("personalens", ["--limit", 8, "--setting", "all"], 0.6),
        ("aloe", ["--limit", 2], 0.6),
        # The judge of personalization is shown the person after the conversation, so with a score for each turn, where
        # the conversation is a longer one each time, the person is read anew each time.
        ("personalens", ["--limit", 8, "--turn-scores"], 0.5),
    ],
)
def test_most_of_what_is_sent_was_read_before(
    dialoom: Command, tmp_path: Path, recipe: str, options: list[object], least: float
) -> None:
    """At least three of five tokens, with all judges."""
    dialoom("run", recipe, *options, "--concurrency", 4, "-o", "r.db")
    assert share_of(tmp_path / "r.db") >= least


@needs_real_data
def test_most_of_what_is_sent_was_read_before_with_real_people(dialoom: Command, tmp_path: Path) -> None:
    """The release's summaries are long, and each judge of personalization reads them once."""
    dialoom("run", "personalens", "--profiles", REAL, "--limit", 10, "--concurrency", 4, "-o", "r.db")
    assert share_of(tmp_path / "r.db") >= 0.6


def test_a_conversation_is_read_on_from_where_it_was(dialoom: Command, tmp_path: Path) -> None:
    """The longer it grows, the less of it is new: user and assistant find four of five tokens read."""
    dialoom("run", "personalens", "--limit", 8, "--concurrency", 4, "-o", "r.db")
    sent = sent_by_role(tmp_path / "r.db")
    assert sent["user"].share >= 0.75
    assert sent["assistant"].share >= 0.75

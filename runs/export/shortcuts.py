"""Shortcuts in preference datasets: the separation of chosen and rejected replies by length, punctuation and words."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from typing import Any

from dialoom.graphs import Table
from dialoom.graphs.reporting.statistics import FEWEST

MOST_PEOPLE, MOST_PROMPTS = 300, 20
"""Maximum number of people in a sample, and of prompts of each."""

_PERSON = ("persona", "person", "user")

Replies = dict[bool, str]
"""The chosen (`True`) and the rejected reply to one prompt; either may be missing."""


class PairSample:
    """A sample of chosen and rejected replies: of more people or prompts than fit, those with the lowest hashes.

    Of several pairs for one prompt the first is taken.

    Attributes:
        is_partial: Whether there were more people or prompts than fit.
    """

    def __init__(self) -> None:
        self._people: dict[str, dict[str, Replies]] = {}
        self.is_partial = False

    def add(self, row: object, person: str | None = None) -> None:
        """Add a row if it has chosen or rejected replies.

        Args:
            row: An object with `chosen` and `rejected`, or with `completion` and `label`, as in TRL.
            person: The person that it is for. By default the row's `persona`, `person` or `user`, or else its `id`;
                rows without any of them are for the same person if their conversations begin with the same message.
        """
        if not isinstance(row, Mapping) or (found := _replies(row)) is None:
            return
        prompt, replies = found
        prompts = self._place(self._people, _person(row, prompt) if person is None else person, MOST_PEOPLE)
        known = None if prompts is None else self._place(prompts, prompt, MOST_PROMPTS)
        if known is not None:
            known.update({label: text for label, text in replies.items() if label not in known})

    def people(self) -> list[list[Replies]]:
        """Return the replies for each person; people are ordered by their prompts' lowest hash."""
        return [
            [prompts[key] for key in sorted(prompts)]
            for prompts in sorted(self._people.values(), key=lambda prompts: min(prompts))
        ]

    def _place(self, places: dict[str, Any], key: object, most: int) -> Any:
        """Return the entry of a key, created if its hash is among the lowest; `None` if it is not."""
        hash_ = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()
        if hash_ not in places:
            if len(places) == most:
                self.is_partial = True
                if hash_ > (highest := max(places)):
                    return None
                del places[highest]
            places[hash_] = {}
        return places[hash_]


def _replies(row: Mapping[str, Any]) -> tuple[list[Any], Replies] | None:
    """Return a row's prompt and replies; `None` if it has no such replies."""
    chosen, rejected, completion = (row.get(key) for key in ("chosen", "rejected", "completion"))
    if isinstance(chosen, str | list) and isinstance(rejected, str | list):
        shared = 0  # messages of the prompt, where both are whole conversations
        if isinstance(chosen, list) and isinstance(rejected, list):
            both = zip(chosen[:-1], rejected[:-1], strict=False)
            shared = sum(1 for _ in itertools.takewhile(lambda each: each[0] == each[1], both))
        return [row.get("prompt"), *chosen[:shared]], {True: _text(chosen[shared:]), False: _text(rejected[shared:])}
    if isinstance(completion, str | list) and isinstance(row.get("label"), bool):
        return [row.get("prompt")], {row["label"]: _text(completion)}
    return None


def _text(reply: str | list[Any]) -> str:
    """Return the text of a reply: a text, or messages."""
    if isinstance(reply, str):
        return reply
    return "\n".join(str(each.get("content") or "") for each in reply if isinstance(each, Mapping))


def _person(row: Mapping[str, Any], prompt: list[Any]) -> object:
    """Return the person that a row is for, as far as it is known."""
    for place in (row.get("facets"), row):
        if isinstance(place, Mapping):
            for name in _PERSON:
                if isinstance(place.get(name), str):
                    return place[name]
    if "id" in row:
        return row["id"]
    first = next((each for each in prompt if each), None)
    return first[0] if isinstance(first, list) else first


WARN_ABOVE = 0.65
"""AUC above which there is a warning."""

FEWEST_FOR_WORDS = 20
"""With fewer people, the classifier of words is not estimated."""


def shortcut_table(sample: PairSample) -> Table | None:
    """Return how well length, punctuation and words separate the replies of a sample; `None` if it has none."""
    people = sample.people()
    if not people:
        return None
    from . import separation as by  # deferred: imports numpy, which is slow and only needed for preference datasets

    table = Table("shortcuts", "What separates chosen from rejected replies", ["by", "AUC", "same prompt"])
    warned = []
    for name, features, fewest in (
        ("length", by.lengths, FEWEST),
        ("punctuation", by.punctuation, FEWEST),
        ("words", by.words, FEWEST_FOR_WORDS),
    ):
        found = by.separation(people, features) if len(people) >= fewest else (None, None)
        table.rows.append([name, *found])
        if any(each is not None and each.mean > WARN_ABOVE for each in found):
            warned.append(name)
    if warned:
        table.notes.append(
            f"Warning: chosen and rejected replies can be told apart without the person, by {', '.join(warned)} "
            f"(above {WARN_ABOVE}). A model trained on these pairs can learn that instead of a person's preferences."
        )
    if len(people) < FEWEST_FOR_WORDS:
        table.notes.append(
            f"The classifier of words cannot be estimated with {len(people)} people; it needs {FEWEST_FOR_WORDS}, "
            f"and length and punctuation {FEWEST}."
        )
    table.notes.append(
        "AUC: the probability that a chosen reply scores higher than a rejected one; 0.5 if nothing separates them. "
        "Same prompt: the share of prompts whose chosen reply scores higher. The score is a regularised linear "
        f"discriminant of the reply alone, without prompt or person, cross-validated by person in {by.FOLDS} folds: no "
        "person is in both train and test. Length: numbers of characters and words. Punctuation: shares of kinds of "
        f"marks, emoji and line breaks among all characters. Words: which of the {by.MOST_WORDS} commonest occur. "
        "In brackets: 95 % intervals, clustered by person; n: replies, and prompts."
    )
    if sample.is_partial:
        table.notes.append(
            f"At most {MOST_PEOPLE} people and {MOST_PROMPTS} prompts of each are compared, chosen by hash."
        )
    return table

"""ALOE formats: the release's own shape, TRL's conversational training sets, and the whole tree.

A training example stands for one round of a tree, and each round is there once, however many paths lead on from it. Its
history is the conversation as it was really held: the replies that were followed, preferred or not.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator

from dialoom.graphs.outcome import Episode
from dialoom.graphs.recipe import Exporter, ExportOptions
from dialoom.prompts import ChatMessage

from .tree import Round, Tree

KTO_DISTANCE = 64
"""How many examples of wanted replies come before the unwanted one of the first of them."""

_PAIR_ROLES = ("preferred", "rejected")
_NOTHING = "None"  # the release's word for an induction that found nothing


class PairOptions(ExportOptions):
    """Which pairs a training set takes."""

    round_range: str | None = Field(None, description="Only these rounds, counted from 1: a range as 3-10, or one.")
    verified_only: bool = Field(False, description="Only pairs that a judge verified, in a run that had them verified.")

    @field_validator("round_range")
    @classmethod
    def _check_range(cls, text: str | None) -> str | None:
        if text is not None:
            first, last = _bounds(text)
            if not 1 <= first <= last:
                raise ValueError(f"{text!r} is no range of rounds; they are counted from 1, as in 3-10")
        return text

    def take(self, each: Round) -> bool:
        """Whether a round is wanted."""
        if self.verified_only and each.verified is not True:
            return False
        if self.round_range is None:
            return True
        first, last = _bounds(self.round_range)
        return first <= each.number <= last


def _bounds(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", text, re.ASCII)
    if match is None:
        raise ValueError(f"{text!r} is no range of rounds, such as 3-10")
    return int(match[1]), int(match[2] or match[1])


def sft(tree: Tree, each: Round) -> Iterator[dict[str, Any]]:
    """The preferred reply to be learnt, apart from the prompt, so that nothing else is."""
    yield {"prompt": _prompt(tree, each), "completion": _said(each.preferred)}


def preference(tree: Tree, each: Round) -> Iterator[dict[str, Any]]:
    """The pair under its prompt: for DPO, and for a reward model."""
    yield {"prompt": _prompt(tree, each), "chosen": _said(each.preferred), "rejected": _said(each.rejected)}


def kto(tree: Tree, each: Round) -> Iterator[dict[str, Any]]:
    """Both replies, each with its label; `apart` then parts them."""
    prompt = _prompt(tree, each)
    yield {"prompt": prompt, "completion": _said(each.preferred), "label": True}
    yield {"prompt": prompt, "completion": _said(each.rejected), "label": False}


def apart(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Wanted replies as they come, each unwanted one some way behind.

    KTO sets the replies of a batch against the prompts beside them, so rows of one prompt must not be neighbours.
    """
    waiting: deque[dict[str, Any]] = deque()
    for row in rows:
        if not row["label"]:
            waiting.append(row)
            continue
        yield row
        if len(waiting) >= KTO_DISTANCE:
            yield waiting.popleft()
    yield from waiting


def release_lines(episode: Episode, *_: Any) -> Iterator[dict[str, Any]]:
    """A line per whole conversation: a tree that forks gives one for each of its leaves."""
    for tree in _trees(episode):
        for leaf in tree.leaves():
            yield {
                "profile": tree.persona.profile,
                "personality": tree.persona.personality,
                "conversations": [_turn(each, step) for each, step in zip(tree.along(leaf), leaf, strict=True)],
            }


def tree_lines(episode: Episode, *_: Any) -> Iterator[dict[str, Any]]:
    """The tree as the run keeps it."""
    for tree in _trees(episode):
        yield {"id": episode.id, **tree.model_dump(mode="json")}


def _pairs(rows: Callable[[Tree, Round], Iterator[dict[str, Any]]]) -> Callable[..., Iterator[dict[str, Any]]]:
    """The items of a format that is made round by round."""

    def items(episode: Episode, *_: Any, options: PairOptions) -> Iterator[dict[str, Any]]:
        for tree in _trees(episode):
            for each in filter(options.take, tree.rounds):
                yield from rows(tree, each)

    return items


def _trees(episode: Episode) -> Iterator[Tree]:
    """A finished scenario's tree; none if it failed."""
    if episode.state == "done":
        yield Tree.model_validate(episode.outcome.details)


def _prompt(tree: Tree, each: Round) -> list[ChatMessage]:
    return [*tree.history(each.path), {"role": "user", "content": each.user}]


def _said(reply: str) -> list[ChatMessage]:
    return [{"role": "assistant", "content": reply}]


def _turn(each: Round, step: str) -> dict[str, Any]:
    return {
        "user": each.user,
        # Texts, as the release's trainers put either of them into the history; docs/training-sets.md has the patch for
        # its dpo.py, which draws one item of `rejected`.
        "assistant": {"preferred": each.preferred, "rejected": each.rejected},
        "chosen": "preferred" if step == "p" else "rejected",
        "inferred_profile": each.inferred_profile or _NOTHING,
        "inferred_personality": each.inferred_personality or _NOTHING,
    }


EXPORTERS: Mapping[str, Exporter] = {
    "aloe": Exporter(
        "the ALOE release's shape: a row per conversation, from the first round to a leaf; its dpo.py needs a patch of "
        "one line (docs/training-sets.md), TRL takes dpo and sft as they are",
        "lines",
        release_lines,
    ),
    "sft": Exporter(
        "TRL prompt-completion: the preferred reply after the conversation held", "lines", _pairs(sft), PairOptions
    ),
    "dpo": Exporter(
        "TRL preference: prompt, chosen, rejected", "lines", _pairs(preference), PairOptions, pair_roles=_PAIR_ROLES
    ),
    "kto": Exporter(
        "TRL unpaired preference: prompt, completion, label",
        "lines",
        _pairs(kto),
        PairOptions,
        apart,
        pair_roles=_PAIR_ROLES,
    ),
    "reward": Exporter(
        "TRL preference, for a reward model: prompt, chosen, rejected",
        "lines",
        _pairs(preference),
        PairOptions,
        pair_roles=_PAIR_ROLES,
    ),
    "tree": Exporter("a row per persona with its whole tree", "lines", tree_lines),
}

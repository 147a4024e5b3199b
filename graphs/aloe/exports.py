"""ALOE formats: the release's own shape, TRL's conversational training sets, and the whole tree.

A training example corresponds to one round of a tree, and each round occurs once, however many paths continue from it.
Its history is the actual conversation: the replies that were followed, preferred or not.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator

from dialoom.graphs.capabilities import Exporter, ExportOptions
from dialoom.graphs.outcome import Episode
from dialoom.prompts import ChatMessage

from .tree import REPLIES, Round, conversation, leaves, rounds_of

KTO_DISTANCE = 64
"""The number of other wanted replies between a round's wanted and unwanted reply."""

_PAIR_ROLES = ("preferred", "rejected")
_NOTHING = "None"  # the release's word for an induction without result


Rows = Iterator[dict[str, Any]]
Prompt = list[ChatMessage]


class PairOptions(ExportOptions):
    """A selection of the pairs of a training set."""

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
        """Return whether the options select a round."""
        first, last = (1, len(each["path"]) + 1) if self.round_range is None else _bounds(self.round_range)
        return first <= len(each["path"]) + 1 <= last and (each["verified"] is True or not self.verified_only)


def _bounds(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", text, re.ASCII)
    if match is None:
        raise ValueError(f"{text!r} is no range of rounds, such as 3-10")
    return int(match[1]), int(match[2] or match[1])


def sft(prompt: Prompt, each: Round) -> Rows:
    """Yield the preferred reply as completion, separate from the prompt, so that only the reply is trained on."""
    yield {"prompt": prompt, "completion": _said(each["preferred"])}


def preference(prompt: Prompt, each: Round) -> Rows:
    """Yield the pair with its prompt, for DPO and for reward models."""
    yield {"prompt": prompt, "chosen": _said(each["preferred"]), "rejected": _said(each["rejected"])}


def kto(prompt: Prompt, each: Round) -> Rows:
    """Yield both replies with their labels; `apart` separates them later."""
    yield {"prompt": prompt, "completion": _said(each["preferred"]), "label": True}
    yield {"prompt": prompt, "completion": _said(each["rejected"]), "label": False}


def apart(rows: Rows) -> Rows:
    """Yield wanted replies immediately and each unwanted one at a distance.

    KTO compares a batch's replies with the prompts next to them, so rows with the same prompt must not be adjacent.
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


def release_lines(episode: Episode, *_: Any) -> Rows:
    """Yield a row for each whole conversation: one per leaf of the tree."""
    rounds, persona = _finished(episode), episode.outcome.details.get("persona", {})
    by_path = {each["path"]: each for each in rounds}
    for leaf in leaves(rounds):
        yield {
            "profile": persona["profile"],
            "personality": persona["personality"],
            "conversations": [_turn(by_path[leaf[:depth]], step) for depth, step in enumerate(leaf)],
        }


def tree_lines(episode: Episode, *_: Any) -> Rows:
    """Yield the tree as the run keeps it."""
    if rounds := _finished(episode):
        yield {"id": episode.id, "persona": episode.outcome.details["persona"], "rounds": rounds}


def _pairs(rows: Callable[[Prompt, Round], Rows]) -> Callable[..., Rows]:
    """Return an exporter's function that makes rows round by round."""

    def items(episode: Episode, *_: Any, options: PairOptions) -> Rows:
        rounds = _finished(episode)
        for each in filter(options.take, rounds):
            said = conversation(rounds, each["path"])
            prompt: Prompt = [{"role": line["speaker"], "content": line["content"]} for line in said]
            yield from rows([*prompt, {"role": "user", "content": each["user"]}], each)

    return items


def _finished(episode: Episode) -> list[Round]:
    """Return the rounds of a finished tree; none if it failed."""
    return rounds_of(episode.outcome) if episode.state == "done" else []


def _said(reply: str) -> Prompt:
    return [{"role": "assistant", "content": reply}]


def _turn(each: Round, step: str) -> dict[str, Any]:
    return {
        "user": each["user"],
        # Text instead of a list: the release's trainers put the replies into the history. Its dpo.py draws one item of
        # `rejected`; docs/training-sets.md has the patch.
        "assistant": {name: each[name] for name in REPLIES.values()},
        "chosen": REPLIES[step],
        "inferred_profile": each["inferred_profile"] or _NOTHING,
        "inferred_personality": each["inferred_personality"] or _NOTHING,
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

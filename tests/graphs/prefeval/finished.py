"""Finished PrefEval items as reports and exports read them, without a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dialoom import Episode, Judgement, Outcome
from dialoom.graphs.prefeval.results import ASSISTANT, CHECKERS

RIGHT = (False, True, False, True)
UNAWARE = (True, False, None, True)
Verdicts = Sequence[bool | None]


def verdicts(words: Verdicts) -> tuple[Judgement, ...]:
    """Return the four checkers' judgements in order; `hallucinates` is left out if nothing was acknowledged."""
    return tuple(
        Judgement(metric=metric, target=ASSISTANT, score=word, explanation=f"because of {metric}")
        for metric, word in zip(CHECKERS, words, strict=True)
        if metric != "hallucinates" or words[1] is not False
    )


def item(
    words: Verdicts | None = RIGHT,
    *,
    failed: str | None = None,
    details: Mapping[str, Any] | None = None,
    **facets: Any,
) -> Episode:
    """Return an item with these verdicts, details and facets; `failed` names the fault of one without an answer."""
    known: dict[str, Any] = {
        "topic": "travel_hotel",
        "index": 0,
        "form": "explicit",
        "task": "generation",
        "method": "zero-shot",
        "turns": 8,
        "tokens": 3000,
        "token_limit": 0,
        "position": 0.0,
        "preferences": 1,
        "arm": "",
        "retrieved": 0,
    }
    if failed is not None:
        return Episode("id", known | facets, "failed", Outcome(messages=(), ended_by="error"), at_fault=failed)
    judgements = verdicts(words) if words is not None else ()
    about = {"answer": "Go there.", **(details or {})}
    outcome = Outcome(messages=(), ended_by="answered", details=about, judgements=judgements)
    return Episode("id", known | facets, "done", outcome)


def choice(is_right: bool, letter: str | None = "A", **facets: Any) -> Episode:
    """Return a choice among options."""
    made = item(None, task="classification", **facets)
    judgement = Judgement(metric="correct", target=ASSISTANT, score=is_right)
    details = {"answer": "<choice>A</choice>", "choice": letter}
    outcome = Outcome(messages=(), ended_by="chosen", details=details, judgements=(judgement,))
    return Episode("id", made.facets, "done", outcome)


def right_of(count: int, n: int, **facets: Any) -> Iterator[Episode]:
    """Yield `n` items, `count` of which are right."""
    for index in range(n):
        yield item(RIGHT if index < count else UNAWARE, index=index, **facets)

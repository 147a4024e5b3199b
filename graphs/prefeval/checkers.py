"""The four checkers of a free answer, one call each, and the error type that follows. PrefEval, section 3.3.

They see no conversation, and always the explicit sentence of the preference. The quote of `acknowledges` is kept as
its explanation; `hallucinates` is then asked about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from dialoom.graphs.check import Check, Conversation
from dialoom.graphs.judge import Case, Judge
from dialoom.graphs.outcome import Judgement, Line, Outcome
from dialoom.graphs.reporting.table import Counted, verdicts_with

from .scenario import PrefEvalScenario

CHECKERS = ("violates", "acknowledges", "hallucinates", "helpful")
CORRECT = "correct"
RIGHT = "right"
"""The metric that the checkers' verdicts lead to: an answer without an error."""
ASSISTANT = "assistant"

UNAWARE, HALLUCINATION, INCONSISTENCY, UNHELPFUL = "unaware", "hallucination", "inconsistency", "unhelpful"
ERROR_TYPES = (UNAWARE, HALLUCINATION, INCONSISTENCY, UNHELPFUL)
WRONG = "wrong"
"""The error of a wrong choice among options."""
UNPARSED = "unparsed"
"""A checker's verdict is missing: the answer counts as no success, and has no known error type."""
UNJUDGED = "unjudged"
"""No checker was asked."""

SEEN: Mapping[str, tuple[str, ...]] = {
    "violates": ("preference", "question", "answer"),
    "acknowledges": ("question", "answer"),
    "hallucinates": ("preference", "quote"),
    "helpful": ("question", "answer"),
    RIGHT: ("preference", "question", "answer"),
}
"""The inputs of each checker, and of annotators who decide whether an answer is right."""


class YesNo(BaseModel):
    """A reason, and exactly yes or no."""

    model_config = ConfigDict(frozen=True)
    explanation: str = ""
    answer: Literal["yes", "no"]

    @field_validator("answer", mode="before")
    @classmethod
    def _bare(cls, value: Any) -> Any:
        return re.sub(r"[\s.!]+", "", value).lower() if isinstance(value, str) else value

    @property
    def why(self) -> str:
        """The reason."""
        return self.explanation


class YesNoQuote(YesNo):
    """Yes with a sentence of the answer, or no."""

    quote: str = ""

    @model_validator(mode="after")
    def _quoted(self) -> YesNoQuote:
        if self.answer == "yes" and not self.quote.strip():
            raise ValueError("'yes' needs a quote; without anything to quote, the answer is 'no'")
        return self

    @property
    def why(self) -> str:
        """The quote."""
        return self.quote.strip()


REPLY_TYPES: Mapping[str, type[BaseModel]] = {"yes-no": YesNo, "yes-no-quote": YesNoQuote}


def quote_of(judgements: Iterable[Judgement]) -> str:
    """Return the quote of `acknowledges`, or an empty text without one."""
    said = (each.explanation for each in judgements if each.metric == "acknowledges" and each.score is True)
    return next(said, "")


def seen_by(metric: str, outcome: Outcome) -> dict[str, str]:
    """Return a checker's inputs about an item, by name."""
    details = outcome.details
    shown = {name: details[name] for name in ("preference", "question", "answer")}
    shown["quote"] = quote_of(outcome.judgements)
    return {name: shown[name] for name in SEEN.get(metric, tuple(shown))}


def lines_seen(metric: str, outcome: Outcome) -> list[Line]:
    """Return a checker's inputs as lines, for annotators of the same item."""
    return [Line(role=name, content=text) for name, text in seen_by(metric, outcome).items()]


def error_type(
    violates: bool | None, acknowledges: bool | None, hallucinates: bool | None, helpful: bool | None
) -> str | None:
    """Return the error type of an answer; `None` if it is right.

    An answer that does not help is `unhelpful` regardless of the rest: in the paper's table, an unhelpful answer that
    also violates would have no error, while the released scripts count it as here.

    Args:
        violates: Whether it contradicts the preference; `None`, here and below, if the verdict is missing.
        acknowledges: Whether it mentions a preference.
        hallucinates: Whether it mentions another one; used only if it mentions one.
        helpful: Whether it helps.
    """
    if violates is None or acknowledges is None or helpful is None or (acknowledges and hallucinates is None):
        return UNPARSED
    if not helpful:
        return UNHELPFUL
    if not violates:
        return None
    if not acknowledges:
        return UNAWARE
    return HALLUCINATION if hallucinates else INCONSISTENCY


@cache
def counted_by_error() -> Mapping[str, Counted]:
    """Return the items with a free answer that count as right, and those with each error type."""

    def has(found: str, verdicts: Mapping[str, bool | None]) -> bool:
        return (error_type(**verdicts) or RIGHT) == found

    kinds = (RIGHT, *ERROR_TYPES, UNPARSED)
    return {kind: Counted(is_judged=True, verdicts=verdicts_with(CHECKERS, partial(has, kind))) for kind in kinds}


def error_of(judgements: Iterable[Judgement]) -> str | None:
    """Return the error of an item: that of `error_type`, or `wrong` for a choice; `None` if it is right."""
    found = {each.metric: None if each.score is None else bool(each.score) for each in judgements}
    if CORRECT in found:
        is_correct = found[CORRECT]
        return UNPARSED if is_correct is None else None if is_correct else WRONG
    if not found.keys() & set(CHECKERS):
        return UNJUDGED
    return error_type(*(found.get(checker) for checker in CHECKERS))


def _cases(_: PrefEvalScenario, outcome: Outcome, metric: str) -> Iterator[Case]:
    """Yield a checker's inputs about a free answer; an empty answer has nothing to judge."""
    seen = seen_by(metric, outcome)
    yield Case(None, seen, missing="" if seen.get("answer", "-") else "the assistant answered nothing")


def _choice(item: Conversation) -> tuple[bool, str] | None:
    """Return whether the right option was chosen, with an explanation; `None` for a free answer."""
    if item.scenario.task != "classification":
        return None
    letter, right = item.outcome.details["choice"], item.outcome.details["correct"]
    told = f"{letter} was chosen" if letter else "no letter was chosen"
    return letter == right, told if letter == right else f"{told}; {right} is right"


def _is_asked(scenario: PrefEvalScenario, outcome: Outcome, metric: str) -> bool:
    """Return whether there is a free answer; for `hallucinates`, whether it mentions a preference."""
    return bool(quote_of(outcome.judgements)) if metric == "hallucinates" else scenario.task == "generation"


JUDGES = tuple(
    Judge(
        metric,
        prompt=f"prefeval/judge-{metric}",
        node=metric,
        cases=partial(_cases, metric=metric),
        when=partial(_is_asked, metric=metric),
        after="acknowledges" if metric == "hallucinates" else "",
        read=lambda reply: (reply.answer == "yes", reply.why),
    )
    for metric in CHECKERS
)
CHECKS = (Check(CORRECT, _choice),)

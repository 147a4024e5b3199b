"""The four checkers of a free answer, each a call of its own. PrefEval, section 3.3.

They see no conversation, and the preference always as the explicit sentence. What acknowledges has quoted is kept as
its explanation, which hallucinates is then asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from dialoom.graphs.check import Check, Conversation
from dialoom.graphs.judge import Case, Judge
from dialoom.graphs.outcome import Line, Outcome

from .scenario import PrefEvalScenario
from .verdicts import CHECKERS, CORRECT, RIGHT

SEEN: Mapping[str, tuple[str, ...]] = {
    "violates": ("preference", "question", "answer"),
    "acknowledges": ("question", "answer"),
    "hallucinates": ("preference", "quote"),
    "helpful": ("question", "answer"),
    RIGHT: ("preference", "question", "answer"),
}
"""What each checker is shown, and people who say whether an answer is right."""


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


def quote_of(judgements: Sequence[Mapping[str, Any]]) -> str:
    """What acknowledges has quoted; empty if it has quoted nothing."""
    return next((str(each["explanation"]) for each in judgements if _is_acknowledged(each)), "")


def seen_by(metric: str, shown: Mapping[str, str]) -> list[Line]:
    """What a checker was shown, as lines for people who judge the same thing."""
    return [Line(role=name, content=shown[name]) for name in SEEN.get(metric, tuple(shown))]


def _is_acknowledged(judgement: Mapping[str, Any]) -> bool:
    return judgement["metric"] == "acknowledges" and judgement["score"] is True


def _cases(scenario: PrefEvalScenario, outcome: Outcome, metric: str) -> Iterator[Case]:
    """Yield what a checker is shown of a free answer; there is nothing to judge in an empty one."""
    shown = {
        "preference": scenario.pair.preference,
        "question": scenario.pair.question,
        "answer": outcome.details["answer"],
        "quote": quote_of([each.model_dump() for each in outcome.judgements]),
    }
    seen = {name: shown[name] for name in SEEN[metric]}
    yield Case(None, seen, missing="" if seen.get("answer", "-") else "the assistant answered nothing")


def _is_free(scenario: PrefEvalScenario, _outcome: Outcome) -> bool:
    return scenario.task == "generation"


def _names_preference(_scenario: PrefEvalScenario, outcome: Outcome) -> bool:
    return bool(quote_of([each.model_dump() for each in outcome.judgements]))


def _choice(item: Conversation) -> tuple[bool, str] | None:
    """Return whether the right option was chosen; `None` of a free answer."""
    if item.scenario.task != "classification":
        return None
    letter, right = item.outcome.details["choice"], item.outcome.details["correct"]
    told = f"{letter} was chosen" if letter else "no letter was chosen"
    return letter == right, told if letter == right else f"{told}; {right} is right"


JUDGES = tuple(
    Judge(
        metric,
        prompt=f"prefeval/judge-{metric}",
        node=metric,
        cases=partial(_cases, metric=metric),
        when=_names_preference if metric == "hallucinates" else _is_free,
        after="acknowledges" if metric == "hallucinates" else "",
        read=lambda reply: (reply.answer == "yes", reply.why),
    )
    for metric in CHECKERS
)
CHECKS = (Check(CORRECT, _choice),)

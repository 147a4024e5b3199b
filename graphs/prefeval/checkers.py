"""The four checkers of a free answer, each a call of its own. PrefEval, section 3.3.

They see no conversation, and the preference always as the explicit sentence. What acknowledges has quoted is kept as
its explanation, which hallucinates is then asked about.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from dialoom.graphs.judgement_scope import is_judged
from dialoom.graphs.outcome import Judgement, Line
from dialoom.graphs.stage import Scene, Update
from dialoom.roles import UnparsedReplyError

from .nodes import ItemState
from .verdicts import ASSISTANT, RIGHT

CheckerNode = Callable[[ItemState, Scene], Awaitable[Update]]

SIDE_BY_SIDE = ("violates", "acknowledges", "helpful")
"""Asked at once; hallucinates waits for the quote."""

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


def checker(metric: str) -> CheckerNode:
    """The node of a checker."""

    async def check(state: ItemState, scene: Scene) -> Update:
        pair = scene.scenario.pair
        shown = {
            "preference": pair.preference,
            "question": pair.question,
            "answer": state["answer"],
            "quote": quote_of(state["judgements"]),
        }
        judgement = await _judged(scene, metric, {name: shown[name] for name in SEEN[metric]})
        return {"judgements": [judgement.model_dump(mode="json")]}

    return check


def names_preference(state: ItemState) -> bool:
    """Whether acknowledges said yes, so that hallucinates is asked."""
    return any(each["metric"] == "acknowledges" and each["score"] is True for each in state["judgements"])


def unasked(state: ItemState) -> list[str]:
    """The checkers whose word is missing and who can be asked now."""
    missing = [metric for metric in SIDE_BY_SIDE if not is_judged(state["judgements"], metric, ASSISTANT)]
    if names_preference(state) and not is_judged(state["judgements"], "hallucinates", ASSISTANT):
        missing.append("hallucinates")
    return missing


def quote_of(judgements: Sequence[Mapping[str, Any]]) -> str:
    """What acknowledges has quoted; empty if it has quoted nothing."""
    return next((str(each["explanation"]) for each in judgements if _is_acknowledged(each)), "")


def seen_by(metric: str, shown: Mapping[str, str]) -> list[Line]:
    """What a checker was shown, as lines for people who judge the same thing."""
    return [Line(role=name, content=shown[name]) for name in SEEN.get(metric, tuple(shown))]


def _is_acknowledged(judgement: Mapping[str, Any]) -> bool:
    return judgement["metric"] == "acknowledges" and judgement["score"] is True


async def _judged(scene: Scene, metric: str, shown: Mapping[str, str]) -> Judgement:
    thing = {"metric": metric, "target": ASSISTANT}
    if not shown.get("answer", "-"):
        return Judgement(**thing, status="unparsed", explanation="the assistant answered nothing")
    try:
        reply: YesNo = await scene.ask(f"prefeval/judge-{metric}", **shown)
    except UnparsedReplyError as error:
        return Judgement(**thing, status="unparsed", explanation=str(error))
    return Judgement(**thing, score=reply.answer == "yes", explanation=reply.why)

"""What comes out of a scenario, and what reports and exports see of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from dialoom.prompts import FunctionCall
from dialoom.prompts.messages import call_text

from .fault import DialogueFault

Status = Literal["ok", "unparsed", "error", "tied"]
"""`tied`: the verdicts of a panel of judges, of which neither was given by more than half."""


class Line(BaseModel):
    """One message of a finished conversation.

    Attributes:
        role: Who said it.
        finish_reason: Why it breaks off, in the provider's word: `length`, `refusal` or `content_filter`; `None` if all
            was said.
        tool_calls: The tools that it calls besides.
        tool_call_id: The call that it answers, if a tool said it.
    """

    model_config = ConfigDict(frozen=True)
    role: str
    content: str
    finish_reason: str | None = None
    tool_calls: tuple[FunctionCall, ...] = ()
    tool_call_id: str | None = None

    @property
    def spoken(self) -> str:
        """Its words, and in lines of their own what it calls, as people read it."""
        return "\n".join([*filter(None, [self.content]), *(f"calls {call_text(call)}" for call in self.tool_calls)])

    @model_serializer(mode="wrap")
    def _plain(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Role and content, and of the rest what there is: most lines have none of it, and their content is hashed."""
        dumped: dict[str, Any] = dump(self)
        return {name: value for name, value in dumped.items() if name in ("role", "content") or value}


class Judgement(BaseModel):
    """One judge's word on one thing. A score that could not be had is no score: then `status` says why.

    Attributes:
        metric: E.g. `personalization`.
        target: Whose part was judged, e.g. `assistant`.
        turn: The turn that was judged, from 1; `None` for the whole conversation.
        score: A verdict or a number on the metric's scale; `None` unless `status` is `ok`.
    """

    model_config = ConfigDict(frozen=True)
    metric: str
    target: str
    turn: int | None = None
    score: bool | int | float | None = None
    status: Status = "ok"
    explanation: str = ""


class Outcome(BaseModel):
    """A scenario's result.

    Attributes:
        ended_by: Why the conversation ended; `error` if it could not go on.
        counts: Figures of the recipe's own, e.g. how many turns.
        details: What else a recipe keeps, as plain JSON, e.g. a tree of which `messages` is one path.
        faults: What the gate's rules found, in the order of the messages; `None` if they were not asked.
        languages: Those of its conversations for which the rules were asked, as ISO 639 codes.
    """

    model_config = ConfigDict(frozen=True)
    messages: tuple[Line, ...]
    ended_by: str
    counts: Mapping[str, int] = {}
    details: Mapping[str, Any] = {}
    judgements: tuple[Judgement, ...] = ()
    faults: tuple[DialogueFault, ...] | None = None
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished scenario as exports and reports read it.

    Attributes:
        id: The scenario's id.
        facets: What the scenario shows of itself.
        state: `done` or `failed`.
        outcome: Its result, with the judgements of one judging.
        output_tokens: Tokens written per role; `None` where a provider did not say.
        error: Why it failed.
        at_fault: Whose fault that is, in a word or two, e.g. `context`: its request was longer than the model reads.
    """

    id: str
    facets: Mapping[str, Any]
    state: str
    outcome: Outcome
    output_tokens: Mapping[str, int | None] = field(default_factory=dict)
    error: str | None = None
    at_fault: str | None = None

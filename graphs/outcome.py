"""The result of a scenario, with the faults found in it, and the view of it that reports and exports read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from dialoom.prompts import FunctionCall
from dialoom.prompts.messages import call_text

KINDS: Mapping[str, str] = {
    "echo": "a near-copy of the other's line",
    "repetition": "a near-copy of a line of one's own",
    "loop": "nothing new for three turns",
    "swapped_role": "the user offers help, or the assistant asks for it",
    "prompt_leak": "words of the prompt, its tags, or blanks that were never filled in",
    "end_marker": "the end marker where it has no place",
    "glued_lines": "lines of two speakers in one",
    "empty_line": "nothing is said",
    "cut_line": "the line breaks off",
    "other_language": "another language than the conversation's",
    "early_preferences": "the opening states preferences that it must keep back",
    "early_end": "ended before the task was touched",
    "no_end": "goodbyes go on to the limit",
    "copied_form": "a judge gives back the blank form instead of an explanation",
}
"""The kinds of faults that the rules detect, and their meanings."""


BY_JUDGES = "copied_form"
"""The kind that is a fault of a judge's explanation, not of a dialogue."""

USER = "user"
"""The role of simulated users: a dialogue in which the user is at fault says little about any other role."""


REVIEWER = "reviewer"
"""The role that looks for faults that rules cannot detect."""


class DialogueFault(BaseModel):
    """A fault in a conversation.

    Attributes:
        who: The role at fault, such as `user` or `assistant`.
        kind: One of `KINDS`, of the recipe's own kinds, or of a reviewer's.
        message: The index of the outcome's message, from 0; `None` for the whole, or for a line outside its messages.
        where: A location defined by the recipe, such as the path of a tree; otherwise empty.
        words: The words that show the fault.
        sureness: The confidence, above 0 and at most 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    who: str
    kind: str
    message: int | None = None
    where: str = ""
    words: str = ""
    sureness: float = Field(default=1.0, gt=0, le=1)


def dialogue_faults(faults: Iterable[DialogueFault]) -> int:
    """Return the number of faults of the dialogue's own roles; judges' faults do not count."""
    return sum(each.kind != BY_JUDGES for each in faults)


def is_sound(faults: Iterable[DialogueFault]) -> bool:
    """Return whether no role of the dialogue has a fault."""
    return not dialogue_faults(faults)


Status = Literal["ok", "unparsed", "error", "tied"]
"""`tied`: a panel of judges gave no verdict a majority."""


class Line(BaseModel):
    """One message of a finished conversation.

    Attributes:
        role: The speaker.
        finish_reason: The reason for which the message was cut off, in the provider's term: `length`, `refusal` or
            `content_filter`; `None` if it is complete.
        tool_calls: The message's tool calls.
        tool_call_id: The call that the message answers, if it is a tool's result.
    """

    model_config = ConfigDict(frozen=True)
    role: str
    content: str
    finish_reason: str | None = None
    tool_calls: tuple[FunctionCall, ...] = ()
    tool_call_id: str | None = None

    @property
    def spoken(self) -> str:
        """The text, and one line for each tool call, as people read it."""
        return "\n".join([*filter(None, [self.content]), *(f"calls {call_text(call)}" for call in self.tool_calls)])

    @model_serializer(mode="wrap")
    def _plain(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Dump role and content, and other fields only if set: most lines have none, and their content is hashed."""
        dumped: dict[str, Any] = dump(self)
        return {name: value for name, value in dumped.items() if name in ("role", "content") or value}


class Judgement(BaseModel):
    """One judge's score of one item. A missing score is `None`; `status` then gives the reason.

    Attributes:
        metric: The metric, e.g. `personalization`.
        target: The role whose messages were judged, e.g. `assistant`.
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


ENVIRONMENT = "environment"
"""The name of an environment's snapshot, in the graph's state and in an outcome's details."""


class Outcome(BaseModel):
    """A scenario's result.

    Attributes:
        ended_by: The reason for which the conversation ended; `error` if it failed.
        counts: The recipe's own figures, e.g. the number of turns.
        details: Other data of the recipe, as plain JSON, e.g. a tree of which `messages` is one path.
        faults: Faults found by the gate's rules, in the order of the messages; `None` if the rules did not run.
        languages: The languages of its conversations for which the rules ran, as ISO 639 codes.
    """

    model_config = ConfigDict(frozen=True)
    messages: tuple[Line, ...]
    ended_by: str
    counts: Mapping[str, int] = {}
    details: Mapping[str, Any] = {}
    judgements: tuple[Judgement, ...] = ()
    faults: tuple[DialogueFault, ...] | None = None
    languages: tuple[str, ...] = ()

    @property
    def environment(self) -> Any:
        """The final state of the assistant's environment: its last snapshot; `None` where it has none."""
        return self.details.get(ENVIRONMENT)

    @property
    def tool_results(self) -> Iterator[tuple[FunctionCall, str | None]]:
        """Each tool call with the tool's result, `None` for a call that was never answered."""
        results = {line.tool_call_id: line.content for line in self.messages if line.tool_call_id is not None}
        for line in self.messages:
            for call in line.tool_calls:
                yield call, results.get(call["id"])


EARLIER_ATTEMPTS = "earlier_attempts"
"""The count of a conversation with a stateful player that was played before, and then again from its beginning."""

TRIAL = "~"
"""Separates a scenario's id from the number of a trial other than the first. No scenario's id contains it."""


def episode_id(scenario: str, trial: int) -> str:
    """Return the id of a scenario's trial: the scenario's own id for the first, `ID~2` for the second, and so on."""
    return scenario if trial == 1 else f"{scenario}{TRIAL}{trial}"


def scenario_of(episode: str) -> str:
    """Return the id of an episode's scenario."""
    return episode.partition(TRIAL)[0]


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished trial of a scenario as exports and reports read it.

    Attributes:
        id: The episode's id: the scenario's, and for trials after the first their number (`ID~2`).
        facets: The scenario's facets.
        state: `done` or `failed`.
        outcome: Its result, with the judgements of one set.
        output_tokens: Tokens written per role; `None` where a provider did not say.
        error: The error, if it failed.
        at_fault: The cause of the failure in a word or two, e.g. `context`: a request exceeded the model's context
            window.
        trial: The number of the trial, from 1; `None` in a run that plays each scenario once.
    """

    id: str
    facets: Mapping[str, Any]
    state: str
    outcome: Outcome
    output_tokens: Mapping[str, int | None] = field(default_factory=dict)
    error: str | None = None
    at_fault: str | None = None
    trial: int | None = None

    @property
    def scenario(self) -> str:
        """The scenario's id, which all of its trials share."""
        return scenario_of(self.id)

    @property
    def repeated(self) -> str | None:
        """The scenario's id if it has several trials; else `None`."""
        return None if self.trial is None else self.scenario

    def unit(self, facet: str | None) -> Hashable:
        """Return the independent unit that the episode belongs to, over which intervals are computed.

        Args:
            facet: The facet whose values are the units, such as the person; `None` if scenarios are independent.

        Returns:
            The facet's value; else the scenario if it has several trials; else `None`, as no other episode belongs to
            the unit.
        """
        if facet is not None:
            value: Hashable = self.facets.get(facet)
            return value
        return self.repeated

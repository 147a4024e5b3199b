"""A scenario's result, the faults found in it, and the form in which reports and exports read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from dialoom.inputs import Frozen, Record
from dialoom.prompts import FunctionCall, pair_results
from dialoom.prompts.messages import format_call

FAULT_KINDS: Mapping[str, str] = {
    "echo": "a near-copy of a line of the other speaker",
    "repetition": "a near-copy of an earlier line of the same speaker",
    "loop": "nothing new for three turns",
    "swapped_role": "the user offers help, or the assistant asks for it",
    "task_not_stated": "the user's first two messages do not mention the task",
    "claimed_action": "the assistant reports an action before any tool was called",
    "prompt_leak": "words, paraphrases or tags of the prompt, or placeholders that were not filled in",
    "end_marker": "the end marker where it does not belong",
    "glued_lines": "lines of two speakers in one",
    "empty_line": "nothing is said",
    "cut_line": "the line breaks off",
    "other_language": "a language other than the conversation's",
    "early_preferences": "the opening states preferences that it must not reveal",
    "early_end": "the user ends the conversation before the task is dealt with",
    "no_end": "the limit is reached after a goodbye without the end marker",
    "copied_form": "a judge gives back the blank form instead of an explanation",
}
"""The kinds of faults that the rules detect, and their meanings."""


JUDGE_FAULT = "copied_form"
"""The kind of fault that concerns a judge's explanation instead of a dialogue."""

USER = "user"
"""The role of simulated users. A dialogue in which the user is at fault is little evidence about any other role."""

SYSTEM = "system"
"""The name of the speaker of system messages, which are instructions to the assistant."""


REVIEWER = "reviewer"
"""The role that looks for faults that rules cannot detect."""


class DialogueFault(Record):
    """A fault in a conversation.

    Attributes:
        role: The role at fault, such as `user` or `assistant`.
        kind: One of `FAULT_KINDS`, of the recipe's own kinds, or of a reviewer's kinds.
        message: The index of the message in the outcome, from 0; `None` for the whole conversation, or for a line
            outside its messages.
        where: A location defined by the recipe, such as the path of a tree; otherwise empty.
        excerpt: Words that shows the fault.
        confidence: The confidence, above 0 and at most 1.
    """

    role: str
    kind: str
    message: int | None = None
    where: str = ""
    excerpt: str = ""
    confidence: float = Field(default=1.0, gt=0, le=1)


def count_dialogue_faults(faults: Iterable[DialogueFault]) -> int:
    """Return the number of faults of the roles that speak in the dialogue. Judges' faults are not counted."""
    return sum(each.kind != JUDGE_FAULT for each in faults)


def is_sound(faults: Iterable[DialogueFault]) -> bool:
    """Return whether no role that speaks in the dialogue has a fault."""
    return not count_dialogue_faults(faults)


Status = Literal["ok", "unparsed", "error", "tied"]
"""The status of a judgement.

`ok`: it has a score. `unparsed`: the judge's reply could not be parsed, or there was nothing to judge. `error`: the
check raised an exception or returned no score. `tied`: no verdict has a majority in a panel of judges.
"""


class Line(Frozen):
    """One message of a finished conversation.

    Example:
        >>> line = dialoom.Line(role="user", content="Where is my order?")
        >>> line.role
        'user'

    Attributes:
        role: The speaker.
        finish_reason: The provider's reason why the message was cut off: `length`, `refusal` or `content_filter`;
            `None` if it is complete.
        tool_calls: The message's tool calls.
        tool_call_id: The id of the call that the message answers, if it is a tool's result.
    """

    role: str
    content: str
    finish_reason: str | None = None
    tool_calls: tuple[FunctionCall, ...] = ()
    tool_call_id: str | None = None

    @property
    def spoken(self) -> str:
        """The message's text, followed by one readable line for each tool call."""
        return "\n".join([*filter(None, [self.content]), *(f"calls {format_call(call)}" for call in self.tool_calls)])

    @model_serializer(mode="wrap")
    def _plain(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Dump role and content; dump other fields only if they are set.

        Most lines have no other fields, and the content is hashed.
        """
        dumped: dict[str, Any] = dump(self)
        return {name: value for name, value in dumped.items() if name in ("role", "content") or value}


def find_turn_ends(messages: Sequence[Line], role: str) -> list[int]:
    """Return, for each turn of a role, the number of messages up to the end of that turn.

    Each message is a turn, with one exception: a message with tool calls is part of the turn that continues after their
    results. A message that holds only tool calls is not a turn by itself.
    """
    ends = []
    for count, line in enumerate(messages, start=1):
        if line.role != role:
            continue
        next_role = next((each.role for each in messages[count:] if each.tool_call_id is None), None)
        if not line.tool_calls or (line.content and next_role != role):
            ends.append(count)
    return ends


class Judgement(Frozen):
    """A judge's score of one item. A missing score is `None`, and `status` gives the reason.

    Example:
        >>> judgement = dialoom.open_run("run.db").episode(1).outcome.judgements[0]
        >>> judgement.metric, judgement.status
        ('task_completion', 'ok')

    Attributes:
        metric: The metric, e.g. `personalization`.
        target: The role whose messages were judged, e.g. `assistant`.
        turn: The turn that was judged, from 1; `None` for the whole conversation.
        score: A verdict or a number on the metric's scale; `None` unless `status` is `ok`.
    """

    metric: str
    target: str
    turn: int | None = None
    score: bool | int | float | None = None
    status: Status = "ok"
    explanation: str = ""


Subject: TypeAlias = tuple[str, str, int | None, int]
"""The subject of a judgement: metric, target, turn, and a number from 1, as a tree may have several of one turn."""


def index_by_subject(judgements: Iterable[Judgement]) -> dict[Subject, Judgement]:
    """Return the judgements of one outcome by subject; the number is that in the order of the judgements."""
    counts, judgements_by_subject = Counter[tuple[str, str, int | None]](), dict[Subject, Judgement]()
    for each in judgements:
        key = each.metric, each.target, each.turn
        counts[key] += 1
        judgements_by_subject[*key, counts[key]] = each
    return judgements_by_subject


ENVIRONMENT = "environment"
"""The key of an environment's snapshot in the graph's state and in an outcome's details."""


class Outcome(Frozen):
    """A scenario's result.

    Example:
        >>> outcome = dialoom.open_run("run.db").episode(1).outcome
        >>> outcome.ended_by, outcome.messages[0].role
        ('user_terminated', 'user')

    Attributes:
        ended_by: The reason why the conversation ended; `error` if it failed.
        counts: Numbers that the recipe counts, e.g. the number of turns.
        details: Other data of the recipe as JSON values, e.g. a tree; `messages` then holds the conversation along one
            path of the tree.
        faults: Faults found by the gate's rules, in the order of the messages; `None` if the rules did not run.
        languages: The languages of the conversations that the rules checked, as ISO 639 codes.
    """

    messages: tuple[Line, ...]
    ended_by: str
    counts: Mapping[str, int] = {}
    details: Mapping[str, Any] = {}
    judgements: tuple[Judgement, ...] = ()
    faults: tuple[DialogueFault, ...] | None = None
    languages: tuple[str, ...] = ()

    @property
    def environment(self) -> Any:
        """The final state of the assistant's environment, i.e. its last snapshot; `None` without an environment."""
        return self.details.get(ENVIRONMENT)

    @property
    def tool_results(self) -> tuple[tuple[FunctionCall, str | None], ...]:
        """Each tool call, paired with the tool's result. The result is `None` for a call that was never answered."""
        calls = [call for line in self.messages for call in line.tool_calls]
        results = pair_results(
            ([call["id"] for call in line.tool_calls], line.tool_call_id, line.content) for line in self.messages
        )
        return tuple(zip(calls, results, strict=True))


EARLIER_ATTEMPTS = "earlier_attempts"
"""The key in `counts` for the number of restarts of a conversation because a player had lost its state."""

TRIAL_SEPARATOR = "~"
"""The separator in an episode's id between the scenario's id, the number of the user model and the number of the trial.

A number is omitted if it is 1. No scenario's id contains the separator.
"""

TRIAL_OF = "trial_of"
"""The facet of an imported conversation that names the scenario of which it is one of several trials."""

USER_MODEL = "user_model"
"""The facet that states the user model in runs that play each scenario with several user models."""


def episode_id(scenario: str, trial: int = 1, user: int = 1) -> str:
    """Return an episode's id: the scenario's id, and the numbers of the user model and of the trial if they are not 1.

    `ID~2` is the second trial, `ID~u2` the first trial with the second user model, and `ID~u2~3` the third trial with
    the second user model.
    """
    model = "" if user == 1 else f"{TRIAL_SEPARATOR}u{user}"
    return f"{scenario}{model}" if trial == 1 else f"{scenario}{model}{TRIAL_SEPARATOR}{trial}"


def parse_episode_numbers(episode: str) -> tuple[int, int]:
    """Return the numbers of the trial and of the user model that an episode's id states, from 1."""
    trial = user = 1
    for part in episode.split(TRIAL_SEPARATOR)[1:]:
        if part.startswith("u"):
            user = int(part[1:])
        else:
            trial = int(part)
    return trial, user


def scenario_of(episode: str) -> str:
    """Return the id of an episode's scenario."""
    return episode.partition(TRIAL_SEPARATOR)[0]


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished trial of a scenario, in the form that exports and reports read.

    Example:
        >>> episode = dialoom.open_run("run.db").episode(1)
        >>> episode.state, episode.facets["setting"]
        ('done', 'base')

    Attributes:
        id: The episode's id; see `episode_id`.
        facets: The scenario's facets. With several user models, the facet `USER_MODEL` states the episode's model.
        state: `done` or `failed`.
        outcome: The result, with the judgements of one set.
        output_tokens: The number of tokens written, by role; `None` if a provider did not report it.
        error: The error, if it failed.
        at_fault: The cause of the failure in one or two words, e.g. `context` if a request exceeded the model's context
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
    def in_trials(self) -> str:
        """The scenario's id and the number of the user model. All trials with this user model share it."""
        return episode_id(self.scenario, user=parse_episode_numbers(self.id)[1])

    @property
    def repeated(self) -> str | None:
        """The scenario's id if it is played several times, in trials or with several user models; otherwise `None`.

        For an imported conversation, it is the id of the scenario in the run that it comes from.
        """
        if TRIAL_OF in self.facets:
            return str(self.facets[TRIAL_OF])
        return None if self.trial is None and USER_MODEL not in self.facets else self.scenario

    def unit(self, facet: str | None) -> Hashable:
        """Return the unit of confidence intervals to which the episode belongs. Different units are independent.

        Args:
            facet: The facet whose values are the units, such as the person; `None` if all scenarios are independent.

        Returns:
            The facet's value if the episode has one, otherwise the scenario if it is played several times, otherwise
            `None`, because the episode is then a separate unit.
        """
        value: Hashable = None if facet is None else self.facets.get(facet)
        return self.repeated if value is None else value

    def cluster(self, facet: str | None) -> Hashable:
        """Return the unit, and for an episode that is a separate unit, the id of its scenario."""
        unit = self.unit(facet)
        return self.scenario if unit is None else unit

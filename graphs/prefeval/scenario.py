"""PrefEval items: options, scenarios, and the conversation before an item's question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from dialoom.graphs.option_types import AbsolutePath, Axis, EmbedderName, FilledAxis, FromOne, FromZero
from dialoom.graphs.outcome import Line
from dialoom.graphs.recipe import RecipeOptions
from dialoom.graphs.scenario import Scenario, Shared
from dialoom.personas import EMBEDDERS
from dialoom.personas.preferences import FORMS, Form, PreferencePair, PreferencePairs, sample_pairs
from dialoom.prompts import Utterance

Task = Literal["generation", "classification"]
Method = Literal["zero-shot", "reminder", "cot", "rag", "self-critic"]
Arm = Literal["", "alone", "agreeing", "conflicting"]
TASKS: tuple[Task, ...] = get_args(Task)
METHODS: tuple[Method, ...] = get_args(Method)
ARMS: tuple[Arm, ...] = ("alone", "agreeing", "conflicting")


class PrefEvalOptions(RecipeOptions):
    """The options of the recipe `prefeval`; repeatable ones are axes of the table."""

    pairs: AbsolutePath | None = Field(
        None, description="PrefEval's benchmark_dataset, or a file of pairs; by default the shipped samples."
    )
    topics: str = Field("all", description="all, or topics separated by commas.")
    form: FilledAxis[Form] = Field(
        ("explicit",), description=f"Form of the preference: {', '.join(FORMS)}. Repeatable."
    )
    task: FilledAxis[Task] = Field(("generation",), description=f"{' or '.join(TASKS)}. Repeatable.")
    method: FilledAxis[Method] = Field(
        ("zero-shot",), description=f"Method that helps the assistant: {', '.join(METHODS)}. Repeatable."
    )
    turns: Axis[FromZero] = Field(
        (),
        description="Number of unrelated turns before the question; by default 8 unless tokens are given. Repeatable.",
    )
    tokens: Axis[FromOne] = Field(
        (), description="Length in tokens in place of turns: as many unrelated turns as fit. Repeatable."
    )
    position: Axis[float] = Field(
        (),
        description="Position of the preference: the share of unrelated turns before it, from 0 to 1; by default 0, or "
        "0.5 with conflict. Repeatable.",
    )
    extra: FilledAxis[FromZero] = Field(
        (0,), description="Number of further preferences of other topics, spread over the turns. Repeatable."
    )
    conflict: bool = Field(
        False, description="Play three arms: the preference alone, after an agreeing one, after a conflicting one."
    )
    distractors: AbsolutePath | None = Field(
        None, description="Pool of chats, as PrefEval's filtered_inter_turns.json; by default the shipped one."
    )
    retrieved: FilledAxis[FromOne] = Field((5,), description="Number of messages that rag retrieves. Repeatable.")
    embedder: EmbedderName = Field("lexical", description=f"Embedder of rag: {EMBEDDERS}.")
    judge: bool = Field(True, description="Have the four checkers judge each answer.")
    limit: int | None = Field(None, ge=1, description="Maximum number of items.")

    @field_validator("position")
    @classmethod
    def _shares(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if not all(0 <= value <= 1 for value in values):
            raise ValueError("give shares from 0 to 1")
        return values

    @model_validator(mode="after")
    def _one_length(self) -> PrefEvalOptions:
        if self.turns and self.tokens:
            raise ValueError("turns and tokens exclude each other; give one of them")
        if self.conflict and any(self.extra):
            raise ValueError("conflict and extra exclude each other: conflict adds a preference of its own")
        if self.conflict and 0 in self.position:
            raise ValueError("position must be above 0 with conflict, got 0")
        return self

    def source(self) -> PreferencePairs:
        """Return the source of the pairs."""
        return sample_pairs() if self.pairs is None else PreferencePairs(self.pairs)

    def positions(self) -> tuple[float, ...]:
        """Return the preference's positions: by default the start, or the middle in the conflict setting."""
        return self.position or ((0.5,) if self.conflict else (0.0,))


class PrefEvalScenario(Scenario):
    """One item.

    Attributes:
        pair: Preference and question, in the item's form.
        task: A free answer, or one of four options.
        method: The way in which the assistant is helped.
        turns: The number of distractor turns (n).
        tokens: The tokens before the question, without the model's own replies to preferences.
        token_limit: The requested length in tokens; 0 if the length was given in turns.
        counter: The name of the token counter.
        position: The share of the distractors before the preference.
        extras: Explicit preferences of other topics, spread evenly; in the conflict setting the one that comes first.
        arm: The arm of the conflict setting; empty outside it.
        retrieved: The number of messages that rag retrieves; 0 for other methods.
        embedder: The embedder of rag; empty for other methods.
        order: The indices of the stored options in the order shown; empty for generation.
        distractors: The first n turns of the pool, shared by all items of one length.
    """

    pair: PreferencePair
    task: Task
    method: Method
    turns: int
    tokens: int
    token_limit: int = 0
    counter: str
    position: float = 0.0
    extras: tuple[PreferencePair, ...] = ()
    arm: Arm = ""
    retrieved: int = 0
    embedder: str = ""
    order: tuple[int, ...] = ()
    distractors: Shared[tuple[Line, ...]]

    @property
    def label(self) -> str:
        """Topic and row, form, method and length, e.g. `travel_hotel-3 explicit reminder 8`."""
        parts = [self.pair.id, self.pair.form, self.method, str(self.turns), self.arm]
        return " ".join([*(part for part in parts if part), *(["choose"] if self.task == "classification" else [])])

    def facets(self) -> dict[str, Any]:
        """Return the axes of the tables."""
        return {
            "topic": self.pair.topic,
            "index": self.pair.index,
            "form": self.pair.form,
            "task": self.task,
            "method": self.method,
            "turns": self.turns,
            "tokens": self.tokens,
            "token_limit": self.token_limit,
            "position": self.position,
            "preferences": 1 + len(self.extras),
            "arm": self.arm,
            "retrieved": self.retrieved,
        }

    def described(self) -> dict[str, Any]:
        """Return the facets, and the texts of the pair."""
        return {
            **self.facets(),
            "counter": self.counter,
            "preference": self.pair.preference,
            "question": self.pair.question,
            "explanation": self.pair.explanation,
        }


LINES_PER_TURN = 2
FOLDED = "distractors"
"""The role of the line that stands for a stretch of unrelated turns."""

Replies = Mapping[str, str]
"""The model's own replies to explicit preferences, by the preference's sentence."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


def preceding(scenario: PrefEvalScenario, replies: Replies, position: float) -> list[Line]:
    """Return the conversation before the question.

    Args:
        scenario: The item.
        replies: The model's own replies to explicit preferences.
        position: The share of the distractors that stands before the preference's block.
    """
    return [line for part in _parts(scenario, position) for line in _lines(scenario, part, replies)]


def own_places(scenario: PrefEvalScenario, replies: Replies, position: float) -> range:
    """Return the range of lines in `preceding` that state the item's own preference."""
    start = 0
    for part in _parts(scenario, position):
        end = start + len(_lines(scenario, part, replies))
        if part is scenario.pair:
            return range(start, end)
        start = end
    raise AssertionError("an item tells its own preference")


def folded(
    scenario: PrefEvalScenario, replies: Replies, position: float, broken_off: Mapping[str, str] = _NOTHING
) -> Iterator[Line]:
    """Yield the conversation with one line per stretch of unrelated turns, and own replies' finish reasons."""
    for part in _parts(scenario, position):
        if isinstance(part, range):
            turns = f"{len(part):,} turn{'' if len(part) == 1 else 's'} of unrelated talk"
            yield Line(role=FOLDED, content=turns)
        else:
            yield from told(part, replies, broken_off)


def told(pair: PreferencePair, replies: Replies, broken_off: Mapping[str, str] = _NOTHING) -> list[Line]:
    """Return a preference in its form: its fixed talk, or the sentence and the model's own reply, if it exists yet."""
    if pair.talk:
        return [Line(role=line.speaker, content=line.content) for line in pair.talk]
    said = [Line(role="user", content=pair.preference)]
    if (reply := replies.get(pair.preference)) is not None:
        said.append(Line(role="assistant", content=reply, finish_reason=broken_off.get(pair.preference)))
    return said


def explicit_preferences(scenario: PrefEvalScenario) -> list[str]:
    """Return the sentences that the model itself replies to."""
    return list(dict.fromkeys(pair.preference for pair in (scenario.pair, *scenario.extras) if not pair.talk))


def utterances(lines: list[Line]) -> list[Utterance]:
    """Return the lines as prompts take them."""
    return [{"speaker": line.role, "content": line.content} for line in lines]


def _parts(scenario: PrefEvalScenario, position: float) -> Iterator[PreferencePair | range]:
    """Yield preferences and stretches of unrelated turns in order; at equal positions, the own preference comes first.

    Number j of m further ones stands after round(j n / (m + 1)) turns. In the conflict setting the other one stands at
    the start and comes first, so that the item's own is the later, valid one.
    """
    n, extras = scenario.turns, scenario.extras
    own = (round(position * n), scenario.pair)
    others = [(0 if scenario.arm else round(j * n / (len(extras) + 1)), each) for j, each in enumerate(extras, start=1)]
    done = 0
    placed = [*others, own] if scenario.arm else [own, *others]
    for turn, pair in sorted(placed, key=lambda block: block[0]):
        if turn > done:
            yield range(done, turn)
        yield pair
        done = turn
    if done < scenario.turns:
        yield range(done, scenario.turns)


def _lines(scenario: PrefEvalScenario, part: PreferencePair | range, replies: Replies) -> list[Line]:
    if isinstance(part, PreferencePair):
        return told(part, replies)
    return list(scenario.distractors.value[part.start * LINES_PER_TURN : part.stop * LINES_PER_TURN])

"""PrefEval items: options, scenarios and their planning, and the conversation before an item's question."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, islice, product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from dialoom.graphs.outcome import Line
from dialoom.graphs.recipe import (
    AbsolutePath,
    Axis,
    EmbedderName,
    FilledAxis,
    FromOne,
    FromZero,
    RecipeError,
    RecipeOptions,
    chosen,
)
from dialoom.graphs.scenario import Scenario, Shared
from dialoom.graphs.stage import stream
from dialoom.inputs import DataError
from dialoom.personas import EMBEDDER_FORMS
from dialoom.personas.preferences import (
    DEFAULT_POOL,
    FORMS,
    Form,
    PreferencePair,
    PreferencePairs,
    read_chats,
    sample_pairs,
)
from dialoom.prompts import Utterance
from dialoom.roles.parameters import TOKENIZER, count_tokens

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
    topics: str = Field("all", description="Topics: all, or names separated by commas.")
    form: FilledAxis[Form] = Field(
        ("explicit",), description=f"Form of the preference: {', '.join(FORMS)}. Repeatable."
    )
    task: FilledAxis[Task] = Field(
        ("generation",), description=f"Task of the assistant: {' or '.join(TASKS)}. Repeatable."
    )
    method: FilledAxis[Method] = Field(
        ("zero-shot",), description=f"Method that helps the assistant: {', '.join(METHODS)}. Repeatable."
    )
    turns: Axis[FromZero] = Field(
        (),
        description="Number of unrelated turns before the question; by default 8 unless tokens are given. Repeatable.",
    )
    tokens: Axis[FromOne] = Field(
        (), description="Length in tokens, in place of turns: as many unrelated turns as fit are used. Repeatable."
    )
    position: Axis[float] = Field(
        (),
        description="Position of the preference: the share of unrelated turns before it, from 0 to 1; by default 0, or "
        "0.5 with conflict. Repeatable.",
    )
    extra: FilledAxis[FromZero] = Field(
        (0,), description="Number of further preferences on other topics, spread over the turns. Repeatable."
    )
    conflict: bool = Field(
        False, description="Play three arms: the preference alone, after an agreeing one, and after a conflicting one."
    )
    distractors: AbsolutePath | None = Field(
        None,
        description="Pool of chats for the unrelated turns, in the form of PrefEval's filtered_inter_turns.json; by "
        "default the shipped one.",
    )
    retrieved: FilledAxis[FromOne] = Field((5,), description="Number of messages that rag retrieves. Repeatable.")
    embedder: EmbedderName = Field("lexical", description=f"Embedder of rag: {EMBEDDER_FORMS}.")
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
            raise ValueError("conflict and extra exclude each other: conflict adds its own preference")
        if self.conflict and 0 in self.position:
            raise ValueError("position must be above 0 with conflict, got 0")
        return self

    def source(self) -> PreferencePairs:
        """Return the source from which the pairs are read."""
        return sample_pairs() if self.pairs is None else PreferencePairs(self.pairs)

    def positions(self) -> tuple[float, ...]:
        """Return the preference's positions: by default the start, or the middle in the conflict setting."""
        return self.position or ((0.5,) if self.conflict else (0.0,))


class PrefEvalScenario(Scenario):
    """One item.

    Attributes:
        pair: The preference and the question, in the item's form.
        task: Whether the model writes a free answer or chooses one of four options.
        method: The way in which the assistant is helped.
        turns: The number of distractor turns (n).
        tokens: The number of tokens before the question, not counting the model's own replies to preferences.
        token_limit: The requested length in tokens; 0 if the length was given in turns.
        counter: The name of the token counter.
        position: The share of the distractors that come before the preference.
        extras: Explicit preferences on other topics, spread evenly; in the conflict setting, the other preference,
            which comes first.
        arm: The arm of the conflict setting; empty for items outside this setting.
        retrieved: The number of messages that rag retrieves; 0 for other methods.
        embedder: The embedder of rag; empty for other methods.
        order: The indices of the stored options in the order in which they are shown; empty for generation.
        distractors: The first n turns of the pool. All items of the same length share them.
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
        """The topic and row, form, method and length, e.g. `travel_hotel-3 explicit reminder 8`."""
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
FOLDED_ROLE = "distractors"
"""The role of a line that replaces several unrelated turns."""

Replies = Mapping[str, str]
"""The model's own replies to explicit preferences, by the preference's sentence."""
_NO_REASONS: Mapping[str, str] = MappingProxyType({})


def build_conversation(scenario: PrefEvalScenario, replies: Replies, position: float) -> list[Line]:
    """Return the conversation before the question.

    Args:
        scenario: The item.
        replies: The model's own replies to explicit preferences.
        position: The share of the distractors that come before the preference.
    """
    return [line for part in _arrange_parts(scenario, position) for line in _build_part_lines(scenario, part, replies)]


def find_own_lines(scenario: PrefEvalScenario, replies: Replies, position: float) -> range:
    """Return the range of the lines that state the item's own preference in the result of `build_conversation`."""
    start = 0
    for part in _arrange_parts(scenario, position):
        end = start + len(_build_part_lines(scenario, part, replies))
        if part is scenario.pair:
            return range(start, end)
        start = end
    raise AssertionError("an item states its own preference")


def fold_conversation(
    scenario: PrefEvalScenario, replies: Replies, position: float, broken_off: Mapping[str, str] = _NO_REASONS
) -> Iterator[Line]:
    """Yield the conversation, with one line in place of consecutive unrelated turns.

    The model's own replies have their finish reasons.
    """
    for part in _arrange_parts(scenario, position):
        if isinstance(part, range):
            yield Line(role=FOLDED_ROLE, content=f"{len(part):,} turn{'' if len(part) == 1 else 's'} of unrelated talk")
        else:
            yield from build_preference_lines(part, replies, broken_off)


def build_preference_lines(
    pair: PreferencePair, replies: Replies, broken_off: Mapping[str, str] = _NO_REASONS
) -> list[Line]:
    """Return the lines that state a preference: its fixed dialogue, or its sentence and any reply to it."""
    if pair.talk:
        return [Line(role=line.speaker, content=line.content) for line in pair.talk]
    lines = [Line(role="user", content=pair.preference)]
    if (reply := replies.get(pair.preference)) is not None:
        lines.append(Line(role="assistant", content=reply, finish_reason=broken_off.get(pair.preference)))
    return lines


def find_explicit_preferences(scenario: PrefEvalScenario) -> list[str]:
    """Return the explicit preferences to which the model itself replies."""
    return list(dict.fromkeys(pair.preference for pair in (scenario.pair, *scenario.extras) if not pair.talk))


def convert_lines(lines: list[Line]) -> list[Utterance]:
    """Return the lines of a conversation in the form that prompts use."""
    return [{"speaker": line.role, "content": line.content} for line in lines]


def _arrange_parts(scenario: PrefEvalScenario, position: float) -> Iterator[PreferencePair | range]:
    """Yield preferences and ranges of unrelated turns, in order.

    Further preference j of m comes after round(j n / (m + 1)) turns. If a further preference is at the position of the
    item's own preference, it comes after the item's own. In the conflict setting, however, the other preference is at
    the start of the conversation and always comes first, so that the item's own preference is the later and valid one.
    """
    n, extras = scenario.turns, scenario.extras
    own = (round(position * n), scenario.pair)
    others = [(0 if scenario.arm else round(j * n / (len(extras) + 1)), each) for j, each in enumerate(extras, start=1)]
    done = 0
    for turn, pair in sorted([*others, own] if scenario.arm else [own, *others], key=lambda block: block[0]):
        if turn > done:
            yield range(done, turn)
        yield pair
        done = turn
    if done < scenario.turns:
        yield range(done, scenario.turns)


def _build_part_lines(scenario: PrefEvalScenario, part: PreferencePair | range, replies: Replies) -> list[Line]:
    if isinstance(part, PreferencePair):
        return build_preference_lines(part, replies)
    return list(scenario.distractors.value[part.start * LINES_PER_TURN : part.stop * LINES_PER_TURN])


_DEFAULT_TURNS = 8


def plan_items(
    options: PrefEvalOptions, draw: random.Random, note: Callable[[str], None]
) -> Iterator[PrefEvalScenario]:
    """Yield items by topic and pair, then by form, task, other preferences, position, length and method.

    Raises:
        RecipeError: If an option's value is wrong.
        DataError: If a source file is wrong.
    """
    plan = _Planner(options, draw)
    note(f"{len(plan.topics)} topics of {plan.source.path}; tokens are counted by {TOKENIZER}")
    yield from islice(plan.items(), options.limit)


class _Planner:
    def __init__(self, options: PrefEvalOptions, draw: random.Random) -> None:
        self._options = options
        self._seed = draw.getrandbits(63)
        self.source = options.source()
        self.topics = chosen("topics", options.topics, self.source.topics())
        self._pool = Distractors(options.distractors or DEFAULT_POOL)
        for turns in options.turns:
            self._pool.check(turns)
        self._others = _OtherPreferences(self.source, options)

    def items(self) -> Iterator[PrefEvalScenario]:
        options = self._options
        for topic in self.topics:
            by_form = [
                list(self.source.pairs(topic, form, with_options="classification" in options.task))
                for form in options.form
            ]
            for forms in zip(*by_form, strict=True):
                for pair, task in product(forms, options.task):
                    yield from self._of(pair, task)

    def _of(self, pair: PreferencePair, task: Task) -> Iterator[PrefEvalScenario]:
        # Fields that the task does not use are left out, so that equal items have equal ids.
        shown = pair.model_copy(update={"conflicting": "", **({} if task == "classification" else {"options": ()})})
        # The order of the options is the same for all items of a pair.
        places = range(len(pair.options) if task == "classification" else 0)
        order = tuple(self._stream(pair, "options").sample(places, len(places)))
        for company, position in product(self._companies(pair), self._options.positions()):
            for length in self._lengths(pair, company["extras"]):
                for method in self._methods():
                    yield PrefEvalScenario(
                        pair=shown,
                        task=task,
                        counter=TOKENIZER,
                        position=position,
                        order=order,
                        distractors=self._pool.first(length["turns"]),
                        **company,
                        **length,
                        **method,
                    )

    def _lengths(self, pair: PreferencePair, extras: Sequence[PreferencePair]) -> Iterator[dict[str, int]]:
        """Yield each length as its turns, tokens, and token limit, which is 0 for lengths given in turns."""
        count = sum(map(_count_statement_tokens, (pair, *extras)))
        for turns in self._options.turns or (() if self._options.tokens else (_DEFAULT_TURNS,)):
            yield {"turns": turns, "tokens": count + self._pool.tokens(turns)}
        for most in self._options.tokens:
            turns = self._pool.fitting(most, count, f"{pair.id} ({pair.form})")
            yield {"turns": turns, "tokens": count + self._pool.tokens(turns), "token_limit": most}

    def _methods(self) -> Iterator[dict[str, Any]]:
        for method in self._options.method:
            if method == "rag":
                for count in self._options.retrieved:
                    yield {"method": method, "retrieved": count, "embedder": self._options.embedder}
            else:
                yield {"method": method}

    def _companies(self, pair: PreferencePair) -> Iterator[dict[str, Any]]:
        """Yield the other preferences in an item's conversation, with the arm of the conflict setting."""
        for arm in ARMS if self._options.conflict else ():
            yield {"extras": self._others.of_arm(arm, pair, self._stream(pair, "extras")), "arm": arm}
        for count in () if self._options.conflict else self._options.extra:
            yield {"extras": self._others.drawn(pair, count, self._stream(pair, "extras"), "extra")}

    def _stream(self, pair: PreferencePair, purpose: str) -> random.Random:
        """Return a random stream for one pair, so that its draws do not depend on other pairs."""
        return stream(self._seed, pair.id, purpose)


class _OtherPreferences:
    """A collection of explicit preferences other than an item's own."""

    def __init__(self, source: PreferencePairs, options: PrefEvalOptions) -> None:
        topics = source.topics() if options.conflict or any(options.extra) else []
        self._by_topic = {
            topic: [_reduce_to_statement(each) for each in source.pairs(topic, "explicit")] for topic in topics
        }
        self._source = source

    def drawn(self, pair: PreferencePair, count: int, draw: random.Random, setting: str) -> tuple[PreferencePair, ...]:
        """Return `count` preferences on other topics. A larger count adds preferences after the same ones."""
        if not count:
            return ()
        others = [each for topic, pairs in self._by_topic.items() if topic != pair.topic for each in pairs]
        distinct = list({each.preference: each for each in others if each.preference != pair.preference}.values())
        if count > len(distinct):
            raise RecipeError(
                f"{setting}: {self._source.path} has {len(distinct)} preferences of topics other than {pair.topic}; "
                f"{count} are needed",
                setting=setting,
            )
        return tuple(draw.sample(distinct, len(distinct))[:count])

    def of_arm(self, arm: Arm, pair: PreferencePair, draw: random.Random) -> tuple[PreferencePair, ...]:
        """Return the preferences that come before an item's own in an arm of the conflict setting."""
        if arm != "conflicting":
            return self.drawn(pair, 1, draw, "conflict") if arm == "agreeing" else ()
        if not pair.conflicting:
            message = f"{pair.topic}, row {pair.index}: conflict needs a 'conflicting_preference'"
            raise DataError(self._source.path, message)
        return (_reduce_to_statement(pair.model_copy(update={"preference": pair.conflicting})),)


def _reduce_to_statement(pair: PreferencePair) -> PreferencePair:
    return PreferencePair(
        topic=pair.topic, index=pair.index, form="explicit", preference=pair.preference, question=pair.question
    )


def _count_statement_tokens(pair: PreferencePair) -> int:
    """Return the number of tokens of a preference's statement.

    The model's own reply is not included, because it is not known yet.
    """
    texts: Sequence[str] = [line.content for line in pair.talk] or [pair.preference]
    return sum(map(count_tokens, texts))


class Distractors:
    """A pool of unrelated turns.

    Args:
        path: A file of chats.

    Raises:
        DataError: If the file is broken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = tuple(Line(role=each.speaker, content=each.content) for chat in read_chats(path) for each in chat)
        counts = [count_tokens(line.content) for line in self._lines]
        by_turn = [sum(counts[at : at + LINES_PER_TURN]) for at in range(0, len(counts), LINES_PER_TURN)]
        self._tokens = list(accumulate(by_turn, initial=0))
        # The first turns of the pool, as an object that all items of this length share.
        self.first = cache(lambda turns: Shared(self._lines[: turns * LINES_PER_TURN]))

    def check(self, turns: int) -> None:
        """Check that the pool has this number of turns.

        Raises:
            RecipeError: If the pool has fewer turns. The message states their number.
        """
        if turns > self._most:
            raise RecipeError(
                f"turns {turns}: {self.path} has {self._most} turns; give no more, or another pool as distractors",
                setting="turns",
            )

    def fitting(self, most: int, taken: int, what: str) -> int:
        """Return the largest number of turns that fits within a token limit.

        Args:
            most: The token limit.
            taken: The number of tokens of the content that is needed besides these turns.
            what: A description of this content, for error messages.

        Raises:
            RecipeError: If this content exceeds the limit, or the pool has too few turns to reach the limit.
        """
        if taken > most:
            raise RecipeError(
                f"tokens {most:,}: the preference of {what} alone has {taken:,} tokens; give a larger number",
                setting="tokens",
            )
        turns = bisect_right(self._tokens, most - taken) - 1
        if turns == self._most and self.tokens(turns) + taken < most:
            raise RecipeError(
                f"tokens {most:,}: {self.path} has {self.tokens(turns):,} tokens in {turns} turns; give no more than "
                "that, or another pool as distractors",
                setting="tokens",
            )
        return turns

    def tokens(self, turns: int) -> int:
        """Return the number of tokens of the first turns of the pool."""
        return self._tokens[turns]

    @property
    def _most(self) -> int:
        return len(self._tokens) - 1

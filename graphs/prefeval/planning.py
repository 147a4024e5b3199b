"""The items of a run, generated lazily: each pair along the axes, with its unrelated turns."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, islice, product
from pathlib import Path
from typing import Any, NamedTuple

from dialoom.graphs.option_types import chosen
from dialoom.graphs.outcome import Line
from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.scenario import Shared
from dialoom.graphs.stage import stream
from dialoom.inputs import DataError
from dialoom.personas.preferences import DEFAULT_POOL, PreferencePair, PreferencePairs, read_chats
from dialoom.roles.parameters import COUNTER, tokens

from .scenario import ARMS, LINES_PER_TURN, Arm, PrefEvalOptions, PrefEvalScenario, Task

_USUAL_TURNS = 8


class _Company(NamedTuple):
    """The other preferences of an item, and the arm of the conflict setting, if any."""

    extras: tuple[PreferencePair, ...] = ()
    arm: Arm = ""


def items(options: PrefEvalOptions, draw: random.Random, note: Callable[[str], None]) -> Iterator[PrefEvalScenario]:
    """Yield items by topic and pair, and for each pair by form, task, other preferences, position, length and method.

    Raises:
        RecipeError: If an option's value is wrong.
        DataError: If a source file is wrong.
    """
    plan = _Plan(options, draw)
    note(f"{len(plan.topics)} topics of {plan.source.path}; tokens are counted by {COUNTER}")
    yield from islice(plan.items(), options.limit)


class _Plan:
    def __init__(self, options: PrefEvalOptions, draw: random.Random) -> None:
        self._options = options
        self._seed = draw.getrandbits(63)
        self.source = options.source()
        self.topics = chosen("topics", options.topics, self.source.topics())
        self._pool = Distractors(options.distractors or DEFAULT_POOL)
        for turns in options.turns:
            self._pool.check(turns)
        self._others = _Others(self.source, options)

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
        shown = _stripped(pair, task)
        order = self._order(pair) if task == "classification" else ()
        for company, position in product(self._companies(pair), self._options.positions()):
            for length in self._lengths(pair, company):
                for asked in self._methods():
                    yield PrefEvalScenario(
                        pair=shown,
                        task=task,
                        counter=COUNTER,
                        position=position,
                        extras=company.extras,
                        arm=company.arm,
                        order=order,
                        distractors=self._pool.first(length["turns"]),
                        **length,
                        **asked,
                    )

    def _lengths(self, pair: PreferencePair, company: _Company) -> Iterator[dict[str, int]]:
        """Yield turns and tokens; and the token limit if the length is given in tokens."""
        told = sum(map(_told_tokens, (pair, *company.extras)))
        for turns in self._options.turns or (() if self._options.tokens else (_USUAL_TURNS,)):
            yield {"turns": turns, "tokens": told + self._pool.tokens(turns)}
        for most in self._options.tokens:
            turns = self._pool.fitting(most, told, f"{pair.id} ({pair.form})")
            yield {"turns": turns, "tokens": told + self._pool.tokens(turns), "token_limit": most}

    def _methods(self) -> Iterator[dict[str, Any]]:
        for method in self._options.method:
            if method == "rag":
                for count in self._options.retrieved:
                    yield {"method": method, "retrieved": count, "embedder": self._options.embedder}
            else:
                yield {"method": method}

    def _order(self, pair: PreferencePair) -> tuple[int, ...]:
        """Return the order of the options, the same for all items of a pair."""
        return tuple(self._stream(pair, "options").sample(range(len(pair.options)), len(pair.options)))

    def _companies(self, pair: PreferencePair) -> Iterator[_Company]:
        if self._options.conflict:
            for arm in ARMS:
                yield _Company(self._others.of_arm(arm, pair, self._stream(pair, "extras")), arm)
            return
        for count in self._options.extra:
            yield _Company(self._others.drawn(pair, count, self._stream(pair, "extras"), "extra"))

    def _stream(self, pair: PreferencePair, purpose: str) -> random.Random:
        """Return a random stream of the pair's own, so that its draws are independent of other pairs."""
        return stream(self._seed, pair.id, purpose)


class _Others:
    """Explicit preferences other than an item's own."""

    def __init__(self, source: PreferencePairs, options: PrefEvalOptions) -> None:
        needed = options.conflict or any(options.extra)
        topics = source.topics() if needed else []
        self._by_topic = {topic: [_told_only(each) for each in source.pairs(topic, "explicit")] for topic in topics}
        self._source = source

    def drawn(self, pair: PreferencePair, count: int, draw: random.Random, setting: str) -> tuple[PreferencePair, ...]:
        """Return `count` preferences of other topics. A larger number begins with the same ones."""
        if not count:
            return ()
        others = [each for topic, pairs in self._by_topic.items() if topic != pair.topic for each in pairs]
        distinct = list({each.preference: each for each in others if each.preference != pair.preference}.values())
        if count > len(distinct):
            raise RecipeError(
                f"{setting}: {self._source.path} has {len(distinct)} preferences of other topics than {pair.topic}; "
                f"{count} are needed",
                setting=setting,
            )
        return tuple(draw.sample(distinct, len(distinct))[:count])

    def of_arm(self, arm: Arm, pair: PreferencePair, draw: random.Random) -> tuple[PreferencePair, ...]:
        """Return the preferences before an item's own in an arm of the conflict setting."""
        if arm == "agreeing":
            return self.drawn(pair, 1, draw, "conflict")
        if arm == "conflicting":
            if not pair.conflicting:
                raise DataError(
                    self._source.path, f"{pair.topic}, row {pair.index}: conflict needs a 'conflicting_preference'"
                )
            return (_told_only(pair.model_copy(update={"preference": pair.conflicting})),)
        return ()


def _stripped(pair: PreferencePair, task: Task) -> PreferencePair:
    """Return the pair without fields that its task does not use, so that equal items have equal ids."""
    unused = {"conflicting": "", **({} if task == "classification" else {"options": ()})}
    return pair.model_copy(update=unused)


def _told_only(pair: PreferencePair) -> PreferencePair:
    return PreferencePair(
        topic=pair.topic, index=pair.index, form="explicit", preference=pair.preference, question=pair.question
    )


def _told_tokens(pair: PreferencePair) -> int:
    """Return the tokens of a preference's statement, without the model's own reply, which is not known yet."""
    texts: Sequence[str] = [line.content for line in pair.talk] or [pair.preference]
    return sum(map(tokens, texts))


class Distractors:
    """A pool of unrelated turns.

    Args:
        path: A file of chats.

    Raises:
        DataError: If the file is broken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = [Line(role=each.speaker, content=each.content) for chat in read_chats(path) for each in chat]
        self._lines = tuple(lines)
        counts = [tokens(line.content) for line in lines]
        by_turn = [sum(counts[at : at + LINES_PER_TURN]) for at in range(0, len(counts), LINES_PER_TURN)]
        self._tokens = list(accumulate(by_turn, initial=0))
        self.first = cache(self._first)

    def check(self, turns: int) -> None:
        """Raise an error if the pool has fewer turns.

        Raises:
            RecipeError: With the number of turns in the pool.
        """
        if turns > self._most:
            raise RecipeError(
                f"turns {turns}: {self.path} has {self._most} turns; give no more, or another pool as distractors",
                setting="turns",
            )

    def fitting(self, most: int, taken: int, what: str) -> int:
        """Return the largest number of turns that fits.

        Args:
            most: The token limit.
            taken: The tokens of other content.
            what: A description of that content, for messages.

        Raises:
            RecipeError: If that content exceeds the limit, or the pool has too few turns to reach it.
        """
        if taken > most:
            raise RecipeError(f"tokens {most:,}: the preference of {what} alone takes {taken:,}", setting="tokens")
        turns = bisect_right(self._tokens, most - taken) - 1
        if turns == self._most and self.tokens(turns) + taken < most:
            raise RecipeError(
                f"tokens {most:,}: {self.path} has {self.tokens(turns):,} tokens in {turns} turns; give no more than "
                "that, or another pool as distractors",
                setting="tokens",
            )
        return turns

    def tokens(self, turns: int) -> int:
        """Return the number of tokens of the first turns."""
        return self._tokens[turns]

    def _first(self, turns: int) -> Shared[tuple[Line, ...]]:
        """Return the first turns, one object for all items of a length."""
        return Shared(self._lines[: turns * LINES_PER_TURN])

    @property
    def _most(self) -> int:
        return len(self._tokens) - 1

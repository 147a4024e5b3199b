"""The items of a run: every combination of its axes for every pair, one after another, as there may be many."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.stage import stream
from dialoom.inputs import DataError
from dialoom.personas.preferences import PreferencePair, PreferencePairs
from dialoom.roles.tokens import COUNTER, tokens

from .options import ARMS, Arm, PrefEvalOptions, Task
from .pool import Distractors
from .scenario import PrefEvalScenario

_USUAL_TURNS = 8


@dataclass(frozen=True, slots=True)
class _Company:
    """The other preferences of an item, and the arm of the conflict setting that this makes it."""

    extras: tuple[PreferencePair, ...] = ()
    arm: Arm = ""


def items(options: PrefEvalOptions, draw: random.Random, note: Callable[[str], None]) -> Iterator[PrefEvalScenario]:
    """By topic and pair, and for each pair by form, task, other preferences, place, length and method.

    Raises:
        RecipeError: If an option's value is wrong.
        DataError: If a source file is.
    """
    plan = _Plan(options, draw)
    note(f"{len(plan.topics)} topics of {plan.source.path}; tokens are counted by {COUNTER}")
    for number, item in enumerate(plan.items()):
        if number == options.limit:
            return
        yield item


class _Plan:
    def __init__(self, options: PrefEvalOptions, draw: random.Random) -> None:
        self._options = options
        self._seed = draw.getrandbits(63)
        self.source = options.source()
        self.topics = options.chosen_topics(self.source)
        self._pool = Distractors(options.pool())
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
        """Turns and tokens; also the tokens asked for, where the length is given so."""
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
        """The options' order: of a pair always the same, whatever form, method and length."""
        return tuple(self._stream(pair, "options").sample(range(len(pair.options)), len(pair.options)))

    def _companies(self, pair: PreferencePair) -> Iterator[_Company]:
        if self._options.conflict:
            for arm in ARMS:
                yield _Company(self._others.of_arm(arm, pair, self._stream(pair, "extras")), arm)
            return
        for count in self._options.extra:
            yield _Company(self._others.drawn(pair, count, self._stream(pair, "extras"), "extra"))

    def _stream(self, pair: PreferencePair, purpose: str) -> random.Random:
        """A stream of the pair's own: what is drawn for it does not depend on what else is planned."""
        return stream(self._seed, pair.id, purpose)


class _Others:
    """Explicit preferences besides an item's own."""

    def __init__(self, source: PreferencePairs, options: PrefEvalOptions) -> None:
        needed = options.conflict or any(options.extra)
        topics = source.topics() if needed else []
        self._by_topic = {topic: [_told_only(each) for each in source.pairs(topic, "explicit")] for topic in topics}
        self._source = source

    def drawn(self, pair: PreferencePair, count: int, draw: random.Random, setting: str) -> tuple[PreferencePair, ...]:
        """So many of other topics. More of them begin with the same ones."""
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
        """What comes before an item's preference in an arm of the conflict setting."""
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
    """The pair without what its task does not use, so that equal items have equal ids."""
    unused = {"conflicting": "", **({} if task == "classification" else {"options": ()})}
    return pair.model_copy(update=unused)


def _told_only(pair: PreferencePair) -> PreferencePair:
    return PreferencePair(
        topic=pair.topic, index=pair.index, form="explicit", preference=pair.preference, question=pair.question
    )


def _told_tokens(pair: PreferencePair) -> int:
    """The tokens of what tells a preference, without the model's own reply, which is not known yet."""
    texts: Sequence[str] = [line.content for line in pair.talk] or [pair.preference]
    return sum(map(tokens, texts))

"""The samples of a run: every combination of its axes for every pair, generated lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from dialoom.graphs.option_types import chosen
from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.shared import Shared
from dialoom.personas.apollo.source import (
    ApolloHistory,
    ApolloPair,
    ApolloSession,
    HistoryError,
    history,
)

from .options import COUNTERS, NAMES, ApolloOptions, Framework
from .scenario import ApolloCase, ApolloPerson, ApolloScenario, ApolloSetting


def samples(options: ApolloOptions, note: Callable[[str], None]) -> Iterator[ApolloScenario]:
    """Yield samples by pair, and for each pair by length (or sessions and place), evolving, and framework.

    Raises:
        RecipeError: If an option's value is wrong, or a history cannot be made.
        DataError: If a source file is broken.
    """
    plan = _Plan(options)
    asking = {pair.user for pair in plan.pairs}
    note(f"{len(plan.pairs)} pairs of {len(asking)} users; tokens are counted by {NAMES[options.tokenizer]}")
    if silent := [user for user in plan.users if user not in asking]:
        note(f"no pair is of {', '.join(silent)}")
    yield from islice(plan.samples(), options.limit)
    if plan.borrowed:
        note(f"{plan.borrowed:,} samples have tools among their eight that no session of their history calls")


class _Plan:
    def __init__(self, options: ApolloOptions) -> None:
        self._options = options
        self._source = options.loaded()
        self.users = chosen("users", options.users, self._source.users)
        wanted = set(self.users)
        self.pairs = [pair for pair in self._source.pairs.values() if pair.user in wanted]
        if not self.pairs:
            raise RecipeError(f"users: no pair of the source is of {', '.join(self.users)}", setting="users")
        split = options.split_of(self._source)
        self._people = {
            id_: Shared(
                ApolloPerson(
                    user=self._source.users[id_], unrelated=tuple(self._source.unrelated[id_]), split=split.get(id_, "")
                )
            )
            for id_ in self.users
        }
        self._settings = [Shared(self._setting(framework)) for framework in options.framework]
        self.borrowed = 0

    def samples(self) -> Iterator[ApolloScenario]:
        for pair in self.pairs:
            who, cases = self._people[pair.user], dict[bool, Shared[ApolloCase]]()
            for length, made in self._histories(pair):
                self.borrowed += bool(made.borrowed)
                telling = tuple(made.sessions[place - 1] for place in (*made.earlier, made.place))
                case = cases.setdefault(
                    bool(made.earlier),
                    Shared(ApolloCase(pair=pair, telling=telling, tools=made.tools, stale=made.stale)),
                )
                order = _order(made.sessions, who.value.unrelated, case.value.telling)
                for setting in self._settings:
                    yield ApolloScenario(
                        who=who, case=case, setting=setting, length=length, tokens=made.tokens, order=order
                    )

    def _histories(self, pair: ApolloPair) -> Iterator[tuple[int, ApolloHistory]]:
        """Yield histories with the requested length; 0 if a number of sessions was requested."""
        options = self._options
        make = partial(history, self._source, pair, counter=COUNTERS[options.tokenizer])
        for length in options.lengths():
            for evolving in _EVOLVING[options.evolving]:
                yield length, _made(make, "length", length=length, evolving=evolving)
        for sessions in options.history_sessions:
            for place in options.places(sessions):
                for evolving in _EVOLVING[options.evolving]:
                    wanted = {"sessions": sessions, "place": place, "evolving": evolving}
                    yield 0, _made(make, "history_sessions", **wanted)

    def _setting(self, framework: Framework) -> ApolloSetting:
        """Return the settings of a framework; values that a framework does not use are empty, for equal ids."""
        options, meta = self._options, self._source.meta
        return ApolloSetting(
            framework=framework,
            protocol=options.protocol,
            counter=NAMES[options.tokenizer],
            turn_limit=options.turn_limit,
            reflections=options.reflections if framework == "reflexion" else 0,
            embedder=options.embedder if framework == "rag" else "",
            world_seed=meta.world_seed,
            world=meta.world,
        )


_EVOLVING = {"no": (False,), "yes": (True,), "both": (False, True)}


def _made(make: Callable[..., ApolloHistory], setting: str, **wanted: Any) -> ApolloHistory:
    try:
        return make(**wanted)
    except HistoryError as error:
        raise RecipeError(f"{setting}: {error}", setting=setting) from error


def _order(
    sessions: Sequence[ApolloSession], pool: Sequence[ApolloSession], telling: Sequence[ApolloSession]
) -> tuple[int, ...]:
    places = {session.id: place for place, session in enumerate(pool)}
    places |= {session.id: -1 - place for place, session in enumerate(telling)}
    return tuple(places[session.id] for session in sessions)

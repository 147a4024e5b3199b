"""An APOLLO sample: a pair, a history of some length before its query, and how the agent is helped."""

from __future__ import annotations

from typing import Any, NamedTuple

from dialoom.graphs.scenario import Scenario
from dialoom.graphs.shared import Shared
from dialoom.personas.apollo.flows import FLOWS
from dialoom.personas.apollo.source import ApolloPair, ApolloSession, ApolloUser

from .call_lines import call_line
from .options import Framework, Protocol

GoldCalls = tuple[dict[str, Any], ...]


class NumberedSession(NamedTuple):
    """A session of a history, by its number in it, from 1."""

    number: int
    session: ApolloSession


class ApolloScenario(Scenario):
    """One sample.

    Attributes:
        user: Who asks.
        pair: What is asked, and what should be called.
        framework: How the agent is helped.
        protocol: How it writes calls.
        length: The tokens that the first message was to fill; 0 where the number of sessions was given.
        tokens: Those that it has.
        counter: What counted them.
        pool: The user's unrelated sessions, which all samples of the user share.
        telling: The sessions that tell a preference, oldest first: the pair's is the last, those before it tell what no
            longer holds.
        order: The history, oldest first: a number is a place in the pool, from 0; -1 is the first of `telling`, -2 the
            second, and so on.
        tools: What the agent may call.
        stale: What each preference that no longer holds would have it call.
        turn_limit: The most turns of the agent.
        reflections: How many more attempts follow a failed one; 0 but for reflexion.
        embedder: What rag compares sessions with; empty for the other frameworks.
        world_seed: Of the world that is called.
        world: Its hash.
    """

    user: Shared[ApolloUser]
    pair: Shared[ApolloPair]
    framework: Framework
    protocol: Protocol = "auto"
    length: int
    tokens: int
    counter: str
    pool: Shared[tuple[ApolloSession, ...]]
    telling: Shared[tuple[ApolloSession, ...]]
    order: tuple[int, ...]
    tools: tuple[str, ...]
    stale: tuple[GoldCalls, ...] = ()
    turn_limit: int
    reflections: int = 0
    embedder: str = ""
    world_seed: int
    world: str

    @property
    def label(self) -> str:
        """Pair, length and framework, e.g. `u03-flight-2-tone 8k reminder`."""
        shown = f"{self.length / 1000:g}k" if self.length else f"{len(self.order)} sessions at {self.place}"
        return " ".join([self.pair.value.id, shown, self.framework, *(["evolving"] if self.is_evolving else [])])

    @property
    def history(self) -> tuple[NumberedSession, ...]:
        """The past sessions."""
        return tuple(NumberedSession(number, self._session(at)) for number, at in enumerate(self.order, start=1))

    @property
    def places(self) -> tuple[int, ...]:
        """The numbers of the sessions that tell a preference, the one that holds last."""
        return tuple(number for number, at in enumerate(self.order, start=1) if at < 0)

    @property
    def place(self) -> int:
        """The number of the session that tells the preference."""
        return self.places[-1]

    @property
    def is_evolving(self) -> bool:
        """Whether earlier sessions tell what no longer holds."""
        return len(self.telling.value) > 1

    def facets(self) -> dict[str, Any]:
        """The axes of the tables."""
        pair = self.pair.value
        return {
            "pair": pair.id,
            "user": pair.user,
            "domain": FLOWS[pair.flow].domain,
            "flow": pair.flow,
            "kind": pair.kind,
            "form": pair.form,
            "query": pair.query_kind,
            "framework": self.framework,
            "length": self.length,
            "sessions": len(self.order),
            "place": self.place,
            "tokens": self.tokens,
            "evolving": self.is_evolving,
        }

    def described(self) -> dict[str, Any]:
        """The facets, the request, and what should be called."""
        pair = self.pair.value
        wanted = ", ".join(f"{facet} {value}" for facet, value in pair.values.items())
        gold = "\n".join(map(call_line, pair.calls()))
        return {**self.facets(), "request": pair.query, "preference": wanted, "gold": gold}

    def _session(self, at: int) -> ApolloSession:
        return self.pool.value[at] if at >= 0 else self.telling.value[-1 - at]

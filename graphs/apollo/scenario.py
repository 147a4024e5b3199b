"""An APOLLO sample: a pair, a history of some length before its query, and how the agent is helped."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from dialoom.graphs.scenario import Scenario
from dialoom.graphs.shared import Shared
from dialoom.personas.apollo.flows import FLOWS
from dialoom.personas.apollo.source import ApolloPair, ApolloSession, ApolloUser

from .loop import call_line, plain
from .options import Framework, Protocol

GoldCalls = tuple[dict[str, Any], ...]


class NumberedSession(NamedTuple):
    """A session of a history, by its number in it, from 1."""

    number: int
    session: ApolloSession


class ApolloPerson(BaseModel):
    """Who asks, with the unrelated sessions that all samples of the user draw from.

    Attributes:
        user: Who it is.
        unrelated: The sessions.
        split: Whether a model was trained on the user, `train` or `test`; empty where nobody says so.
    """

    model_config = ConfigDict(frozen=True)
    user: ApolloUser
    unrelated: tuple[ApolloSession, ...]
    split: str = ""


class ApolloCase(BaseModel):
    """What a pair's samples have in common, however long their histories are.

    Attributes:
        pair: What is asked, and what should be called.
        telling: The sessions that tell a preference, oldest first: the pair's is the last, those before it tell what no
            longer holds.
        tools: What the agent may call.
        stale: What each preference that no longer holds would have it call.
    """

    model_config = ConfigDict(frozen=True)
    pair: ApolloPair
    telling: tuple[ApolloSession, ...]
    tools: tuple[str, ...]
    stale: tuple[GoldCalls, ...] = ()


class ApolloSetting(BaseModel):
    """How the samples of a framework are played.

    Attributes:
        framework: How the agent is helped.
        protocol: How it writes calls.
        counter: What counted tokens.
        turn_limit: The most turns of the agent.
        reflections: How many more attempts follow a failed one; 0 but for reflexion.
        embedder: What rag compares sessions with; empty for the other frameworks.
        world_seed: Of the world that is called.
        world: Its hash.
    """

    model_config = ConfigDict(frozen=True)
    framework: Framework
    protocol: Protocol = "auto"
    counter: str
    turn_limit: int
    reflections: int = 0
    embedder: str = ""
    world_seed: int
    world: str


class ApolloScenario(Scenario):
    """One sample. What it shares with others is stored once, so it costs a run's file little more than some numbers.

    Attributes:
        who: Who asks.
        case: What is asked and told.
        setting: How it is played.
        length: The tokens that the first message was to fill; 0 where the number of sessions was given.
        tokens: Those that it has.
        order: The history, oldest first: a number is a place among the user's unrelated sessions, from 0; -1 is the
            first of those that tell a preference, -2 the second, and so on.
    """

    who: Shared[ApolloPerson]
    case: Shared[ApolloCase]
    setting: Shared[ApolloSetting]
    length: int
    tokens: int
    order: tuple[int, ...]

    @property
    def user(self) -> ApolloUser:
        """Who asks."""
        return self.who.value.user

    @property
    def pair(self) -> ApolloPair:
        """What is asked, and what should be called."""
        return self.case.value.pair

    @property
    def played(self) -> ApolloSetting:
        """How it is played."""
        return self.setting.value

    @property
    def label(self) -> str:
        """Pair, length and framework, e.g. `u03-flight-2-tone 8k reminder`."""
        shown = f"{self.length / 1000:g}k" if self.length else f"{len(self.order)} sessions at {self.place}"
        return " ".join([self.pair.id, shown, self.played.framework, *(["evolving"] if self.is_evolving else [])])

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
        return len(self.case.value.telling) > 1

    def facets(self) -> dict[str, Any]:
        """Return the axes of the tables."""
        pair = self.pair
        return {
            "pair": pair.id,
            "user": pair.user,
            "domain": FLOWS[pair.flow].domain,
            "flow": pair.flow,
            "kind": pair.kind,
            "form": pair.form,
            "query": pair.query_kind,
            "framework": self.played.framework,
            "length": self.length,
            "sessions": len(self.order),
            "place": self.place,
            "tokens": self.tokens,
            "evolving": self.is_evolving,
            **({"split": self.who.value.split} if self.who.value.split else {}),
        }

    def described(self) -> dict[str, Any]:
        """Return the facets, the request, and what should be called."""
        pair = self.pair
        wanted = ", ".join(f"{facet} {plain(value)}" for facet, value in pair.values.items())
        gold = "; ".join(map(call_line, pair.calls()))
        return {**self.facets(), "request": pair.query, "preference": wanted, "gold": gold}

    def _session(self, at: int) -> ApolloSession:
        return self.who.value.unrelated[at] if at >= 0 else self.case.value.telling[-1 - at]

"""APOLLO samples: a pair, a history of some length before its query, and the agent's framework."""

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
    """A session of a history with its number in it, from 1."""

    number: int
    session: ApolloSession


class ApolloPerson(BaseModel):
    """A user, with the unrelated sessions that all samples of the user draw from.

    Attributes:
        user: The user.
        unrelated: The sessions.
        split: The user's split, `train` or `test`; empty if unknown.
    """

    model_config = ConfigDict(frozen=True)
    user: ApolloUser
    unrelated: tuple[ApolloSession, ...]
    split: str = ""


class ApolloCase(BaseModel):
    """The data that a pair's samples share, however long their histories are.

    Attributes:
        pair: The query and the expected calls.
        telling: The sessions that state a preference, oldest first: the last is the pair's, those before it state
            outdated preferences.
        tools: The names of the tools offered to the agent.
        stale: The calls that each outdated preference leads to.
    """

    model_config = ConfigDict(frozen=True)
    pair: ApolloPair
    telling: tuple[ApolloSession, ...]
    tools: tuple[str, ...]
    stale: tuple[GoldCalls, ...] = ()


class ApolloSetting(BaseModel):
    """The settings that the samples of a framework share.

    Attributes:
        framework: The way in which the agent is helped.
        protocol: The format of its calls.
        counter: The name of the token counter.
        turn_limit: The most turns of the agent.
        reflections: The number of further attempts after a failed one; 0 except with reflexion.
        embedder: The embedder of rag; empty for other frameworks.
        world_seed: The world's seed.
        world: The world's hash.
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
    """One sample. Data shared with other samples is stored once, so a sample adds little to a run's file.

    Attributes:
        who: The user.
        case: The pair and its sessions.
        setting: The settings.
        length: The requested tokens of the first message; 0 if the number of sessions was requested.
        tokens: The actual tokens.
        order: The history, oldest first: a number from 0 is an index of the user's unrelated sessions; -1 is the first
            of the sessions that state a preference, -2 the second, and so on.
    """

    who: Shared[ApolloPerson]
    case: Shared[ApolloCase]
    setting: Shared[ApolloSetting]
    length: int
    tokens: int
    order: tuple[int, ...]

    @property
    def user(self) -> ApolloUser:
        """The user."""
        return self.who.value.user

    @property
    def pair(self) -> ApolloPair:
        """The pair: the query and the expected calls."""
        return self.case.value.pair

    @property
    def played(self) -> ApolloSetting:
        """The settings."""
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
        """The numbers of the sessions that state a preference, the current one last."""
        return tuple(number for number, at in enumerate(self.order, start=1) if at < 0)

    @property
    def place(self) -> int:
        """The number of the session that states the current preference."""
        return self.places[-1]

    @property
    def is_evolving(self) -> bool:
        """Return whether earlier sessions state outdated preferences."""
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
        """Return the facets, the request, the preference and the expected calls."""
        pair = self.pair
        wanted = ", ".join(f"{facet} {plain(value)}" for facet, value in pair.values.items())
        gold = "; ".join(map(call_line, pair.calls()))
        return {**self.facets(), "request": pair.query, "preference": wanted, "gold": gold}

    def _session(self, at: int) -> ApolloSession:
        return self.who.value.unrelated[at] if at >= 0 else self.case.value.telling[-1 - at]

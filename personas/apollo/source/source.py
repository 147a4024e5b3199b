"""A source folder: users, their sessions, and pairs of a session and a query, as JSONL files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from dialoom.outputs import folder_output
from dialoom.personas.apollo.flows import FlowRequest, GoldCall, Preference, Resident
from dialoom.personas.apollo.tools import Value
from dialoom.personas.apollo.world import World
from dialoom.personas.writing import json_line

PreferenceForm = Literal["explicit", "choice", "anti", "facts", "comparison", "tone"]
FORMS: tuple[PreferenceForm, ...] = get_args(PreferenceForm)
QueryKind = Literal["reactive", "proactive"]


class ApolloUser(BaseModel):
    """Somebody whom an assistant with tools knows.

    Attributes:
        id: Such as `u07`.
        name: First name.
        gender: Such as `woman`.
        age: In years.
        persona: A sentence or two about them; nothing in it bears on a preference.
        interests: What they call unrelated tools with, by the name of the parameter; agents are not shown it.
        city: Where they live.
        home: Their address.
        work: Where they work, an address in the same city.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    gender: str
    age: int
    persona: str
    interests: dict[str, Value]
    city: str
    home: str
    work: str

    @property
    def resident(self) -> Resident:
        """Where they live and work."""
        return Resident(self.city, self.home, self.work)

    def information(self, today: str) -> tuple[str, ...]:
        """Lines of what an agent is told of them, with today's date."""
        return (
            f"Name: {self.name}, {self.gender}, aged {self.age}",
            f"About: {self.persona}",
            f"City: {self.city}",
            f"Home: {self.home}",
            f"Work: {self.work}",
            f"Today: {today}",
        )


class ApolloPair(BaseModel):
    """A session in which a preference is told, and a later query that it decides.

    Attributes:
        id: Its name in the source.
        user: Whose it is: the user's id.
        flow: The task that both are about.
        preference_set: Which of the user's preferences for the flow it is, from 1.
        form: How the session tells it: said outright (`explicit`), or one of the five implicit forms.
        query_kind: `reactive` asks for the thing; `proactive` describes what goes on around the user.
        kind: How the preference reaches the arguments, as `Flow.kind`.
        query: What is asked.
        today: The day on which it is asked.
        slots: What the query says, with `today`.
        values: What the preference gives every facet of the flow.
        order: The flow's lookups in the order of the session.
        gold: The calls that should be made.
        tools: The flow's tools: those of the gold calls, and where a rule decides, those of both its ends.
        session: The id of the session.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str = Field(min_length=1)
    user: str
    flow: str
    preference_set: int = Field(ge=1)
    form: PreferenceForm
    query_kind: QueryKind
    kind: Literal["direct", "indirect", "conditional"]
    query: str = Field(min_length=1)
    today: str
    slots: dict[str, Value]
    values: dict[str, Value]
    order: tuple[str, ...]
    gold: tuple[GoldCall, ...] = Field(min_length=1)
    tools: tuple[str, ...]
    session: str

    @property
    def preference(self) -> Preference:
        """What is wanted."""
        return Preference(self.flow, self.values, self.order)

    def calls(self) -> list[dict[str, Any]]:
        """The gold calls alone."""
        return [call.call() for call in self.gold]

    def request(self, world: World, user: ApolloUser, preference: Preference | None = None) -> FlowRequest:
        """The query as a flow's request, for the pair's preference or another."""
        return FlowRequest(world, preference or self.preference, user.resident, self.slots)


_WORD = re.compile(r"[^\W\d_]+")
_ENDINGS = ("ings", "ing", "ies", "ers", "er", "ed", "es", "s", "ly", "y", "e")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A word without its ending, if three letters stay."""
    word = word.casefold()
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def words_of(text: str) -> list[str]:
    """A text's words, as they are."""
    return _WORD.findall(text)


def stems(text: str) -> frozenset[str]:
    """The stems of a text's words."""
    return frozenset(map(stem, words_of(text)))


class Speech(BaseModel):
    """A turn of words."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    speaker: Literal["user", "assistant"]
    text: str = Field(min_length=1)

    def lines(self) -> tuple[str, ...]:
        """As a history shows it."""
        return (f"{self.speaker}: {self.text}",)


class PastCall(BaseModel):
    """A turn of the assistant's that is a call, and what the tool answered."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    arguments: dict[str, Value]
    output: dict[str, Any] | list[dict[str, Any]]

    def call(self) -> dict[str, Any]:
        """As it was made."""
        return {"name": self.name, "arguments": self.arguments}

    def lines(self) -> tuple[str, ...]:
        """As a history shows it: JSON, the call and the output on a line each."""
        return _json({"call": self.call()}), _json({"output": self.output})


class ApolloSession(BaseModel):
    """One past conversation of a user with an assistant that has tools.

    Attributes:
        id: Its name in the source.
        user: Whose it is: the user's id.
        kind: Whether a preference is told in it.
        topic: Domain and first tool, such as `health/recipe_search`.
        turns: In order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str = Field(min_length=1)
    user: str
    kind: Literal["preference", "unrelated"]
    topic: str
    turns: tuple[PastCall | Speech, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that were called, each once, in order."""
        return tuple(dict.fromkeys(turn.name for turn in self.turns if isinstance(turn, PastCall)))

    @cached_property
    def asked(self) -> frozenset[str]:
        """Its calls, each as a line in which arguments are in the order of their names."""
        made = [turn.call() for turn in self.turns if isinstance(turn, PastCall)]
        return frozenset(json.dumps(call, ensure_ascii=False, sort_keys=True) for call in made)

    @property
    def words(self) -> str:
        """All that was said, without the calls."""
        return "\n".join(turn.text for turn in self.turns if isinstance(turn, Speech))

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """As a history shows it, without a number."""
        return tuple(line for turn in self.turns for line in turn.lines())

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words that it holds."""
        return stems("\n".join(self.lines))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


VERSION = 1
USERS, SESSIONS, PAIRS, META = "users.jsonl", "sessions.jsonl", "pairs.jsonl", "meta.jsonl"


class ApolloMeta(BaseModel):
    """What a source folder was made with.

    Attributes:
        version: Of the folder's layout.
        maker: `scripted` from templates, or `written` by models and people.
        seed: What it was drawn with.
        world_seed: The world's seed.
        world: The world's hash: calls and outputs are true in this world only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    version: int = Field(default=VERSION, ge=VERSION, le=VERSION)
    maker: Literal["scripted", "written"] = "scripted"
    seed: int
    world_seed: int = 0
    world: str


@dataclass(frozen=True)
class ApolloSource:
    """Users, sessions and pairs, in the order of their files.

    Attributes:
        users: By id.
        sessions: By id.
        pairs: By id.
        meta: What they were made with.
    """

    users: Mapping[str, ApolloUser]
    sessions: Mapping[str, ApolloSession]
    pairs: Mapping[str, ApolloPair]
    meta: ApolloMeta

    @classmethod
    def of(
        cls,
        users: Iterable[ApolloUser],
        sessions: Iterable[ApolloSession],
        pairs: Iterable[ApolloPair],
        meta: ApolloMeta,
    ) -> ApolloSource:
        """The source of these."""
        return cls(
            {user.id: user for user in users},
            {session.id: session for session in sessions},
            {pair.id: pair for pair in pairs},
            meta,
        )

    @cached_property
    def world(self) -> World:
        """The world that its calls are made in."""
        return World(self.meta.world_seed)

    @cached_property
    def unrelated(self) -> Mapping[str, Sequence[ApolloSession]]:
        """Every user's sessions in which no preference is told."""
        found: dict[str, list[ApolloSession]] = {user: [] for user in self.users}
        for session in self.sessions.values():
            if session.kind == "unrelated":
                found[session.user].append(session)
        return found

    @cached_property
    def pairs_for(self) -> Mapping[tuple[str, str], Sequence[ApolloPair]]:
        """The pairs of each user and flow."""
        found: dict[tuple[str, str], list[ApolloPair]] = {}
        for pair in self.pairs.values():
            found.setdefault((pair.user, pair.flow), []).append(pair)
        return found


def write_source(folder: Path, source: ApolloSource) -> None:
    """Write a source as a new folder, whole or not at all.

    Raises:
        OutputError: If the folder is there and is not empty, or cannot be written.
    """
    files: dict[str, Iterable[BaseModel]] = {
        USERS: source.users.values(),
        SESSIONS: source.sessions.values(),
        PAIRS: source.pairs.values(),
        META: [source.meta],
    }
    with folder_output(folder) as made:
        for name, models in files.items():
            with made.text(name) as file:
                file.writelines(json_line(model.model_dump()) for model in models)

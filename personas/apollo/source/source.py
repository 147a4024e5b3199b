"""A source folder with JSONL files of users, their sessions, and pairs of a session and a query."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field

from dialoom.grouping import group_pairs
from dialoom.inputs import DataError, Model, Record, validate_model
from dialoom.personas.apollo.calls import Value, json_text
from dialoom.personas.apollo.flows import FlowRequest, GoldCall, Preference, Resident
from dialoom.personas.apollo.world import World
from dialoom.personas.pools import check_id, read_json_values
from dialoom.personas.profile import Repairs

PreferenceForm = Literal["explicit", "choice", "anti", "facts", "comparison", "tone"]
FORMS: tuple[PreferenceForm, ...] = get_args(PreferenceForm)
QueryKind = Literal["reactive", "proactive"]


class ApolloUser(Record):
    """A user of an assistant with tools.

    Attributes:
        id: Such as `u07`.
        name: First name.
        gender: Such as `woman`.
        age: In years.
        persona: A sentence or two about the user, unrelated to any preference.
        interests: Frequent arguments in calls of unrelated tools, by parameter. Agents do not see them.
        city: The city of residence.
        home: The home address.
        work: The work address, in the same city.
    """

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
        """The user's city and addresses."""
        return Resident(self.city, self.home, self.work)

    def information(self, today: str) -> tuple[str, ...]:
        """Return the information about the user that agents see, with today's date."""
        return (
            f"Name: {self.name}, {self.gender}, aged {self.age}",
            f"About: {self.persona}",
            f"City: {self.city}",
            f"Home: {self.home}",
            f"Work: {self.work}",
            f"Today: {today}",
        )


class ApolloPair(Record):
    """A session in which a preference is stated, with a later query that the preference decides.

    Attributes:
        id: The pair's id in the source.
        user: The user's id.
        flow: The flow of both the session and the query.
        preference_set: The number of the preference among the user's preferences for the flow, from 1.
        form: The form in which the session states the preference: directly (`explicit`), or in one of the five implicit
            forms.
        query_kind: `reactive`: the query asks for something. `proactive`: the query describes what happens around the
            user.
        kind: How the preference decides the arguments, as in `Flow.kind`.
        query: The query's text.
        today: The day of the query.
        slots: The query's slots, including `today`.
        values: The preference's value for every facet of the flow.
        order: The flow's lookups in the order of the session.
        gold: The expected calls.
        tools: The flow's tools: those of the gold calls and, if the flow has a rule, those of both branches.
        session: The id of the session.
    """

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
        """The pair's preference."""
        return Preference(self.flow, self.values, self.order)

    def calls(self) -> list[dict[str, Any]]:
        """Return the expected calls as plain values."""
        return [call.call() for call in self.gold]

    def request(self, world: World, user: ApolloUser, preference: Preference | None = None) -> FlowRequest:
        """Return the query as a request of the flow, for the pair's preference or another preference."""
        return FlowRequest(world, preference or self.preference, user.resident, self.slots)


_WORD = re.compile(r"[^\W\d_]+")
_ENDINGS = ("ings", "ing", "ies", "ers", "er", "ed", "es", "s", "ly", "y", "e")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return a word without its ending, provided that at least three letters remain."""
    word = word.casefold()
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def split_words(text: str) -> list[str]:
    """Return a text's words, unchanged."""
    return _WORD.findall(text)


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words."""
    return frozenset(map(stem, split_words(text)))


class Speech(Record):
    """A spoken turn."""

    speaker: Literal["user", "assistant"]
    text: str = Field(min_length=1)

    def lines(self) -> tuple[str, ...]:
        """Return the turn in the form that a history shows."""
        return (f"{self.speaker}: {self.text}",)


class PastCall(Record):
    """A tool call of the assistant, and its result."""

    name: str
    arguments: dict[str, Value]
    output: dict[str, Any] | list[dict[str, Any]]

    def call(self) -> dict[str, Any]:
        """Return the call as plain values."""
        return {"name": self.name, "arguments": self.arguments}

    def lines(self) -> tuple[str, ...]:
        """Return the turn in the form that a history shows: one line of JSON for the call, and one for the output."""
        return json_text({"call": self.call()}), json_text({"output": self.output})


class ApolloSession(Record):
    """A past conversation of a user with an assistant that has tools.

    Attributes:
        id: The session's id in the source.
        user: The user's id.
        kind: `preference` if the session states one, otherwise `unrelated`.
        topic: The domain and the first tool, such as `health/recipe_search`.
        turns: The turns in order.
    """

    id: str = Field(min_length=1)
    user: str
    kind: Literal["preference", "unrelated"]
    topic: str
    turns: tuple[PastCall | Speech, ...]

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools called, without duplicates, in order."""
        return tuple(dict.fromkeys(turn.name for turn in self.turns if isinstance(turn, PastCall)))

    @cached_property
    def asked(self) -> frozenset[str]:
        """The tool calls as JSON with sorted keys, for comparison."""
        made = [turn.call() for turn in self.turns if isinstance(turn, PastCall)]
        return frozenset(json.dumps(call, ensure_ascii=False, sort_keys=True) for call in made)

    @property
    def words(self) -> str:
        """The spoken text, without the calls."""
        return "\n".join(turn.text for turn in self.turns if isinstance(turn, Speech))

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines of the session in a history, without its number."""
        return tuple(line for turn in self.turns for line in turn.lines())

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words of the session."""
        return stems("\n".join(self.lines))


VERSION = 1
USERS, SESSIONS, PAIRS, META = "users.jsonl", "sessions.jsonl", "pairs.jsonl", "meta.jsonl"


class ApolloMeta(Record):
    """The settings with which a source folder was made.

    Attributes:
        version: The version of the folder's layout.
        maker: `scripted` from templates, or `written` by models and people.
        seed: The seed of the source.
        world_seed: The world's seed.
        world: The world's hash. Calls and outputs are valid only in this world.
    """

    version: int = Field(default=VERSION, ge=VERSION, le=VERSION)
    maker: Literal["scripted", "written"] = "scripted"
    seed: int
    world_seed: int = 0
    world: str


@dataclass(frozen=True)
class ApolloSource:
    """Users, sessions and pairs, in the order of their files.

    Attributes:
        users: The users by id.
        sessions: The sessions by id.
        pairs: The pairs by id.
        meta: The settings with which they were made.
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
        """Return a source made of users, sessions and pairs."""
        return cls(
            {user.id: user for user in users},
            {session.id: session for session in sessions},
            {pair.id: pair for pair in pairs},
            meta,
        )

    @cached_property
    def world(self) -> World:
        """The world of its calls."""
        return World(self.meta.world_seed)

    @cached_property
    def unrelated(self) -> Mapping[str, Sequence[ApolloSession]]:
        """Each user's sessions that state no preference."""
        found: dict[str, list[ApolloSession]] = {user: [] for user in self.users}
        for session in self.sessions.values():
            if session.kind == "unrelated":
                found[session.user].append(session)
        return found

    @cached_property
    def pairs_for(self) -> Mapping[tuple[str, str], Sequence[ApolloPair]]:
        """The pairs of each user and flow."""
        return group_pairs(((pair.user, pair.flow), pair) for pair in self.pairs.values())


def read_lines(path: Path, model: type[Model]) -> list[tuple[int, Model]]:
    """Read a file's lines as objects of a model, each with its line number.

    Raises:
        DataError: If the file is missing or empty, a line is invalid, or two lines have the same `id`.
    """
    found: list[tuple[int, Model]] = []
    lines: dict[str, int] = {}
    for number, value in read_json_values(path, Repairs()):
        found.append((number, validate_model(model, value, path, number)))
        if "id" in value:
            check_id(value["id"], lines, path, number)
    if not found:
        raise DataError(path, "the file is empty")
    return found

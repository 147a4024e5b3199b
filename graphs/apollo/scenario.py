"""APOLLO samples and the options of a run: a pair, a history before its query, and the agent's framework."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from dialoom import personas
from dialoom.graphs.recipe import (
    AbsolutePath,
    Axis,
    EmbedderName,
    FilledAxis,
    FromOne,
    RecipeError,
    RecipeOptions,
    chosen,
)
from dialoom.graphs.scenario import Scenario, Shared
from dialoom.inputs import Frozen
from dialoom.personas import EMBEDDER_FORMS
from dialoom.personas.apollo.flows import FLOWS
from dialoom.personas.apollo.source import (
    ApolloPair,
    ApolloSession,
    ApolloSource,
    ApolloUser,
    estimate_tokens,
    read_source,
)
from dialoom.personas.apollo.source.history import TokenCounter
from dialoom.roles.parameters import TOKENIZER, count_tokens

from .loop import TURN_LIMIT, describe_call, to_plain_text

Framework = Literal["function-calling", "reminder", "reflexion", "memory", "rag"]
Protocol = Literal["native", "text", "auto"]
Tokenizer = Literal["characters", "cl100k_base"]
Evolving = Literal["no", "yes", "both"]
FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)
TOKEN_COUNTERS: dict[Tokenizer, TokenCounter] = {"characters": estimate_tokens, TOKENIZER: count_tokens}  # type: ignore[dict-item]
TOKENIZER_NAMES: dict[Tokenizer, str] = {"characters": "characters / 4", "cl100k_base": TOKENIZER}
"""The names of the tokenizers in reports."""

SAMPLE = Path(personas.__file__).parent / "samples" / "apollo"
_LENGTH = re.compile(r"(\d+)(k?)")


class ApolloOptions(RecipeOptions):
    """The options of the recipe `apollo`; repeatable ones are axes of the table."""

    source: AbsolutePath | None = Field(None, description="Source folder; by default the shipped sample.")
    users: str = Field("all", description="Users: all, or ids separated by commas.")
    test_users: str = Field("", description="Ids of held-out users, separated by commas; tables show them separately.")
    length: Axis[str] = Field(
        (), description="Tokens of the first message, such as 2k; by default 2k, 4k, 8k and 12k. Repeatable."
    )
    history_sessions: Axis[FromOne] = Field(
        (), description="Number of past sessions, in place of a length. Repeatable."
    )
    position: Axis[str] = Field(
        (),
        description="With history-sessions: position of the relevant session, from 1, or all positions; by default "
        "random. Repeatable.",
    )
    evolving: Evolving = Field(
        "no", description="Whether earlier sessions state outdated preferences: no, yes, or both."
    )
    framework: FilledAxis[Framework] = Field(
        ("function-calling",), description=f"Method that helps the agent: {', '.join(FRAMEWORKS)}. Repeatable."
    )
    protocol: Protocol = Field(
        "auto",
        description="Format of tools and calls: native, through the provider's interface or as arguments of your own "
        "player; text, described in the prompt; auto, native if the player is known to accept tools.",
    )
    turn_limit: int = Field(TURN_LIMIT, ge=1, description="Maximum number of the agent's turns.")
    reflections: int = Field(1, ge=1, description="Further attempts of reflexion after a failed one.")
    embedder: EmbedderName = Field("lexical", description=f"Embedder of rag: {EMBEDDER_FORMS}.")
    tokenizer: Tokenizer = Field(
        "characters", description="Token counter: characters (four count as one token), or cl100k_base."
    )
    limit: int | None = Field(None, ge=1, description="Maximum number of samples.")

    @field_validator("length")
    @classmethod
    def _lengths(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [value for value in values if not _parse_length(value)]:
            raise ValueError(f"must be a number of tokens such as 2k or 2000, got {wrong[0]!r}")
        return values

    @field_validator("position")
    @classmethod
    def _places(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [value for value in values if value != "all" and not (value.isdecimal() and int(value))]:
            raise ValueError(f"must be a number from 1, or all, got {wrong[0]!r}")
        return values

    @model_validator(mode="after")
    def _one_size(self) -> ApolloOptions:
        if self.length and self.history_sessions:
            raise ValueError("length and history_sessions exclude each other; give one of them")
        if self.position and not self.history_sessions:
            raise ValueError("position needs history_sessions; give both")
        if self.position and self.evolving != "no":
            raise ValueError("position and evolving exclude each other; give one of them")
        return self

    def loaded(self) -> ApolloSource:
        """Return the source.

        Raises:
            DataError: If one of its files is missing or broken.
        """
        return read_source(self.source or SAMPLE)

    def lengths(self) -> tuple[int, ...]:
        """Return the lengths in tokens; none if the number of sessions is given."""
        if self.history_sessions:
            return ()
        return tuple(dict.fromkeys(map(_parse_length, self.length or ("2k", "4k", "8k", "12k"))))

    def places(self, sessions: int) -> tuple[int | None, ...]:
        """Return the requested positions of the relevant session among this many sessions; `None` for a random one.

        Raises:
            RecipeError: If a position is beyond the number of sessions.
        """
        if "all" in self.position:
            return tuple(range(1, sessions + 1))
        places = tuple(map(int, self.position))
        if beyond := [place for place in places if place > sessions]:
            raise RecipeError(
                f"position {beyond[0]}: there are {sessions} sessions; give a position from 1 to {sessions}",
                setting="position",
            )
        return places or (None,)

    def split_of(self, source: ApolloSource) -> dict[str, str]:
        """Return each user's split, `train` or `test`; empty unless the option `test_users` is set.

        Raises:
            RecipeError: If a user id is unknown.
        """
        tested = chosen("test_users", self.test_users, source.users) if self.test_users else []
        return {user: "test" if user in tested else "train" for user in source.users} if tested else {}


def _parse_length(text: str) -> int:
    """Parse a length in tokens; return 0 if it is invalid."""
    found = _LENGTH.fullmatch(text.strip().lower())
    return int(found[1]) * (1000 if found[2] else 1) if found else 0


class ApolloPerson(Frozen):
    """A user, with the unrelated sessions that all samples of the user draw from.

    Attributes:
        user: The user.
        unrelated: The sessions about other things.
        split: The user's split, `train` or `test`; empty if unknown.
    """

    user: ApolloUser
    unrelated: tuple[ApolloSession, ...]
    split: str = ""


class ApolloCase(Frozen):
    """The data shared by all samples of a pair, whatever the length of their histories.

    Attributes:
        pair: The query, and the expected calls.
        telling: The sessions that state a preference, oldest first. The last one states the pair's preference, earlier
            ones state outdated preferences.
        tools: The names of the tools offered to the agent.
        stale: The calls to which each outdated preference leads.
    """

    pair: ApolloPair
    telling: tuple[ApolloSession, ...]
    tools: tuple[str, ...]
    stale: tuple[tuple[dict[str, Any], ...], ...] = ()


class ApolloSetting(Frozen):
    """The settings that all samples of a framework share.

    Attributes:
        framework: The way in which the agent is helped.
        protocol: The format of its calls.
        counter: The name of the token counter.
        turn_limit: Maximum number of the agent's turns.
        reflections: The number of further attempts after a failed one; 0 except with reflexion.
        embedder: The embedder of rag; empty for other frameworks.
        world_seed: The world's seed.
        world: The world's hash.
    """

    framework: Framework
    protocol: Protocol = "auto"
    counter: str
    turn_limit: int
    reflections: int = 0
    embedder: str = ""
    world_seed: int
    world: str


class ApolloScenario(Scenario):
    """A sample. Data that several samples share is stored once, so that a sample adds little to a run's file.

    Attributes:
        who: The user.
        case: The pair and its sessions.
        setting: The settings.
        length: The requested number of tokens of the first message; 0 if a number of sessions was requested.
        tokens: The actual number of tokens.
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
        """The user of the sample."""
        return self.who.value.user

    @property
    def pair(self) -> ApolloPair:
        """The query and the expected calls, as a pair."""
        return self.case.value.pair

    @property
    def played(self) -> ApolloSetting:
        """The settings of the sample's framework."""
        return self.setting.value

    @property
    def label(self) -> str:
        """The pair, length and framework, e.g. `u03-flight-2-tone 8k reminder`."""
        shown = f"{self.length / 1000:g}k" if self.length else f"{len(self.order)} sessions at {self.place}"
        return " ".join([self.pair.id, shown, self.played.framework, *(["evolving"] if self.is_evolving else [])])

    @property
    def history(self) -> dict[int, ApolloSession]:
        """The past sessions by their numbers, from 1, oldest first."""
        unrelated, telling = self.who.value.unrelated, self.case.value.telling
        return {number: unrelated[at] if at >= 0 else telling[-1 - at] for number, at in enumerate(self.order, start=1)}

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
        preference = ", ".join(f"{facet} {to_plain_text(value)}" for facet, value in pair.values.items())
        gold = "; ".join(map(describe_call, pair.calls()))
        return {**self.facets(), "request": pair.query, "preference": preference, "gold": gold}

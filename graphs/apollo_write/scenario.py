"""APOLLO source data written by models: options, scenarios (one user each), and the models' reply types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field

from dialoom.graphs import AbsolutePath, RecipeOptions, Scenario, chosen
from dialoom.graphs.apollo_build import load_planned_world
from dialoom.inputs import Frozen
from dialoom.personas.apollo import World
from dialoom.personas.apollo.calls import Value
from dialoom.personas.apollo.flows import FLOWS
from dialoom.personas.apollo.source import PreferenceForm, Speech
from dialoom.personas.apollo.source.drafts import Text, UserDrafts
from dialoom.personas.apollo.source.scripted import ERRANDS_PER_TOOL, PAIRS_PER_SET, SETS_PER_FLOW

DEFAULT_PLAN: Mapping[str, Any] = {
    "flows": tuple(FLOWS),
    "pairs": PAIRS_PER_SET,
    "errands": ERRANDS_PER_TOOL,
    "world_seed": 0,
}
"""The default amount of data: the flows, the numbers of pairs and unrelated sessions, and the world's seed."""
Until = Literal["users", "preferences", "sessions", "complete"]
UNTIL: tuple[Until, ...] = get_args(Until)


class WriteOptions(RecipeOptions):
    """The options of the recipe `apollo-write`."""

    users: int = Field(2, ge=1, le=1000, description="Number of users; the paper has 20.")
    pairs: int | None = Field(
        None,
        ge=1,
        le=12,
        description=f"Number of pairs of a session and a query for each of a user's {SETS_PER_FLOW} preferences per "
        f"flow. [default: {PAIRS_PER_SET}, or as in the drafts]",
    )
    flows: str | None = Field(
        None,
        description=f"Flows: all, or names from {', '.join(FLOWS)}, separated by commas. "
        "[default: all, or as in the drafts]",
    )
    errands: int | None = Field(
        None,
        ge=0,
        le=20,
        description="Number of sessions without a preference, per user and unrelated tool. "
        f"[default: {ERRANDS_PER_TOOL}, or as in the drafts]",
    )
    offers: int = Field(
        3, ge=1, le=10, description="Number of sets of three preferences per flow that the writer chooses from."
    )
    rewrites: int = Field(2, ge=0, le=5, description="Maximum number of rewrites of a rejected draft.")
    verify_leaks: int = Field(
        0,
        ge=0,
        le=20,
        description="Number of times that a model answers each query without the history; one right answer drops the "
        "pair.",
    )
    drafts: AbsolutePath | None = Field(
        None, description="Continue from a folder of exported drafts, which people may have accepted or edited."
    )
    until: Until = Field(
        "complete", description=f"Stop after a stage, to review and edit the drafts: {', '.join(UNTIL)}."
    )
    personas: AbsolutePath | None = Field(
        None, description="JSON list of personas from which users are made; by default the 100 shipped ones."
    )
    world: int | None = Field(None, description="Seed of the simulated world. [default: 0, or as in the drafts]")

    def plan(self) -> dict[str, Any]:
        """Return the entries of `DEFAULT_PLAN` that the options set to another value.

        If a run continues drafts, the values of all other entries are taken from the drafts.

        Raises:
            RecipeError: If a flow is unknown.
        """
        flows = tuple(sorted(chosen("flows", self.flows, FLOWS), key=[*FLOWS].index)) if self.flows else None
        values = {"flows": flows, "pairs": self.pairs, "errands": self.errands, "world_seed": self.world}
        return {name: value for name, value in values.items() if value is not None}


class WriteScenario(Scenario):
    """A user, with everything needed to write the user's data, so that a started run does not read files again.

    Attributes:
        user: The user's id.
        is_first: Whether this user's export includes the description of the whole source.
        seed_persona: The persona that the profile is made from.
        city: The city of residence.
        home: The home address.
        work: The work address.
        drafts: The input drafts.
        seed: The seed of every draw.
        world_seed: The world's seed.
        world: The hash of the world. A different world gives a different source.

    All other attributes have the same meaning as the options with the same names.
    """

    user: str
    is_first: bool
    seed_persona: str
    city: str
    home: str
    work: str
    drafts: UserDrafts = UserDrafts()
    flows: tuple[str, ...]
    pairs: int
    errands: int
    offers: int
    rewrites: int
    verify_leaks: int
    until: Until
    seed: int
    world_seed: int
    world: str

    @property
    def label(self) -> str:
        """The user's id and city, and the last stage if the run stops before the final one."""
        return f"{self.user} {self.city}" if self.until == "complete" else f"{self.user} {self.city} {self.until}"

    def facets(self) -> dict[str, Any]:
        """Return the user, the city, and the last stage."""
        return {"user": self.user, "city": self.city, "until": self.until}

    def described(self) -> dict[str, Any]:
        """Return the facets, the options, and the number of input drafts."""
        chosen = self.model_dump(include={"flows", "pairs", "errands", "rewrites", "verify_leaks", "seed"})
        return {**self.facets(), "persona": self.seed_persona, "drafts": len(self.drafts.all()), **chosen}


def load_world(scenario: WriteScenario) -> World:
    """Return the world for which a scenario was planned.

    Raises:
        RecipeError: If this version's world differs.
    """
    return load_planned_world(scenario.world_seed, scenario.world)


class WrittenProfile(Frozen):
    """The profile of a user."""

    name: Text
    gender: Text
    age: Annotated[int, Field(ge=16, le=99)]
    persona: Text


class ChosenPreferences(Frozen):
    """Which of some preferences are a user's, by number, and how each came about."""

    choice: Annotated[int, Field(ge=1)]
    stories: Annotated[list[Text], Field(min_length=1)]


class WrittenTurn(Frozen):
    """A turn of words."""

    speaker: Literal["user", "assistant"]
    text: Text

    def speech(self) -> Speech:
        """Return the turn in the form in which sessions store it."""
        return Speech(speaker=self.speaker, text=self.text)


class WrittenCall(Frozen):
    """A call; whether it can run, the executor says."""

    name: str
    arguments: dict[str, Any]


class WrittenPiece(Frozen):
    """A session's next turns, and the call that ends them; without one the session is over."""

    turns: list[WrittenTurn]
    call: WrittenCall | None = None


class WrittenQuery(Frozen):
    """What is asked later."""

    query: Text


class CheckedDraft(Frozen):
    """A checker's word on something."""

    explanation: str = ""
    verdict: Literal["right", "wrong"]


class FacetValue(Frozen):
    """What somebody takes the value of a facet to be; none if it is not told."""

    facet: str
    value: Value | None = None


class ReadTalk(Frozen):
    """What a reader makes of a session: the values it tells, in which form, and whether anything is wrong with it."""

    facets: list[FacetValue]
    form: PreferenceForm
    explanation: str = ""
    verdict: Literal["right", "wrong"] = "right"


class GuessedValues(Frozen):
    """What somebody takes who has not read the history."""

    facets: list[FacetValue]


REPLY_TYPES: Mapping[str, type[BaseModel]] = {
    "written-profile": WrittenProfile,
    "chosen-preferences": ChosenPreferences,
    "written-piece": WrittenPiece,
    "written-query": WrittenQuery,
    "checked-draft": CheckedDraft,
    "read-talk": ReadTalk,
    "guessed-values": GuessedValues,
}

"""APOLLO's data, created from templates. Each scenario is a user; its outcome holds the user's sessions and pairs."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypedDict

from pydantic import Field

from dialoom.personas.apollo import World
from dialoom.personas.apollo.flows import FlowError
from dialoom.personas.apollo.source import FORMS, ApolloMeta, ApolloUser
from dialoom.personas.apollo.source.checks import measure_topic_diversity
from dialoom.personas.apollo.source.scripted import (
    ERRANDS_PER_TOOL,
    MAX_USERS,
    PAIRS_PER_SET,
    SETS_PER_FLOW,
    build_user_part,
    draw_users,
)
from dialoom.personas.apollo.source.source import META, PAIRS, SESSIONS, USERS

from . import Episode, Exporter, FileItem, Graph, Outcome, RecipeError, RecipeOptions, Scenario, Scene, Table, Update
from .apollo.loop import find_gold_problem
from .generation import GenerationRecipe, Loop, generation_graph
from .tables.table import Cell

SOURCE_FORMAT = "the source folder that the recipe apollo plays: users, sessions, pairs and meta"
"""The description of the export format `apollo-source`."""


class BuildOptions(RecipeOptions):
    """The options of the recipe `apollo-build`."""

    users: int = Field(MAX_USERS, ge=1, le=MAX_USERS, description=f"Number of users, at most {MAX_USERS}.")
    pairs: int = Field(
        PAIRS_PER_SET,
        ge=1,
        le=12,
        description=f"Number of pairs of a session and a query for each of a user's {SETS_PER_FLOW} preferences per "
        "flow.",
    )
    errands: int = Field(
        ERRANDS_PER_TOOL,
        ge=1,
        le=20,
        description="Number of sessions without a preference, per user and unrelated tool.",
    )
    world: int = Field(0, description="Seed of the simulated world.")


class BuildScenario(Scenario):
    """A scenario: a user, and the amount of data to make for the user.

    Attributes:
        user: The user.
        is_first: Whether this user's export includes the description of the whole source.
        pairs: The number of pairs of a session and a query per preference.
        errands: The number of unrelated sessions per tool.
        seed: The seed of every draw.
        world_seed: The world's seed.
        world: The hash of the world. A different world gives a different source.
    """

    user: ApolloUser
    is_first: bool
    pairs: int
    errands: int
    seed: int
    world_seed: int
    world: str

    @property
    def label(self) -> str:
        """The user's id and name."""
        return f"{self.user.id} {self.user.name}"

    def facets(self) -> dict[str, Any]:
        """Return the user, and the options that decide the amount of data."""
        about = {"user": self.user.id, "name": self.user.name, "city": self.user.city}
        return {**about, "pairs": self.pairs, "errands": self.errands, "seed": self.seed}


class BuildState(TypedDict, total=False):
    """The state that is checkpointed: the rows of the source's files, and the reasons why a flow has no rows."""

    sessions: list[dict[str, Any]]
    pairs: list[dict[str, Any]]
    left_out: dict[str, str]


def _source_rows(episode: Episode, *_: Any) -> Iterator[FileItem]:
    """Yield every row with the name of its file."""
    for name in (META, USERS, SESSIONS, PAIRS):
        yield from (((name,), row) for row in episode.outcome.details[name])


class ApolloBuild(GenerationRecipe):
    """Users, sessions and queries for APOLLO, created from templates without calls to models."""

    name = "apollo-build"
    roles = {}
    prompts = ()
    options_type = BuildOptions
    scenario_type = BuildScenario
    formats = {"apollo-source": Exporter(SOURCE_FORMAT, "lists", _source_rows)}
    folder = "apollo-source"

    def scenarios(
        self, options: BuildOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[BuildScenario]:
        """Yield the users one by one."""
        seed, world = draw.randrange(2**32), World(options.world)
        people = draw_users(world, options.users, seed)
        note(f"{len(people)} users in the world {world.hash[:12]}")
        for place, user in enumerate(people):
            yield BuildScenario(
                user=user,
                is_first=place == 0,
                pairs=options.pairs,
                errands=options.errands,
                seed=seed,
                world_seed=options.world,
                world=world.hash,
            )

    def graph(self, options: BuildOptions) -> Graph:
        """Return a graph with a single node, because a user's data is created within a second or two."""
        return generation_graph(BuildState, Loop(build))

    def initial(self, scenario: BuildScenario) -> dict[str, Any]:
        """Return the empty state."""
        return {"sessions": [], "pairs": [], "left_out": {}}

    def outcome(self, scenario: BuildScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the outcome, with the user's rows for the source's files."""
        meta = ApolloMeta(seed=scenario.seed, world_seed=scenario.world_seed, world=scenario.world)
        sessions, pairs = state["sessions"], state["pairs"]
        return Outcome(
            messages=(),
            ended_by="error" if failed else "made",
            counts={"sessions": len(sessions), "pairs": len(pairs)},
            details={
                META: [meta.model_dump()] if scenario.is_first else [],
                USERS: [scenario.user.model_dump()],
                SESSIONS: sessions,
                PAIRS: pairs,
                **({"left_out": left_out} if (left_out := state.get("left_out")) else {}),
            },
        )

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the tables of the pairs' forms and kinds, and of the sessions' diversity."""
        topics: dict[str, list[str]] = {"preference": [], "unrelated": []}
        pairs: Counter[tuple[str, str]] = Counter()
        left_out: list[Sequence[Cell]] = []
        for episode in episodes:
            left_out += [
                [episode.facets["user"], flow, why] for flow, why in episode.outcome.details.get("left_out", {}).items()
            ]
            for session in episode.outcome.details[SESSIONS]:
                topics[session["kind"]].append(session["topic"])
            pairs.update((pair["form"], pair["query_kind"]) for pair in episode.outcome.details[PAIRS])
        return [
            build_pairs_table(pairs),
            build_topics_table(topics),
            *([_build_left_out_table(left_out)] if left_out else []),
        ]


async def build(_: BuildState, scene: Scene[BuildScenario]) -> Update:
    """Create all sessions and pairs of a user."""
    scenario = scene.scenario
    world = load_planned_world(scenario.world_seed, scenario.world)
    part = await asyncio.to_thread(  # in a thread, so that the run can be stopped in the meantime
        build_user_part, world, scenario.user, scenario.pairs, scenario.errands, scenario.seed
    )
    for pair in part.pairs:
        if refused := find_gold_problem(world, pair):
            raise FlowError(f"flow {pair.flow}, pair {pair.id}: {refused}")
    sessions, pairs = ([each.model_dump() for each in rows] for rows in (part.sessions, part.pairs))
    return {"sessions": sessions, "pairs": pairs, "left_out": part.left_out}


@lru_cache(maxsize=4)
def load_planned_world(seed: int, planned: str) -> World:
    """Return the world of a seed, and check that its hash is the one in the run's plan.

    Raises:
        RecipeError: If this version's world differs.
    """
    world = World(seed)
    if world.hash != planned:
        raise RecipeError(
            f"world: the run was planned in the world {planned[:12]}..., but this version has another world"
        )
    return world


def _build_left_out_table(rows: list[Sequence[Cell]]) -> Table:
    notes = ["For some homes and workplaces, no request distinguishes three preferences."]
    return Table("left-out", f"Flows without pairs: {len(rows)}", ["user", "flow", "why"], rows, notes)


def build_pairs_table(counts: Counter[tuple[str, str]]) -> Table:
    """Return a table of the number of pairs by form and kind of query."""
    kinds = ("reactive", "proactive")
    rows: list[Sequence[Cell]] = [
        [form, sum(counts[form, kind] for kind in kinds), *(counts[form, kind] for kind in kinds)] for form in FORMS
    ]
    rows.append(["all", counts.total(), *(sum(counts[form, kind] for form in FORMS) for kind in kinds)])
    return Table("pairs", "Pairs by the form of the session and the kind of the query", ["form", "pairs", *kinds], rows)


def build_topics_table(topics: Mapping[str, list[str]]) -> Table:
    """Return a table of the sessions' diversity, computed from the topics of each kind."""
    kinds = {**topics, "all": [topic for each in topics.values() for topic in each]}
    rows: list[Sequence[Cell]] = [[kind, *measure_topic_diversity(found)] for kind, found in kinds.items()]
    columns = ["sessions of kind", "sessions", "topics (K)", "entropy H / log K", "topics over 2 %"]
    notes = [
        "A topic is a domain and a first tool. For the paper's sessions, the entropy is 0.960, and 19 topics have over "
        "2 %, by a different measure."
    ]
    return Table("topics", "Diversity of the sessions", columns, rows, notes, {"entropy H / log K": 3})


RECIPE = ApolloBuild()

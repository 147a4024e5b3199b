"""The `apollo-write` recipe: a scenario is a user; its graph writes and checks the user's data."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel

from dialoom.graphs.capabilities import (
    Exporter,
    WithExports,
    WithGate,
    WithOutline,
    WithProgress,
    WithPrompts,
    WithRoles,
)
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.generation import Loop, generation_graph, unwritten
from dialoom.graphs.outcome import Episode, Outcome
from dialoom.graphs.recipe import Graph, Recipe, RecipeError
from dialoom.graphs.reporting.table import Outline, Span, Table
from dialoom.personas.apollo import World
from dialoom.personas.apollo.source.drafts import DRAFTS, DraftsMeta, UserDrafts, read_drafts
from dialoom.personas.apollo.source.scripted import drawn_resident, user_id
from dialoom.personas.preferences import read_tellers

from . import exports, profiles, queries, sessions
from .drafts import WriteState, draft_of, rows_of
from .pairs import planned_sessions
from .replies import REPLY_TYPES
from .scenario import PLAN, UNTIL, WriteOptions, WriteScenario


class ApolloWrite(Recipe, WithRoles, WithPrompts, WithGate, WithOutline, WithProgress, WithExports):
    """Data for agents with tools, written and checked by models; the executor runs every call."""

    name = "apollo-write"
    summary = "Users, sessions and queries for APOLLO, written and checked by models, mended by people."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {"writer": 0.8, "checker": 0.0, queries.SOLVER: 0.8}
    prompts = (
        "apollo_write/profile",
        "apollo_write/profile-check",
        "apollo_write/preferences",
        "apollo_write/preferences-check",
        "apollo_write/session",
        "apollo_write/session-check",
        "apollo_write/errand",
        "apollo_write/errand-check",
        "apollo_write/query",
        "apollo_write/query-check",
        "apollo_write/solve",
    )
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = REPLY_TYPES
    options_type = WriteOptions
    scenario_type = WriteScenario

    def roles_used(self, options: WriteOptions) -> Mapping[str, float]:
        """Return all roles; the solver only if leaks are verified."""
        return {role: value for role, value in self.roles.items() if options.verify_leaks or role != queries.SOLVER}

    def scenarios(
        self, options: WriteOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[WriteScenario]:
        """Yield the users one by one: those of the drafts, if there are any."""
        seed, given = draw.randrange(2**32), dict[str, UserDrafts]()
        plan = {**PLAN, **options.plan()}
        if options.drafts:
            meta, given = read_drafts(options.drafts)
            seed, plan = meta.seed, _as_before(options, meta)
        world = World(plan["world_seed"])
        seeds = read_tellers(options.personas)
        wanted = list(given) or [user_id(number) for number in range(1, options.users + 1)]
        if not given and options.users > len(seeds):
            raise RecipeError(
                f"users {options.users}: there are {len(seeds)} personas to make them of; give a number up to that",
                setting="users",
            )
        if given:
            mended = sum(draft.is_mended for drafts in given.values() for draft in drafts.all())
            note(f"{len(given)} users in the drafts, {mended} drafts that were mended or accepted are looked at again")
        note(f"{len(wanted)} users in the world {world.hash[:12]}")
        for place, user in enumerate(wanted):
            drafts = given.get(user, UserDrafts())
            resident = drafts.users[0].resident if drafts.users else drawn_resident(world, seed, place + 1)
            yield WriteScenario(
                user=user,
                is_first=place == 0,
                seed_persona="" if given else seeds[place],
                **resident._asdict(),
                drafts=drafts,
                **options.model_dump(include=_AS_CHOSEN),
                **plan,
                seed=seed,
                world=world.hash,
            )

    def graph(self, options: WriteOptions) -> Graph:
        """Return the loops for profile, preferences, sessions and queries, up to the requested stage."""

        def after_piece(name: str) -> Callable[[WriteState], str]:
            return lambda state: name if state["calls"] else "look_at_sessions"

        pieces = {"talk": after_piece("call"), "call": after_piece("talk")}
        loops = [
            Loop(profiles.introduce, profiles.look_at_user),
            Loop(profiles.offer, profiles.prefer, profiles.look_at_preferences),
            Loop(sessions.talk, sessions.call, sessions.look_at_sessions, inner=pieces),
            Loop(queries.ask, queries.look_at_queries),
        ][: UNTIL.index(options.until) + 1]
        if options.until == "complete" and options.verify_leaks:
            loops.append(Loop(queries.verify))
        return generation_graph(WriteState, *loops)

    def initial(self, scenario: WriteScenario) -> dict[str, Any]:
        """Return the state with the input drafts, if any."""
        drafts = {kind: rows_of(scenario.drafts.of(kind)) for kind in DRAFTS}
        return {"drafts": drafts, "offers": {}, "calls": {}, **unwritten()}

    def outcome(self, scenario: WriteScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the drafts with their notes; and of those that passed, the pairs' forms and kinds, and the topics."""
        made: Any = {**self.initial(scenario), **state}
        passing = [] if failed else list(exports.with_query(scenario, made))
        topics: dict[str, list[str]] = {"preference": [], "unrelated": []}
        for id_, planned in planned_sessions(scenario, made).items():
            draft = draft_of(made, "sessions", id_)
            if draft is not None and draft.is_sound:
                session = planned.session(draft)
                topics[session.kind].append(session.topic)
        rows = [row for kind in DRAFTS for row in made["drafts"][kind].values()]
        return Outcome(
            messages=(),
            ended_by="error" if failed else scenario.until,
            counts={
                "drafts": len(rows),
                "out": sum(bool(row["problem"]) for row in rows),
                "sessions": sum(map(len, topics.values())),
                "pairs": len(passing),
            },
            details={
                "drafts": made["drafts"],
                "notes": made["notes"],
                "pairs": [[each.form, each.kind] for each, _ in passing],
                "topics": topics,
            },
        )

    def talks(self, scenario: WriteScenario, outcome: Outcome) -> Iterator[Talk]:
        """Return the texts that were not dropped, and the sessions."""
        return exports.written_talks(scenario, outcome.details["drafts"], self.facts(scenario))

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of sessions and queries."""
        drafts = state.get("drafts", {})
        return {"session": len(drafts.get("sessions", ())), "query": len(drafts.get("queries", ()))}

    def outline(self, episode: Episode) -> Outline:
        """Return the user's drafts as an outline, with the problems of dropped ones."""
        drafts = episode.outcome.details["drafts"]
        counts = episode.outcome.counts
        title = (
            f"{episode.facets['user']}: {counts['pairs']} pairs, {counts['sessions']} sessions, {counts['out']} dropped"
        )
        rows = [row for kind in DRAFTS for row in drafts[kind].values()]
        parts = [
            Outline(
                [Span(f"{row['id']}  ", "note"), Span(_outlined(row), "user")],
                [Outline([Span(f"dropped: {row['problem']}", "note")])] if row["problem"] else [],
            )
            for row in rows
        ]
        return Outline([Span(title, "heading")], parts)

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the attempts in which drafts passed, the rejections, and a table of the pairs."""
        return exports.tables(episodes)

    def exporters(self) -> Mapping[str, Exporter]:
        """Return the formats of the source folder and of the drafts."""
        return exports.EXPORTERS

    def folder_format(self, options: WriteOptions) -> str:
        """Return the format of the source, or of the drafts if the run ends earlier."""
        return "apollo-source" if options.until == "complete" else "drafts"


_AS_CHOSEN = {"offers", "rewrites", "verify_leaks", "until"}


def _as_before(options: WriteOptions, meta: DraftsMeta) -> dict[str, Any]:
    """Return the settings of the drafts, which the run keeps.

    Raises:
        RecipeError: If an option differs from them, or this version's world differs.
    """
    before = {name: getattr(meta, name) for name in PLAN}
    for name, given in options.plan().items():
        if given != before[name]:
            option = name.removesuffix("_seed")
            told = f"{option} {_told(given)}: the drafts were made with {_told(before[name])}; leave it out"
            raise RecipeError(told, setting=option)
    if World(meta.world_seed).hash != meta.world:
        raise RecipeError(
            f"drafts: made in the world {meta.world[:12]}..., and this version's is another", setting="drafts"
        )
    return before


def _told(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _outlined(row: Mapping[str, Any]) -> str:
    if "turns" in row:
        return next((turn["text"] for turn in row["turns"] if "text" in turn), "")
    if "sets" in row:
        return "; ".join(each["story"] for each in row["sets"])
    return str(row.get("query") or row.get("persona"))


RECIPE = ApolloWrite()

"""APOLLO's data, written by models: users, preferences, sessions and queries, checked, and edited by people.

The recipe's graph writes and checks a user's data; its exports and tables present that data.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dialoom.graphs import (
    Episode,
    Exporter,
    Facts,
    FileItem,
    GateLine,
    Graph,
    Outcome,
    Outline,
    RecipeError,
    Span,
    Table,
    Talk,
)
from dialoom.graphs.apollo_build import SOURCE_FORMAT, build_pairs_table, build_topics_table
from dialoom.graphs.generation import GenerationRecipe, Loop, NoteTally, generation_graph, unwritten
from dialoom.personas.apollo import World
from dialoom.personas.apollo.source import ApolloMeta, Speech
from dialoom.personas.apollo.source.drafts import (
    DRAFTS,
    ApolloDraft,
    DraftsMeta,
    PreferencesDraft,
    QueryDraft,
    SessionDraft,
    UserDraft,
    UserDrafts,
    read_drafts,
)
from dialoom.personas.apollo.source.scripted import draw_resident, format_user_id
from dialoom.personas.apollo.source.sessions import find_interests
from dialoom.personas.apollo.source.source import META, PAIRS, SESSIONS, USERS
from dialoom.personas.preferences import read_tellers

from . import writing
from .drafts import PlannedPair, Rows, WriteState, dump_drafts, get_draft, get_passed_draft, plan_pairs, plan_sessions
from .scenario import DEFAULT_PLAN, REPLY_TYPES, UNTIL, WriteOptions, WriteScenario

_COPIED_OPTIONS = {"offers", "rewrites", "verify_leaks", "until"}


def _load_plan(options: WriteOptions, meta: DraftsMeta) -> dict[str, Any]:
    """Return the settings with which the input drafts were written. The run uses the same settings.

    Raises:
        RecipeError: If an option differs from these settings, or this version's world differs.
    """
    before = {name: getattr(meta, name) for name in DEFAULT_PLAN}
    for name, given in options.plan().items():
        if given != before[name]:
            option = name.removesuffix("_seed")
            texts = [",".join(each) if isinstance(each, tuple) else str(each) for each in (given, before[name])]
            message = f"{option} {texts[0]}: the drafts were made with {texts[1]}; leave the option out"
            raise RecipeError(message, setting=option)
    if World(meta.world_seed).hash != meta.world:
        raise RecipeError(
            f"drafts: created in the world {meta.world[:12]}..., but this version has another world", setting="drafts"
        )
    return before


def _summarize_draft(row: Mapping[str, Any]) -> str:
    if "turns" in row:
        return next((turn["text"] for turn in row["turns"] if "text" in turn), "")
    if "sets" in row:
        return "; ".join(each["story"] for each in row["sets"])
    return str(row.get("query") or row.get("persona"))


def draft_rows(episode: Episode, scenario: WriteScenario, *_: Any) -> Iterator[FileItem]:
    """Yield a user's drafts, dropped ones first within each kind, and, with the first user, the drafts' settings."""
    if scenario.is_first:
        plan = scenario.model_dump(include={"flows", "pairs", "errands"})
        yield (META,), DraftsMeta(**_build_meta(scenario), **plan).model_dump(mode="json")
    if episode.state == "done":
        for kind in DRAFTS:
            rows = episode.outcome.details["drafts"][kind].values()
            yield from (((f"{kind}.jsonl",), row) for row in sorted(rows, key=lambda row: not row["problem"]))


def source_rows(episode: Episode, scenario: WriteScenario, *_: Any) -> Iterator[FileItem]:
    """Yield a user with all sessions and pairs of the user that passed every check. A user without pairs is left out.

    Raises:
        RecipeError: If the run ends before queries are written.
    """
    if scenario.until != "complete":
        raise RecipeError(
            f"format 'apollo-source': the run ends at the stage {scenario.until}; export drafts, and continue from them"
        )
    state = episode.outcome.details
    pairs = list(complete_pairs(scenario, state))
    user = get_draft(state, "users", scenario.user)
    if scenario.is_first:
        yield (META,), ApolloMeta(maker="written", **_build_meta(scenario)).model_dump()
    if not pairs:
        return
    stating = {each.session_id for each, _ in pairs}
    sessions = [
        planned.session(draft)
        for id_, planned in plan_sessions(scenario, state).items()
        if (id_ in stating or not isinstance(planned, PlannedPair))
        and (draft := get_passed_draft(state, "sessions", id_))
    ]
    yield (USERS,), user.person().model_copy(update={"interests": find_interests(sessions)}).model_dump()
    yield from (((SESSIONS,), session.model_dump()) for session in sessions)
    for each, query in pairs:
        yield (PAIRS,), each.pair(scenario, query).model_dump()


def complete_pairs(scenario: WriteScenario, state: Mapping[str, Any]) -> Iterator[tuple[PlannedPair, str]]:
    """Yield the pairs whose session and query have passed, with the query's text."""
    for each in plan_pairs(scenario, state):
        if (query := get_passed_draft(state, "queries", each.id)) and get_passed_draft(
            state, "sessions", each.session_id
        ):
            yield each, query.query


def _build_meta(scenario: WriteScenario) -> dict[str, Any]:
    return {"seed": scenario.seed, "world_seed": scenario.world_seed, "world": scenario.world}


def build_talks(scenario: WriteScenario, drafts: Mapping[str, Rows], facts: Facts) -> Iterator[Talk]:
    """Yield the texts of each draft that was not dropped, and each session. Unchanged input drafts are left out.

    Texts are compared only within a draft, because requests about the same occasion may have similar wording.

    Args:
        scenario: The user's scenario, which holds the input drafts.
        drafts: The drafts by kind and id, as plain values.
        facts: The facts for the gate.
    """
    given = {(draft.id, draft.own_id) for draft in scenario.drafts.all()}
    found = [type_.model_validate(row) for kind, type_ in DRAFTS.items() for row in drafts[kind].values()]
    for draft in [each for each in found if not each.problem and (each.id, each.own_id) not in given]:
        if isinstance(draft, SessionDraft):
            yield Talk(
                [
                    GateLine(turn.speaker, turn.text, where=f"{draft.id}, turn {place}")
                    for place, turn in enumerate(draft.turns, start=1)
                    if isinstance(turn, Speech)
                ],
                facts,
                author="writer",
            )
        else:
            yield Talk.of_texts("writer", _extract_texts(draft), facts)


def _extract_texts(draft: ApolloDraft) -> dict[str, str]:
    """Return a draft's texts other than dialogue lines, by location."""
    match draft:
        case UserDraft():
            return {f"{draft.id}, persona": draft.persona}
        case PreferencesDraft():
            return {f"{draft.id}, story {place}": each.story for place, each in enumerate(draft.sets, start=1)}
        case QueryDraft():
            return {f"{draft.id}, query": draft.query}
        case _:
            return {}


class ApolloWrite(GenerationRecipe):
    """Users, sessions and queries for APOLLO, written and checked by models; people can edit them."""

    name = "apollo-write"
    roles = {"writer": 0.8, "checker": 0.0, writing.SOLVER: 0.8}
    prompts = ("apollo_write/*",)
    reply_types = REPLY_TYPES
    options_type = WriteOptions
    scenario_type = WriteScenario
    formats = {
        "apollo-source": Exporter(SOURCE_FORMAT, "lists", source_rows, only_done=True),
        "drafts": Exporter(
            "all drafts with their problems, to accept, edit and continue from (a folder)", "lists", draft_rows
        ),
    }
    folder = "apollo-source"

    def roles_used(self, options: WriteOptions) -> Mapping[str, float]:
        """Return all roles, but the solver only if leaks are verified."""
        return {role: value for role, value in self.roles.items() if options.verify_leaks or role != writing.SOLVER}

    def scenarios(
        self, options: WriteOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[WriteScenario]:
        """Yield the users one by one: the users of the input drafts, if there are any; otherwise new users."""
        seed, given = draw.randrange(2**32), dict[str, UserDrafts]()
        plan = {**DEFAULT_PLAN, **options.plan()}
        if options.drafts:
            meta, given = read_drafts(options.drafts)
            seed, plan = meta.seed, _load_plan(options, meta)
        world = World(plan["world_seed"])
        seeds = read_tellers(options.personas)
        users = list(given) or [format_user_id(number) for number in range(1, options.users + 1)]
        if not given and options.users > len(seeds):
            raise RecipeError(
                f"users {options.users}: only {len(seeds)} personas are available, and each user needs one",
                setting="users",
            )
        if given:
            edited = sum(draft.is_edited for drafts in given.values() for draft in drafts.all())
            note(f"{len(given)} users in the drafts; {edited} edited or accepted drafts are reviewed again")
        note(f"{len(users)} users in the world {world.hash[:12]}")
        for place, user in enumerate(users):
            drafts = given.get(user, UserDrafts())
            yield WriteScenario(
                user=user,
                is_first=place == 0,
                seed_persona="" if given else seeds[place],
                **(drafts.users[0].resident if drafts.users else draw_resident(world, seed, place + 1))._asdict(),
                drafts=drafts,
                **options.model_dump(include=_COPIED_OPTIONS),
                **plan,
                seed=seed,
                world=world.hash,
            )

    def graph(self, options: WriteOptions) -> Graph:
        """Return a graph of the loops for profile, preferences, sessions and queries, up to the requested stage."""
        pieces: Mapping[str, Callable[[WriteState], str]] = {
            "talk": lambda state: "call" if state["calls"] else "look_at_sessions",
            "call": lambda state: "talk" if state["calls"] else "look_at_sessions",
        }
        loops = [
            Loop(writing.introduce, writing.look_at_user),
            Loop(writing.offer, writing.prefer, writing.look_at_preferences),
            Loop(writing.talk, writing.call, writing.look_at_sessions, inner=pieces),
            Loop(writing.ask, writing.look_at_queries),
        ][: UNTIL.index(options.until) + 1]
        if options.until == "complete" and options.verify_leaks:
            loops.append(Loop(writing.verify))
        return generation_graph(WriteState, *loops)

    def initial(self, scenario: WriteScenario) -> dict[str, Any]:
        """Return the state with the input drafts, if any."""
        drafts = {kind: dump_drafts(scenario.drafts.of(kind)) for kind in DRAFTS}
        return {"drafts": drafts, "offers": {}, "calls": {}, **unwritten()}

    def outcome(self, scenario: WriteScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the drafts with their notes, and the forms, kinds and topics of the pairs and sessions that passed."""
        made: Any = {**self.initial(scenario), **state}
        passing = [] if failed else list(complete_pairs(scenario, made))
        topics: dict[str, list[str]] = {"preference": [], "unrelated": []}
        for id_, planned in plan_sessions(scenario, made).items():
            if draft := get_passed_draft(made, "sessions", id_):
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
        """Return the texts of drafts that were not dropped, and the sessions."""
        return build_talks(scenario, outcome.details["drafts"], self.facts(scenario))

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
                [Span(f"{row['id']}  ", "note"), Span(_summarize_draft(row), "user")],
                [Outline([Span(f"dropped: {row['problem']}", "note")])] if row["problem"] else [],
            )
            for row in rows
        ]
        return Outline([Span(title, "heading")], parts)

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return tables of attempts in which drafts passed, of rejections, and of the resulting pairs and sessions."""
        tally, forms = NoteTally(), Counter[tuple[str, str]]()
        topics: dict[str, list[str]] = {"preference": [], "unrelated": []}
        for details in (episode.outcome.details for episode in episodes if episode.state == "done"):
            tally.add(details["notes"])
            forms.update((form, kind) for form, kind in details["pairs"])
            for kind, found in details["topics"].items():
                topics[kind] += found
        return [*tally.tables(), *([build_pairs_table(forms), build_topics_table(topics)] if forms else [])]


RECIPE = ApolloWrite()

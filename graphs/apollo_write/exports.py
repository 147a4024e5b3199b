"""Formats of a written source: drafts for people to accept and mend, and the folder that APOLLO reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dialoom.graphs.capabilities import Exporter
from dialoom.graphs.outcome import Episode
from dialoom.graphs.recipe import RecipeError
from dialoom.personas.apollo.source import ApolloMeta
from dialoom.personas.apollo.source.drafts import DRAFTS, DraftsMeta
from dialoom.personas.apollo.source.errands import interests_shown
from dialoom.personas.apollo.source.source import META, PAIRS, SESSIONS, USERS
from dialoom.prompts import PromptLibrary

from .making import WriteState, draft_of
from .pairs import PlannedPair, planned_pairs, planned_sessions
from .scenario import WriteScenario

Named = tuple[tuple[str, ...], dict[str, Any]]
"""The name of a file, and one of its lines."""


def draft_rows(
    episode: Episode,
    scenario: WriteScenario,
    prompts: PromptLibrary,  # noqa: ARG001
    models: Mapping[str, str],  # noqa: ARG001
) -> Iterator[Named]:
    """Every draft, first of each user's kind what is out; and what they were made with."""
    if scenario.is_first:
        plan = scenario.model_dump(include={"flows", "pairs", "errands"})
        yield (META,), DraftsMeta(**_made_with(scenario), **plan).model_dump(mode="json")
    if episode.state == "done":
        for kind in DRAFTS:
            rows = episode.outcome.details["drafts"][kind].values()
            yield from (((f"{kind}.jsonl",), row) for row in sorted(rows, key=lambda row: not row["problem"]))


def source_rows(
    episode: Episode,
    scenario: WriteScenario,
    prompts: PromptLibrary,  # noqa: ARG001
    models: Mapping[str, str],  # noqa: ARG001
) -> Iterator[Named]:
    """A user with all sessions and pairs that have passed every check; nothing of a user who has no pair.

    Raises:
        RecipeError: If the run ends before there are queries.
    """
    if episode.state != "done":
        return
    if scenario.until != "complete":
        raise RecipeError(
            f"format 'apollo-source': the run ends with {scenario.until}; export drafts, and go on from them"
        )
    state = _state(episode)
    pairs = [(each, query) for each, query in with_query(scenario, state)]
    user = draft_of(state, "users", scenario.user)
    if scenario.is_first:
        yield (META,), ApolloMeta(maker="written", **_made_with(scenario)).model_dump()
    if not pairs:
        return
    told = {each.session_id for each, _ in pairs}
    sessions = []
    for id_, planned in planned_sessions(scenario, state).items():
        draft = draft_of(state, "sessions", id_)
        if draft is not None and draft.is_sound and (id_ in told or not isinstance(planned, PlannedPair)):
            sessions.append(planned.session(draft))
    person = user.person().model_copy(update={"interests": interests_shown(sessions)})
    yield (USERS,), person.model_dump()
    yield from (((SESSIONS,), session.model_dump()) for session in sessions)
    for each, query in pairs:
        yield (PAIRS,), each.pair(scenario, query).model_dump()


def with_query(scenario: WriteScenario, state: WriteState) -> Iterator[tuple[PlannedPair, str]]:
    """The pairs whose session and query have passed, with the query."""
    for each in planned_pairs(scenario, state):
        session, query = draft_of(state, "sessions", each.session_id), draft_of(state, "queries", each.id)
        if session is not None and session.is_sound and query is not None and query.is_sound:
            yield each, query.query


def _made_with(scenario: WriteScenario) -> dict[str, Any]:
    return {"seed": scenario.seed, "world_seed": scenario.world_seed, "world": scenario.world}


def _state(episode: Episode) -> WriteState:
    return {"drafts": episode.outcome.details["drafts"]}


EXPORTERS: Mapping[str, Exporter] = {
    "apollo-source": Exporter(
        "the source folder that the recipe apollo plays: users, sessions, pairs and meta", "lists", source_rows
    ),
    "drafts": Exporter(
        "all drafts with what is wrong of them, to accept, mend and go on from (a folder)", "lists", draft_rows
    ),
}

"""Exports of finished users: the folder that APOLLO reads, drafts to edit, texts for the gate, and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dialoom.graphs.apollo_build.recipe import pairs_table, topics_table
from dialoom.graphs.capabilities import Exporter
from dialoom.graphs.gate.talk import Facts, Said, Talk
from dialoom.graphs.generation import NoteTally
from dialoom.graphs.outcome import Episode
from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.reporting.table import Table
from dialoom.personas.apollo.source import ApolloMeta, Speech
from dialoom.personas.apollo.source.drafts import (
    DRAFTS,
    ApolloDraft,
    DraftsMeta,
    PreferencesDraft,
    QueryDraft,
    SessionDraft,
    UserDraft,
)
from dialoom.personas.apollo.source.sessions import interests_shown
from dialoom.personas.apollo.source.source import META, PAIRS, SESSIONS, USERS

from .drafts import Rows, draft_of
from .pairs import PlannedPair, planned_pairs, planned_sessions
from .scenario import WriteScenario

Named = tuple[tuple[str, ...], dict[str, Any]]
"""A file's name, and one of its lines."""


def draft_rows(episode: Episode, scenario: WriteScenario, *_: Any) -> Iterator[Named]:
    """Yield every draft, dropped ones of each user and kind first; and the settings of the drafts."""
    if scenario.is_first:
        plan = scenario.model_dump(include={"flows", "pairs", "errands"})
        yield (META,), DraftsMeta(**_made_with(scenario), **plan).model_dump(mode="json")
    if episode.state == "done":
        for kind in DRAFTS:
            rows = episode.outcome.details["drafts"][kind].values()
            yield from (((f"{kind}.jsonl",), row) for row in sorted(rows, key=lambda row: not row["problem"]))


def source_rows(episode: Episode, scenario: WriteScenario, *_: Any) -> Iterator[Named]:
    """Yield a user with all sessions and pairs that passed every check; nothing for a user without pairs.

    Raises:
        RecipeError: If the run ends before queries are written.
    """
    if episode.state != "done":
        return
    if scenario.until != "complete":
        raise RecipeError(
            f"format 'apollo-source': the run ends with {scenario.until}; export drafts, and go on from them"
        )
    state = episode.outcome.details
    pairs = list(with_query(scenario, state))
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


def with_query(scenario: WriteScenario, state: Mapping[str, Any]) -> Iterator[tuple[PlannedPair, str]]:
    """Yield the pairs whose session and query have passed, with the query's text."""
    for each in planned_pairs(scenario, state):
        session, query = draft_of(state, "sessions", each.session_id), draft_of(state, "queries", each.id)
        if session is not None and session.is_sound and query is not None and query.is_sound:
            yield each, query.query


def _made_with(scenario: WriteScenario) -> dict[str, Any]:
    return {"seed": scenario.seed, "world_seed": scenario.world_seed, "world": scenario.world}


def written_talks(scenario: WriteScenario, drafts: Mapping[str, Rows], facts: Facts) -> Iterator[Talk]:
    """Yield the texts of each draft that was not dropped, and each session; unchanged input drafts are omitted.

    Requests of the same occasion may be worded alike, so texts are compared only within a draft.

    Args:
        scenario: The user's scenario, with the input drafts.
        drafts: The drafts by kind and id, as plain values.
        facts: The facts for the gate.
    """
    given = {(draft.id, draft.own_id) for draft in scenario.drafts.all()}
    found = [type_.model_validate(row) for kind, type_ in DRAFTS.items() for row in drafts[kind].values()]
    for draft in found:
        if draft.problem or (draft.id, draft.own_id) in given:
            continue
        if isinstance(draft, SessionDraft):
            yield Talk(
                [
                    Said(turn.speaker, turn.text, where=f"{draft.id}, turn {place}")
                    for place, turn in enumerate(draft.turns, start=1)
                    if isinstance(turn, Speech)
                ],
                facts,
                author="writer",
            )
        else:
            yield Talk.of_texts("writer", _texts(draft), facts)


def _texts(draft: ApolloDraft) -> dict[str, str]:
    """Return the texts of a draft that are not spoken, by location."""
    match draft:
        case UserDraft():
            return {f"{draft.id}, persona": draft.persona}
        case PreferencesDraft():
            return {f"{draft.id}, story {place}": each.story for place, each in enumerate(draft.sets, start=1)}
        case QueryDraft():
            return {f"{draft.id}, query": draft.query}
        case _:
            return {}


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """Return the attempts in which drafts passed, the rejections, and tables of the pairs and sessions that passed."""
    tally, forms = NoteTally(), Counter[tuple[str, str]]()
    topics: dict[str, list[str]] = {"preference": [], "unrelated": []}
    for episode in episodes:
        if episode.state == "done":
            details = episode.outcome.details
            tally.add(details["notes"])
            forms.update((form, kind) for form, kind in details["pairs"])
            for kind, found in details["topics"].items():
                topics[kind] += found
    return [*tally.tables(), *([pairs_table(forms), topics_table(topics)] if forms else [])]


EXPORTERS: Mapping[str, Exporter] = {
    "apollo-source": Exporter(
        "the source folder that the recipe apollo plays: users, sessions, pairs and meta", "lists", source_rows
    ),
    "drafts": Exporter(
        "all drafts with what is wrong of them, to accept, mend and go on from (a folder)", "lists", draft_rows
    ),
}

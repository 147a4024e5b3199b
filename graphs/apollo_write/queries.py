"""Later queries: they contain everything the calls need and nothing about the preference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialoom.graphs.apollo.loop import gold_refusal
from dialoom.graphs.asking import ask_each
from dialoom.graphs.generation import Note, Result, due, earlier, written
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.apollo.flows import FLOWS, Preference
from dialoom.personas.apollo.source.drafts import QueryDraft
from dialoom.personas.apollo.source.keeping import query_refusal
from dialoom.personas.apollo.source.sessions import REQUESTS
from dialoom.personas.apollo.source.showing import about_flow, facets_shown, occasion
from dialoom.personas.apollo.source.wording import query_wording_refusal

from .drafts import WriteState, ask_checker, draft_of, review, rows_of, unwritten_of
from .pairs import PlannedPair, planned_pairs
from .replies import GuessedValues
from .scenario import WriteScenario, world_of
from .sessions import same_value

SOLVER = "solver"
_LEAK = "verified leak: a model that has not read the history makes the right calls"


async def ask(state: WriteState, scene: Scene) -> Update:
    """Write the queries of pairs whose session has passed."""
    scenario: WriteScenario = scene.scenario
    planned = _with_session(scenario, state)
    rows = state["drafts"]["queries"]
    stale = [id_ for id_, each in planned.items() if id_ in rows and rows[id_]["about"] != each.asked]
    asked = {
        id_: {**_inputs(planned[id_]), **earlier(state, id_)}
        for id_ in due(state, unwritten_of(state, "queries", planned) + stale)
    }
    replies, problems = await written(scene, "apollo_write/query", asked)
    made = [
        QueryDraft(id=id_, user=scenario.user, about=planned[id_].asked, kind=planned[id_].kind, query=reply.query)
        for id_, reply in replies.items()
    ]
    return {"drafts": {"queries": rows_of(made)}, "problems": problems}


async def look_at_queries(state: WriteState, scene: Scene) -> Update:
    """Check that queries reveal no preference, and state everything required."""
    scenario: WriteScenario = scene.scenario
    planned = _with_session(scenario, state)
    drafts = {id_: draft for id_ in planned if (draft := draft_of(state, "queries", id_)) is not None}

    def rules(draft: QueryDraft) -> str | None:
        each = planned[draft.id]
        pair = each.pair(scenario, draft.query)
        worded = query_wording_refusal(draft.query, each.kind, each.user)
        world = world_of(scenario)
        return worded or query_refusal(world, each.user, pair) or gold_refusal(world, pair)

    async def checker(asked: Mapping[str, QueryDraft]) -> dict[str, str]:
        inputs = {}
        for id_, draft in asked.items():
            slots = planned[id_].slots.asked
            seen = {"kind": planned[id_].kind, "occasion": occasion(slots), "query": draft.query}
            inputs[id_] = {**_shared_inputs(planned[id_]), **seen}
        return await ask_checker(scene, "query", "apollo_write/query-check", inputs)

    return await review(state, scene, "queries", drafts, rules, checker, lambda draft: draft.query)


async def verify(state: WriteState, scene: Scene) -> Update:
    """Have a model answer each query several times without the history; drop queries with a right answer."""
    scenario: WriteScenario = scene.scenario
    times, planned = scenario.verify_leaks, _with_session(scenario, state)
    drafts: dict[str, QueryDraft] = {
        id_: draft
        for id_ in planned
        if (draft := draft_of(state, "queries", id_)) and draft.is_sound and draft.verified < times
    }
    asked = {
        (id_, time): {**_shared_inputs(planned[id_]), "query": draft.query}
        for id_, draft in drafts.items()
        for time in range(times)
    }
    replies = await ask_each(scene, "apollo_write/solve", asked)
    notes, after = list[Note](), list[QueryDraft]()
    for id_, draft in drafts.items():
        answers = [reply for (of, _), reply in replies.items() if of == id_ and reply is not None]
        is_leak = any(_is_right(scenario, planned[id_], answer) for answer in answers)
        after.append(draft.looked_at(_LEAK) if is_leak else draft.model_copy(update={"verified": len(answers)}))
        check, reason = ("verified leak", _LEAK) if is_leak else ("", "")
        result: Result = "dropped" if is_leak else "passed"
        notes.append(Note(kind="verified queries", id=id_, check=check, round=1, result=result, reason=reason))
    if drafts:
        leaks = sum(note["result"] == "dropped" for note in notes)
        scene.tell(f"{scenario.user}: {leaks} of {len(drafts)} queries are answered without the history")
    return {"drafts": {"queries": rows_of(after)}, "notes": notes}


def _with_session(scenario: WriteScenario, state: WriteState) -> dict[str, PlannedPair]:
    """Return the pairs whose session has passed."""
    found = {}
    for each in planned_pairs(scenario, state):
        session = draft_of(state, "sessions", each.session_id)
        if session is not None and session.is_sound:
            found[each.id] = each
    return found


def _shared_inputs(planned: PlannedPair) -> dict[str, Any]:
    """Return the inputs shared by the writer, the checker and the solver."""
    flow, slots = planned.preference.flow, planned.slots.asked
    return {
        "user": planned.user.information(str(slots["today"])),
        "about": about_flow(flow),
        "facets": facets_shown(flow, planned.preference.values),
    }


def _inputs(planned: PlannedPair) -> dict[str, Any]:
    flow = planned.preference.flow
    return {
        **_shared_inputs(planned),
        "flow": flow,
        "kind": planned.kind,
        "occasion": occasion(planned.slots.asked),
        "example": REQUESTS["flows"]["flight" if flow == "hotel" else "hotel"][planned.kind][0],
    }


def _is_right(scenario: WriteScenario, planned: PlannedPair, answer: GuessedValues) -> bool:
    """Return whether the calls that follow from guessed values are the gold calls."""
    flow = FLOWS[planned.preference.flow]
    said = {each.facet: each.value for each in answer.facets}
    values = {}
    for name in planned.preference.values:
        known = [value for value in flow.facet(name).values if same_value(said.get(name), value)]
        if not known:
            return False
        values[name] = known[0]
    request = planned.pair(scenario, "?").request(world_of(scenario), planned.user)
    guessed = request.gold(Preference(flow.name, values, planned.preference.order))
    return guessed.same_calls(request.gold())

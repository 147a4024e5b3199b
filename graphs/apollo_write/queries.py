"""Later queries: they hold all that the calls need and nothing of what is preferred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialoom.graphs.apollo.loop import gold_refusal
from dialoom.graphs.asking import ask_each
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.apollo.flows import FLOWS, Preference
from dialoom.personas.apollo.source.drafts import QueryDraft
from dialoom.personas.apollo.source.keeping import query_refusal
from dialoom.personas.apollo.source.telling import REQUESTS
from dialoom.personas.apollo.source.wording import query_wording_refusal

from .making import Note, WriteState, ask_writer, draft_of, look, rows_of, shown_again, to_write
from .pairs import PlannedPair, planned_pairs
from .profiles import said_wrong
from .replies import GuessedValues
from .scenario import WriteScenario, world_of
from .sessions import same_value
from .shown import about_flow, facets_shown, occasion

SOLVER = "solver"
_LEAK = "verified leak: a model that has not read the history makes the right calls"


async def ask(state: WriteState, scene: Scene) -> Update:
    """The queries of pairs whose session has passed."""
    scenario: WriteScenario = scene.scenario
    planned = _with_session(scenario, state)
    rows = state["drafts"]["queries"]
    stale = [id_ for id_, each in planned.items() if id_ in rows and rows[id_]["about"] != each.asked]
    asked = {
        id_: _inputs(planned[id_], state)
        for id_ in to_write(state, "queries", planned) + ([] if state["round"] else stale)
    }
    replies, refused = await ask_writer(scene, "apollo_write/query", asked)
    made = [
        QueryDraft(id=id_, user=scenario.user, about=planned[id_].asked, kind=planned[id_].kind, query=reply.query)
        for id_, reply in replies.items()
    ]
    return {"drafts": {"queries": rows_of(made)}, "refused": refused}


async def look_at_queries(state: WriteState, scene: Scene) -> Update:
    """Queries give nothing away, and say what they have to."""
    scenario: WriteScenario = scene.scenario
    planned = _with_session(scenario, state)
    drafts = {id_: draft for id_ in planned if (draft := draft_of(state, "queries", id_)) is not None}

    def rules(draft: QueryDraft) -> str | None:
        each = planned[draft.id]
        pair = each.pair(scenario, draft.query)
        worded = query_wording_refusal(draft.query, each.kind, each.user)
        world = world_of(scenario)
        return worded or query_refusal(world, each.user, pair) or gold_refusal(world, pair)

    async def checked(asked: Mapping[str, QueryDraft]) -> dict[str, str]:
        inputs = {id_: _check_inputs(planned[id_], draft) for id_, draft in asked.items()}
        return said_wrong("query", await ask_each(scene, "apollo_write/query-check", inputs))

    return await look(state, scene, "queries", drafts, rules, checked)


async def verify(state: WriteState, scene: Scene) -> Update:
    """A model answers each query without the history, several times; if it is right once, the query is out."""
    scenario: WriteScenario = scene.scenario
    times, planned = scenario.verify_leaks, _with_session(scenario, state)
    drafts: dict[str, QueryDraft] = {
        id_: draft
        for id_ in planned
        if (draft := draft_of(state, "queries", id_)) and draft.is_sound and draft.verified < times
    }
    asked = {(id_, time): _solver_inputs(planned[id_], draft) for id_, draft in drafts.items() for time in range(times)}
    replies = await ask_each(scene, "apollo_write/solve", asked)
    notes, after = list[Note](), list[QueryDraft]()
    for id_, draft in drafts.items():
        answers = [reply for (of, _), reply in replies.items() if of == id_ and reply is not None]
        is_leak = any(_is_right(scenario, planned[id_], answer) for answer in answers)
        after.append(draft.looked_at(_LEAK) if is_leak else draft.model_copy(update={"verified": len(answers)}))
        if is_leak:
            notes.append(Note(kind="queries", id=id_, round=1, result="out", why=_LEAK))
    if drafts:
        scene.tell(f"{scenario.user}: {len(notes)} of {len(drafts)} queries are answered without the history")
    return {"drafts": {"queries": rows_of(after)}, "notes": notes}


def _with_session(scenario: WriteScenario, state: WriteState) -> dict[str, PlannedPair]:
    """Pairs whose session has passed."""
    found = {}
    for each in planned_pairs(scenario, state):
        session = draft_of(state, "sessions", each.session_id)
        if session is not None and session.is_sound:
            found[each.id] = each
    return found


def _inputs(planned: PlannedPair, state: WriteState) -> dict[str, Any]:
    flow, slots = planned.preference.flow, planned.slots.asked
    before: QueryDraft | None = draft_of(state, "queries", planned.id)
    return {
        "user": planned.user.information(str(slots["today"])),
        "flow": flow,
        "about": about_flow(flow),
        "kind": planned.kind,
        "facets": facets_shown(flow, planned.preference.values),
        "occasion": occasion(slots),
        "example": REQUESTS["flows"]["flight" if flow == "hotel" else "hotel"][planned.kind][0],
        **shown_again(state, planned.id, before.query if before else ""),
    }


def _check_inputs(planned: PlannedPair, draft: QueryDraft) -> dict[str, Any]:
    flow = planned.preference.flow
    return {
        "user": planned.user.information(str(planned.slots.asked["today"])),
        "about": about_flow(flow),
        "facets": facets_shown(flow, planned.preference.values),
        "occasion": occasion(planned.slots.asked),
        "kind": planned.kind,
        "query": draft.query,
    }


def _solver_inputs(planned: PlannedPair, draft: QueryDraft) -> dict[str, Any]:
    flow = planned.preference.flow
    return {
        "user": planned.user.information(str(planned.slots.asked["today"])),
        "about": about_flow(flow),
        "facets": facets_shown(flow, planned.preference.values),
        "query": draft.query,
    }


def _is_right(scenario: WriteScenario, planned: PlannedPair, answer: GuessedValues) -> bool:
    """Whether the calls are the right ones that follow from what somebody takes the values to be."""
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

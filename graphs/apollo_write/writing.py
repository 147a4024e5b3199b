"""The nodes that write and check a profile, sets of preferences, sessions (from one call to the next), and queries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from dialoom.graphs.apollo.loop import find_gold_problem
from dialoom.graphs.generation import Note, Result, due, earlier, problem, written
from dialoom.graphs.stage import Scene, Update, ask_each
from dialoom.personas.apollo import CallError, canonicalize, execute
from dialoom.personas.apollo.flows import FLOWS, FlowError, FlowPair, Preference, Resident, find_pairs, find_sets
from dialoom.personas.apollo.source import PastCall
from dialoom.personas.apollo.source.checks import (
    check_errand,
    check_preferences,
    check_profile,
    check_query,
    check_query_wording,
    check_session,
    check_unrelated_session,
    check_wording,
    find_leaking_place,
)
from dialoom.personas.apollo.source.drafts import (
    PreferencesDraft,
    PreferenceSet,
    QueryDraft,
    RequestSlots,
    SessionDraft,
    UserDraft,
)
from dialoom.personas.apollo.source.scripted import (
    SETS_PER_FLOW,
    build_example_errand,
    build_example_session,
    describe_facets,
    describe_flow,
    format_definitions,
    format_slots,
    format_values,
)
from dialoom.personas.apollo.source.sessions import REQUESTS, extract_speeches, list_flow_tools

from .drafts import (
    UNPARSED_CHECK,
    PlannedErrand,
    PlannedPair,
    Rows,
    WriteState,
    ask_checker,
    build_problem,
    dump_drafts,
    find_unwritten,
    get_draft,
    get_passed_draft,
    plan_pairs,
    plan_sessions,
    review,
)
from .scenario import GuessedValues, ReadTalk, WriteScenario, load_world

_find_preferences_problem = partial(check_preferences, count=SETS_PER_FLOW)
_NO_REQUESTS = "requests: from this home and work nothing can be asked that would tell preferences apart"


async def introduce(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Write the user's profile."""
    scenario = scene.scenario
    seed = {"number": scenario.user, "seed": scenario.seed_persona, "city": scenario.city}
    inputs = {
        id_: {**seed, **earlier(state, id_)} for id_ in due(state, find_unwritten(state, "users", [scenario.user]))
    }
    replies, problems = await written(scene, "apollo_write/profile", inputs)
    place = {"city": scenario.city, "home": scenario.home, "work": scenario.work}
    made = [UserDraft(id=id_, user=id_, **place, **reply.model_dump()) for id_, reply in replies.items()]
    return {"drafts": {"users": dump_drafts(made)}, "problems": problems}


async def look_at_user(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Check that the profile is unrelated to any preference, and that the places in it exist."""
    world = load_world(scene.scenario)

    def rules(draft: UserDraft) -> str | None:
        try:
            city = world.city(draft.city)
            for place in ("home", "work"):
                world.place(city, getattr(draft, place), place)
        except CallError as error:
            return f"place: {error}"
        return check_profile(draft)

    def described(draft: UserDraft) -> list[str]:
        return list(draft.person().information("")[:2])

    draft: UserDraft | None = get_draft(state, "users", scene.scenario.user)
    return await review(
        state,
        scene,
        "users",
        {draft.id: draft} if draft else {},
        rules,
        partial(ask_checker, scene, "profile", "apollo_write/profile-check", lambda draft: {"user": described(draft)}),
        lambda draft: "\n".join(described(draft)),
    )


async def offer(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Draw candidate sets of three preferences for each flow, without a model.

    Only preferences for which requests exist are drawn.
    """
    scenario = scene.scenario
    user = get_passed_draft(state, "users", scenario.user)
    offers = dict(state["offers"])
    for flow in _find_due_flows(state, scenario, scenario.flows) if user else ():
        if flow not in offers:  # drawn in a thread, so that the run can be stopped
            offers[flow] = await asyncio.to_thread(_draw_offers, scenario, flow, user.resident)
    return {"offers": offers}


async def prefer(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Have the writer choose the set that suits the user best, and write the story of each preference."""
    scenario = scene.scenario
    user = get_passed_draft(state, "users", scenario.user)
    inputs = dict[str, dict[str, Any]]()
    for flow in _find_due_flows(state, scenario, state["offers"]) if user else ():
        if not (offers := state["offers"][flow]):
            continue
        inputs[_build_id(scenario, flow)] = {
            "user": user.person().information("")[:2],
            "about": describe_flow(flow),
            "facets": describe_facets(flow, {facet.name: facet.values[0] for facet in FLOWS[flow].facets}),
            "offers": [[format_values(each["values"]) for each in three] for three in offers],
            **earlier(state, _build_id(scenario, flow)),
        }
    replies, problems = await written(scene, "apollo_write/preferences", inputs)
    notes = [
        Note(
            kind="preferences",
            id=_build_id(scenario, flow),
            check="requests",
            round=1,
            result="dropped",
            reason=_NO_REQUESTS,
        )
        for flow, offers in state["offers"].items()
        if not offers and not state["round"]
    ]
    made = []
    for id_, reply in replies.items():
        flow, offers = _parse_flow(id_), state["offers"][_parse_flow(id_)]
        if reply.choice > len(offers) or len(reply.stories) != SETS_PER_FLOW:
            problems[id_] = problem(
                "choice",
                f"choice: number {reply.choice} with {len(reply.stories)} stories; give one from 1 to {len(offers)}, "
                f"with {SETS_PER_FLOW} stories",
            )
            continue
        sets = [
            PreferenceSet(**each, story=story)
            for each, story in zip(offers[reply.choice - 1], reply.stories, strict=True)
        ]
        draft = PreferencesDraft(id=id_, user=scenario.user, flow=flow, sets=tuple(sets))
        made.append(draft.model_copy(update={"requests_for": draft.drawn_for(user.resident, scenario.pairs)}))
    return {"drafts": {"preferences": dump_drafts(made)}, "problems": problems, "notes": notes}


async def look_at_preferences(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Check that tools can express the preferences, that valid requests for them exist, and that they suit the user."""
    scenario = scene.scenario
    if (user := get_passed_draft(state, "users", scenario.user)) is None:
        return {"round": 0}
    drafts, problems = {}, dict(state["problems"])
    for flow in scenario.flows:
        if (draft := get_draft(state, "preferences", _build_id(scenario, flow))) is not None:
            drafts[draft.id], why = await asyncio.to_thread(_add_requests, scenario, draft, user.resident)
            problems |= {draft.id: each} if (each := build_problem(why)) else {}

    def inputs(draft: PreferencesDraft) -> dict[str, Any]:
        sets = [{"wanted": format_values(each.values), "story": each.story} for each in draft.sets]
        return {"user": user.person().information("")[:2], "about": describe_flow(draft.flow), "sets": sets}

    update = await review(
        state,
        scene,
        "preferences",
        drafts,
        _find_preferences_problem,
        partial(ask_checker, scene, "fit", "apollo_write/preferences-check", inputs),
        lambda draft: "\n".join(f"{format_values(each.values)}: {each.story}" for each in draft.sets),
        problems,
    )
    return {**update, "drafts": {"preferences": {**dump_drafts(drafts.values()), **update["drafts"]["preferences"]}}}


def _draw_offers(scenario: WriteScenario, flow: str, resident: Resident) -> list[list[dict[str, Any]]]:
    """Return sets of three preferences with their requests, as plain values; none if there are no valid requests."""
    found = []
    for number in range(scenario.offers):
        draw = random.Random(f"offers {scenario.seed} {scenario.user} {flow} {number}")
        also = partial(find_leaking_place, flow)
        try:
            sets = find_sets(load_world(scenario), FLOWS[flow], resident, draw, SETS_PER_FLOW, scenario.pairs, also)
        except FlowError:
            break
        found.append([_dump_pairs(each) for each in sets])
    return found


def _dump_pairs(pairs: Sequence[FlowPair]) -> dict[str, Any]:
    preference = pairs[0].told.preference
    requests = [{"told": dict(each.told.slots), "asked": dict(each.asked.slots)} for each in pairs]
    return {"values": dict(preference.values), "order": list(preference.order), "requests": requests}


def _add_requests(
    scenario: WriteScenario, draft: PreferencesDraft, resident: Resident
) -> tuple[PreferencesDraft, str | None]:
    """Return a draft with requests for its current preferences, and the problem if no such requests exist."""
    for_ = draft.drawn_for(resident, scenario.pairs)
    if draft.requests_for == for_:
        return draft, None
    if wrong := _find_preferences_problem(draft):
        return draft, wrong
    draw = random.Random(f"requests {scenario.seed} {draft.id}")
    also = partial(find_leaking_place, draft.flow)
    try:
        found = find_pairs(load_world(scenario), draft.preferences(), resident, draw, scenario.pairs, also)
    except FlowError as error:
        return draft, f"requests: {error}"
    sets = [
        each.model_copy(update={"requests": tuple(RequestSlots(**pair) for pair in _dump_pairs(pairs)["requests"])})
        for each, pairs in zip(draft.sets, found, strict=True)
    ]
    return draft.model_copy(update={"sets": tuple(sets), "requests_for": for_}), None


def _find_due_flows(state: WriteState, scenario: WriteScenario, flows: Iterable[str]) -> list[str]:
    """Return the flows whose preferences are to be written or rewritten in this attempt."""
    planned = find_unwritten(state, "preferences", [_build_id(scenario, flow) for flow in flows])
    return [_parse_flow(id_) for id_ in due(state, planned)]


def _build_id(scenario: WriteScenario, flow: str) -> str:
    return f"{scenario.user}-{flow}"


def _parse_flow(id_: str) -> str:
    return id_.partition("-")[2]


Planned = PlannedPair | PlannedErrand
_MAX_ERRAND_CALLS = 3
"""Maximum number of calls in an unrelated session."""


async def talk(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Write the next turns of every unfinished session; rewritten sessions start over."""
    planned, going_on = plan_sessions(scene.scenario, state), state["calls"]
    begun = (
        {}
        if going_on
        else {id_: _begin_session(planned[id_], id_, scene.scenario) for id_ in _find_due_sessions(state, planned)}
    )
    under_way: dict[str, SessionDraft] = begun or {id_: get_draft(state, "sessions", id_) for id_ in going_on}
    inputs = {
        id_: _build_session_inputs(scene.scenario, state, planned[id_], draft) for id_, draft in under_way.items()
    }
    replies, problems = dict[str, Any](), dict(state["problems"])
    for prompt, type_ in (("apollo_write/session", PlannedPair), ("apollo_write/errand", PlannedErrand)):
        about = {id_: each for id_, each in inputs.items() if isinstance(planned[id_], type_)}
        found, unparsed = await written(scene, prompt, about)
        replies |= found
        problems |= unparsed
    made, calls = [], Rows()
    for id_, reply in replies.items():
        draft = under_way[id_]
        made.append(draft.model_copy(update={"turns": (*draft.turns, *(turn.speech() for turn in reply.turns))}))
        if reply.call is not None:
            calls[id_] = reply.call.model_dump()
    return {"drafts": {"sessions": dump_drafts(made)}, "calls": calls, "problems": problems}


async def call(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Run the next call of each session. A session with a wrong call is stopped."""
    planned, world = plan_sessions(scene.scenario, state), load_world(scene.scenario)
    made, going_on, problems = [], Rows(), dict(state["problems"])
    for id_, called in state["calls"].items():
        draft = get_draft(state, "sessions", id_)
        if why := _find_call_problem(scene.scenario, planned[id_], draft, called):
            problems[id_] = problem("call", f"call: {why}")
            continue
        given = {name: value for name, value in called["arguments"].items() if value is not None}
        turn = PastCall(name=called["name"], arguments=given, output=execute(world, called))
        made.append(draft.model_copy(update={"turns": (*draft.turns, turn)}))
        going_on[id_] = {}
    return {"drafts": {"sessions": dump_drafts(made)}, "calls": going_on, "problems": problems}


async def look_at_sessions(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Check that each session states its preference in the planned form, and that unrelated sessions state none."""
    planned, world = plan_sessions(scene.scenario, state), load_world(scene.scenario)
    drafts = {id_: draft for id_ in planned if (draft := get_draft(state, "sessions", id_)) is not None}

    first = {planned[id_].session(draft).words: id_ for id_, draft in reversed(drafts.items()) if draft.turns}

    def rules(draft: SessionDraft) -> str | None:
        each = planned[draft.id]
        if not draft.turns:
            return "shape: nothing is said"
        session = each.session(draft)
        if first[session.words] != draft.id:
            return f"twin: word for word it is {first[session.words]}"
        if isinstance(each, PlannedErrand):
            return check_errand(session, each.tool) or check_unrelated_session(world, session)
        refusal = check_wording(each.preference, each.form, each.slots.told, session)
        return check_session(world, each.user, each.preference, each.form, session) or refusal

    def lines(draft: SessionDraft) -> list[str]:
        return [f"{speaker}: {text}" for speaker, text in extract_speeches(planned[draft.id].session(draft))]

    async def checker(unchecked: Mapping[str, SessionDraft]) -> dict[str, str]:
        pairs, errands = dict[str, dict[str, Any]](), dict[str, SessionDraft]()
        for id_, draft in unchecked.items():
            each = planned[id_]
            if isinstance(each, PlannedErrand):
                errands[id_] = draft
            else:
                facets = describe_facets(each.preference.flow, each.preference.values)
                pairs[id_] = {"facets": facets, "lines": lines(draft)}
        replies = await ask_each(scene, "apollo_write/session-check", pairs)
        found = {id_: _find_reading_problem(planned[id_], reply) for id_, reply in replies.items()}
        return found | await ask_checker(
            scene, "talk", "apollo_write/errand-check", lambda draft: {"lines": lines(draft)}, errands
        )

    return await review(
        state,
        scene,
        "sessions",
        drafts,
        rules,
        checker,
        lambda draft: "\n".join(planned[draft.id].session(draft).lines),
    )


def _find_due_sessions(state: WriteState, planned: Mapping[str, Planned]) -> list[str]:
    """Return the sessions that have to be written, including those whose inputs have changed."""
    rows = state["drafts"]["sessions"]
    stale = [id_ for id_, each in planned.items() if id_ in rows and rows[id_]["about"] != each.session_hash]
    return due(state, find_unwritten(state, "sessions", planned) + stale)


def _begin_session(planned: Planned, id_: str, scenario: WriteScenario) -> SessionDraft:
    form = planned.form if isinstance(planned, PlannedPair) else None
    return SessionDraft(id=id_, user=scenario.user, about=planned.session_hash, form=form)


def _build_session_inputs(
    scenario: WriteScenario, state: WriteState, planned: Planned, draft: SessionDraft
) -> dict[str, Any]:
    before = earlier(state, draft.id)
    shared = {"lines": (), **before}
    if draft.turns:
        shared = {"lines": planned.session(draft).lines, **before, "written": ""}
    if isinstance(planned, PlannedErrand):
        user = get_draft(state, "users", scenario.user).person()
        about = {"tool": planned.tool, "number": planned.number, "definitions": format_definitions([planned.tool])}
        example = build_example_errand(scenario.world_seed, planned.tool)
        return {"user": user.information("")[:2], **about, "example": example, **shared}
    flow = planned.preference.flow
    return {
        "user": planned.user.information("")[:5],
        "flow": flow,
        "about": describe_flow(flow),
        "form": planned.form,
        "story": planned.story,
        "facets": describe_facets(flow, planned.preference.values),
        "order": planned.preference.order,
        "occasion": format_slots(planned.slots.told),
        "definitions": format_definitions(list_flow_tools(FLOWS[flow])),
        "example": build_example_session(scenario.world_seed, flow, planned.form),
        **shared,
    }


def _find_call_problem(
    scenario: WriteScenario, planned: Planned, draft: SessionDraft, called: Mapping[str, Any]
) -> str:
    """Return the problem of a call that is invalid or not expected at this point, or an empty text."""
    before = [turn for turn in draft.turns if isinstance(turn, PastCall)]
    try:
        text = canonicalize(called)
    except CallError as error:
        return str(error)
    output = execute(load_world(scenario), called)
    if isinstance(output, dict) and "error" in output:
        return str(output["error"])
    if isinstance(planned, PlannedErrand):
        message = f"{called['name']} after {len(before)} calls; {planned.tool} is called, once or twice"
        return message if called["name"] != planned.tool or len(before) >= _MAX_ERRAND_CALLS else ""
    gold = planned.request(scenario).gold().plain()
    if len(before) < len(gold) and text == canonicalize(gold[len(before)]):
        return ""
    right = gold[len(before)] if len(before) < len(gold) else "no further call"
    return f"{dict(called)} is not what the preference asks for; it should be {right}"


def _find_reading_problem(planned: Any, reply: ReadTalk | None) -> str:
    """Return how the preference that the checker found differs from the intended one; empty if they are the same."""
    if reply is None:
        return UNPARSED_CHECK
    if reply.verdict == "wrong":
        return f"talk: {reply.explanation or 'the checker finds it wrong'}"
    read = {each.facet: each.value for each in reply.facets}
    for name, value in planned.preference.values.items():
        if not is_same_value(read.get(name), value):
            return f"told: from what is said, {name} reads as {read.get(name)!r}; it should be {value!r}"
    return f"form: it reads as {reply.form}; it should be {planned.form}" if reply.form != planned.form else ""


def is_same_value(read: Any, value: Any) -> bool:
    """Return whether a value that a reader found equals another value, regardless of spelling."""
    one, other = (str(each).casefold().replace("_", " ").strip() for each in (read, value))
    return one == other


SOLVER = "solver"
_LEAK = "verified leak: a model that has not read the history makes the right calls"


async def ask(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Write the queries of pairs whose session has passed."""
    planned = _find_pairs_with_session(scene.scenario, state)
    rows = state["drafts"]["queries"]
    stale = [id_ for id_, each in planned.items() if id_ in rows and rows[id_]["about"] != each.query_hash]
    inputs = {
        id_: {**_build_query_inputs(planned[id_]), **earlier(state, id_)}
        for id_ in due(state, find_unwritten(state, "queries", planned) + stale)
    }
    replies, problems = await written(scene, "apollo_write/query", inputs)
    made = [
        QueryDraft(
            id=id_, user=scene.scenario.user, about=planned[id_].query_hash, kind=planned[id_].kind, query=reply.query
        )
        for id_, reply in replies.items()
    ]
    return {"drafts": {"queries": dump_drafts(made)}, "problems": problems}


async def look_at_queries(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Check that queries reveal no preference but state everything else that the calls need."""
    planned = _find_pairs_with_session(scene.scenario, state)
    drafts = {id_: draft for id_ in planned if (draft := get_draft(state, "queries", id_)) is not None}

    def rules(draft: QueryDraft) -> str | None:
        each = planned[draft.id]
        pair = each.pair(scene.scenario, draft.query)
        worded = check_query_wording(draft.query, each.kind, each.user)
        world = load_world(scene.scenario)
        return worded or check_query(world, each.user, pair) or find_gold_problem(world, pair)

    def inputs(draft: QueryDraft) -> dict[str, Any]:
        each = planned[draft.id]
        seen = {"kind": each.kind, "occasion": format_slots(each.slots.asked), "query": draft.query}
        return {**_build_shared_inputs(each), **seen}

    checker = partial(ask_checker, scene, "query", "apollo_write/query-check", inputs)
    return await review(state, scene, "queries", drafts, rules, checker, lambda draft: draft.query)


async def verify(state: WriteState, scene: Scene[WriteScenario]) -> Update:
    """Have a model answer each query several times without the history.

    Drop the queries that are answered correctly at least once.
    """
    scenario = scene.scenario
    times, planned = scenario.verify_leaks, _find_pairs_with_session(scenario, state)
    drafts: dict[str, QueryDraft] = {
        id_: draft for id_ in planned if (draft := get_passed_draft(state, "queries", id_)) and draft.verified < times
    }
    inputs = {
        (id_, time): {**_build_shared_inputs(planned[id_]), "query": draft.query}
        for id_, draft in drafts.items()
        for time in range(times)
    }
    replies = await ask_each(scene, "apollo_write/solve", inputs)
    notes, after = list[Note](), list[QueryDraft]()
    for id_, draft in drafts.items():
        answers = [reply for (of, _), reply in replies.items() if of == id_ and reply is not None]
        is_leak = any(_is_right(scenario, planned[id_], answer) for answer in answers)
        after.append(draft.reviewed(_LEAK) if is_leak else draft.model_copy(update={"verified": len(answers)}))
        check, reason = ("verified leak", _LEAK) if is_leak else ("", "")
        result: Result = "dropped" if is_leak else "passed"
        notes.append(Note(kind="verified queries", id=id_, check=check, round=1, result=result, reason=reason))
    if drafts:
        leaks = sum(note["result"] == "dropped" for note in notes)
        scene.tell(f"{scenario.user}: {leaks} of {len(drafts)} queries are answered without the history")
    return {"drafts": {"queries": dump_drafts(after)}, "notes": notes}


def _find_pairs_with_session(scenario: WriteScenario, state: WriteState) -> dict[str, PlannedPair]:
    """Return the pairs whose session has passed."""
    return {
        each.id: each for each in plan_pairs(scenario, state) if get_passed_draft(state, "sessions", each.session_id)
    }


def _build_shared_inputs(planned: PlannedPair) -> dict[str, Any]:
    """Return the prompt inputs that writer, checker and solver have in common."""
    flow, slots = planned.preference.flow, planned.slots.asked
    return {
        "user": planned.user.information(str(slots["today"])),
        "about": describe_flow(flow),
        "facets": describe_facets(flow, planned.preference.values),
    }


def _build_query_inputs(planned: PlannedPair) -> dict[str, Any]:
    flow = planned.preference.flow
    return {
        **_build_shared_inputs(planned),
        "flow": flow,
        "kind": planned.kind,
        "occasion": format_slots(planned.slots.asked),
        "example": REQUESTS["flows"]["flight" if flow == "hotel" else "hotel"][planned.kind][0],
    }


def _is_right(scenario: WriteScenario, planned: PlannedPair, answer: GuessedValues) -> bool:
    """Return whether guessed values lead to the gold calls."""
    flow = FLOWS[planned.preference.flow]
    given = {each.facet: each.value for each in answer.facets}
    values = {}
    for name in planned.preference.values:
        if not (known := [value for value in flow.facet(name).values if is_same_value(given.get(name), value)]):
            return False
        values[name] = known[0]
    request = planned.pair(scenario, "?").request(load_world(scenario), planned.user)
    return request.gold(Preference(flow.name, values, planned.preference.order)).same_calls(request.gold())

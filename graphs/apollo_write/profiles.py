"""The user's profile, and for each flow one of several sets of three preferences."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from dialoom.graphs.generation import Note, due, earlier, problem, written
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.apollo import CallError
from dialoom.personas.apollo.flows import FLOWS, FlowError, FlowPair, Resident, find_pairs, find_sets
from dialoom.personas.apollo.source.checks import leaking_place, preferences_refusal, profile_refusal
from dialoom.personas.apollo.source.drafts import PreferencesDraft, PreferenceSet, RequestSlots, UserDraft
from dialoom.personas.apollo.source.scripted import SETS, about_flow, facets_shown, values_text

from .drafts import WriteState, ask_checker, draft_of, passed, review, rows_of, stated, unwritten_of
from .scenario import WriteScenario, world_of

_refusal = partial(preferences_refusal, count=SETS)
_NOTHING_TO_ASK = "requests: from this home and work nothing can be asked that would tell preferences apart"


async def introduce(state: WriteState, scene: Scene) -> Update:
    """Write the profile."""
    scenario: WriteScenario = scene.scenario
    seed = {"number": scenario.user, "seed": scenario.seed_persona, "city": scenario.city}
    asked = {id_: {**seed, **earlier(state, id_)} for id_ in due(state, unwritten_of(state, "users", [scenario.user]))}
    replies, problems = await written(scene, "apollo_write/profile", asked)
    place = {"city": scenario.city, "home": scenario.home, "work": scenario.work}
    made = [UserDraft(id=id_, user=id_, **place, **reply.model_dump()) for id_, reply in replies.items()]
    return {"drafts": {"users": rows_of(made)}, "problems": problems}


async def look_at_user(state: WriteState, scene: Scene) -> Update:
    """Check that the profile is unrelated to any preference, and that its places exist."""
    scenario: WriteScenario = scene.scenario
    world = world_of(scenario)

    def rules(draft: UserDraft) -> str | None:
        try:
            city = world.city(draft.city)
            for place in ("home", "work"):
                world.place(city, getattr(draft, place), place)
        except CallError as error:
            return f"place: {error}"
        return profile_refusal(draft)

    async def checker(drafts: Mapping[str, UserDraft]) -> dict[str, str]:
        inputs = {id_: {"user": draft.person().information("")[:2]} for id_, draft in drafts.items()}
        return await ask_checker(scene, "profile", "apollo_write/profile-check", inputs)

    def text(draft: UserDraft) -> str:
        return "\n".join(draft.person().information("")[:2])

    draft: UserDraft | None = draft_of(state, "users", scenario.user)
    return await review(state, scene, "users", {draft.id: draft} if draft else {}, rules, checker, text)


async def offer(state: WriteState, scene: Scene) -> Update:
    """Draw for each flow some sets of three preferences for which requests exist; no model is needed."""
    scenario: WriteScenario = scene.scenario
    user = passed(state, "users", scenario.user)
    offers = dict(state["offers"])
    for flow in _due(state, scenario, scenario.flows) if user else ():
        if flow not in offers:  # in a thread, so that the run can be stopped
            offers[flow] = await asyncio.to_thread(_offers, scenario, flow, user.resident)
    return {"offers": offers}


async def prefer(state: WriteState, scene: Scene) -> Update:
    """Have the writer choose the set that suits the user best, and write the story of each preference."""
    scenario: WriteScenario = scene.scenario
    user = passed(state, "users", scenario.user)
    asked = dict[str, dict[str, Any]]()
    for flow in _due(state, scenario, state["offers"]) if user else ():
        if not (offers := state["offers"][flow]):
            continue
        asked[_id(scenario, flow)] = {
            "user": user.person().information("")[:2],
            "about": about_flow(flow),
            "facets": facets_shown(flow, {facet.name: facet.values[0] for facet in FLOWS[flow].facets}),
            "offers": [[values_text(each["values"]) for each in three] for three in offers],
            **earlier(state, _id(scenario, flow)),
        }
    replies, problems = await written(scene, "apollo_write/preferences", asked)
    notes = [
        Note(
            kind="preferences",
            id=_id(scenario, flow),
            check="requests",
            round=1,
            result="dropped",
            reason=_NOTHING_TO_ASK,
        )
        for flow, offers in state["offers"].items()
        if not offers and not state["round"]
    ]
    made = []
    for id_, reply in replies.items():
        flow, offers = _flow(id_), state["offers"][_flow(id_)]
        if reply.choice > len(offers) or len(reply.stories) != SETS:
            problems[id_] = problem(
                "choice",
                f"choice: number {reply.choice} with {len(reply.stories)} stories; give one from 1 to {len(offers)}, "
                f"with {SETS} stories",
            )
            continue
        sets = [
            PreferenceSet(**each, story=story)
            for each, story in zip(offers[reply.choice - 1], reply.stories, strict=True)
        ]
        draft = PreferencesDraft(id=id_, user=scenario.user, flow=flow, sets=tuple(sets))
        made.append(draft.model_copy(update={"requests_for": draft.drawn_for(user.resident, scenario.pairs)}))
    return {"drafts": {"preferences": rows_of(made)}, "problems": problems, "notes": notes}


async def look_at_preferences(state: WriteState, scene: Scene) -> Update:
    """Check that tools can express the preferences, that requests exist for them, and that they suit the user."""
    scenario: WriteScenario = scene.scenario
    user = passed(state, "users", scenario.user)
    if user is None:
        return {"round": 0}
    drafts, problems = {}, dict(state["problems"])
    for flow in scenario.flows:
        draft = draft_of(state, "preferences", _id(scenario, flow))
        if draft is not None:
            drafts[draft.id], why = await asyncio.to_thread(_with_requests, scenario, draft, user.resident)
            problems |= {draft.id: each} if (each := stated(why)) else {}

    async def checker(asked: Mapping[str, PreferencesDraft]) -> dict[str, str]:
        inputs = {
            id_: {
                "user": user.person().information("")[:2],
                "about": about_flow(draft.flow),
                "sets": [{"wanted": values_text(each.values), "story": each.story} for each in draft.sets],
            }
            for id_, draft in asked.items()
        }
        return await ask_checker(scene, "fit", "apollo_write/preferences-check", inputs)

    def text(draft: PreferencesDraft) -> str:
        return "\n".join(f"{values_text(each.values)}: {each.story}" for each in draft.sets)

    update = await review(state, scene, "preferences", drafts, _refusal, checker, text, problems)
    drawn = rows_of(drafts.values())
    return {**update, "drafts": {"preferences": {**drawn, **update["drafts"]["preferences"]}}}


def _offers(scenario: WriteScenario, flow: str, resident: Resident) -> list[list[dict[str, Any]]]:
    """Return sets of three preferences with their requests, as plain values; none if there are no valid requests."""
    found = []
    for number in range(scenario.offers):
        draw = random.Random(f"offers {scenario.seed} {scenario.user} {flow} {number}")
        also = partial(leaking_place, flow)
        try:
            sets = find_sets(world_of(scenario), FLOWS[flow], resident, draw, SETS, scenario.pairs, also)
        except FlowError:
            break
        found.append([_plain(each) for each in sets])
    return found


def _plain(pairs: Sequence[FlowPair]) -> dict[str, Any]:
    wanted = pairs[0].told.preference
    requests = [{"told": dict(each.told.slots), "asked": dict(each.asked.slots)} for each in pairs]
    return {"values": dict(wanted.values), "order": list(wanted.order), "requests": requests}


def _with_requests(
    scenario: WriteScenario, draft: PreferencesDraft, resident: Resident
) -> tuple[PreferencesDraft, str | None]:
    """Return a draft with requests for its current preferences, or the problem for which there are none."""
    for_ = draft.drawn_for(resident, scenario.pairs)
    if draft.requests_for == for_:
        return draft, None
    if wrong := _refusal(draft):
        return draft, wrong
    draw = random.Random(f"requests {scenario.seed} {draft.id}")
    also = partial(leaking_place, draft.flow)
    try:
        found = find_pairs(world_of(scenario), draft.preferences(), resident, draw, scenario.pairs, also)
    except FlowError as error:
        return draft, f"requests: {error}"
    sets = [
        each.model_copy(update={"requests": tuple(RequestSlots(**pair) for pair in _plain(pairs)["requests"])})
        for each, pairs in zip(draft.sets, found, strict=True)
    ]
    return draft.model_copy(update={"sets": tuple(sets), "requests_for": for_}), None


def _due(state: WriteState, scenario: WriteScenario, flows: Iterable[str]) -> list[str]:
    """Return the flows whose preferences are to be written."""
    planned = unwritten_of(state, "preferences", [_id(scenario, flow) for flow in flows])
    return [_flow(id_) for id_ in due(state, planned)]


def _id(scenario: WriteScenario, flow: str) -> str:
    return f"{scenario.user}-{flow}"


def _flow(id_: str) -> str:
    return id_.partition("-")[2]

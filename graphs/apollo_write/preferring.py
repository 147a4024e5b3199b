"""What a user prefers: for each flow one of several threes that requests can be found for, and how it came about."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from dialoom.graphs.asking import ask_each
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.apollo.flows import FLOWS, FlowError, FlowPair, Resident, apart, find_pairs, find_sets
from dialoom.personas.apollo.source.asking import leaking_place
from dialoom.personas.apollo.source.drafts import PreferencesDraft, PreferenceSet, RequestSlots, UserDraft
from dialoom.personas.apollo.source.scripted import SETS

from .making import Note, WriteState, ask_writer, draft_of, look, rows_of, shown_again, to_write
from .profiles import said_wrong
from .scenario import WriteScenario, world_of
from .shown import about_flow, facets_shown, values_text

_NOTHING_TO_ASK = "requests: from this home and work nothing can be asked that would tell preferences apart"


async def offer(state: WriteState, scene: Scene) -> Update:
    """For each flow some threes of preferences, so drawn that each can be asked about; no model is needed for it."""
    scenario: WriteScenario = scene.scenario
    user = _sound_user(state, scenario)
    offers = dict(state["offers"])
    for id_ in to_write(state, "preferences", [_id(scenario, flow) for flow in scenario.flows] if user else []):
        flow = _flow(id_)
        if flow not in offers:
            offers[flow] = await asyncio.to_thread(
                _offers, scenario, flow, _resident(user)
            )  # so that it can be stopped
    return {"offers": offers}


async def prefer(state: WriteState, scene: Scene) -> Update:
    """Which of them suits the user best, in the order in which it came about, and the story of each."""
    scenario: WriteScenario = scene.scenario
    user = _sound_user(state, scenario)
    asked = dict[str, dict[str, Any]]()
    for id_ in to_write(state, "preferences", [_id(scenario, flow) for flow in state["offers"]] if user else []):
        flow, offers = _flow(id_), state["offers"][_flow(id_)]
        if not offers:
            continue
        asked[id_] = {
            "user": user.person().information("")[:2] if user else (),
            "about": about_flow(flow),
            "facets": facets_shown(flow, {name: values[0] for name, values in _facets(flow).items()}),
            "offers": [[values_text(each["values"]) for each in three] for three in offers],
            **shown_again(state, id_, _written(state, id_)),
        }
    replies, refused = await ask_writer(scene, "apollo_write/preferences", asked)
    notes = [
        Note(kind="preferences", id=_id(scenario, flow), round=1, result="out", why=_NOTHING_TO_ASK)
        for flow, offers in state["offers"].items()
        if not offers and not state["round"]
    ]
    made = []
    for id_, reply in replies.items():
        flow, offers = _flow(id_), state["offers"][_flow(id_)]
        if reply.choice > len(offers) or len(reply.stories) != SETS:
            refused[id_] = (
                f"choice: number {reply.choice} with {len(reply.stories)} stories; give one from 1 to {len(offers)}, "
                f"with {SETS} stories"
            )
            continue
        sets = [
            PreferenceSet(**each, story=story)
            for each, story in zip(offers[reply.choice - 1], reply.stories, strict=True)
        ]
        draft = PreferencesDraft(id=id_, user=scenario.user, flow=flow, sets=tuple(sets))
        for_ = draft.drawn_for(_resident(user), scenario.pairs)
        made.append(draft.model_copy(update={"requests_for": for_}))
    return {"drafts": {"preferences": rows_of(made)}, "refused": refused, "notes": notes}


async def look_at_preferences(state: WriteState, scene: Scene) -> Update:
    """Tools can express them, requests can be found for them, and they suit the user."""
    scenario: WriteScenario = scene.scenario
    user = _sound_user(state, scenario)
    if user is None:
        return {"round": 0}
    drafts, refused = {}, dict(state["refused"])
    for flow in scenario.flows:
        draft = draft_of(state, "preferences", _id(scenario, flow))
        if draft is not None:
            drafts[draft.id], why = await asyncio.to_thread(_with_requests, scenario, draft, user.resident)
            refused |= {draft.id: why} if why else {}

    async def checked(asked: Mapping[str, PreferencesDraft]) -> dict[str, str]:
        inputs = {
            id_: {
                "user": user.person().information("")[:2],
                "about": about_flow(draft.flow),
                "sets": [{"wanted": values_text(each.values), "story": each.story} for each in draft.sets],
            }
            for id_, draft in asked.items()
        }
        return said_wrong("fit", await ask_each(scene, "apollo_write/preferences-check", inputs))

    update = await look({**state, "refused": refused}, scene, "preferences", drafts, _refusal, checked)
    drawn = rows_of(drafts.values())
    return {**update, "drafts": {"preferences": {**drawn, **update["drafts"]["preferences"]}}}


def _offers(scenario: WriteScenario, flow: str, resident: Resident) -> list[list[dict[str, Any]]]:
    """Threes of preferences with their requests, as plain values; none if nothing can be asked from where they live."""
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
    """A draft with requests for its preferences as they are now; or what keeps them from being found."""
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


def _refusal(draft: PreferencesDraft) -> str | None:
    """What is wrong with preferences as such: three, of values that there are, each unlike the others."""
    flow, known = FLOWS.get(draft.flow), _facets(draft.flow) if draft.flow in FLOWS else {}
    if flow is None or len(draft.sets) != SETS:
        return f"sets: {len(draft.sets)} preferences for {draft.flow!r}; give {SETS} for one of {', '.join(FLOWS)}"
    lookups = sorted(step.tool for step in flow.lookups)
    for number, each in enumerate(draft.sets, start=1):
        for name, value in each.values.items():
            if value not in known.get(name, ()):
                return f"values: {name} {value!r} in preference {number}; give one of {known.get(name) or list(known)}"
        missing = [name for name in known if name not in each.values and name not in flow.either]
        if missing or (flow.either and len(set(flow.either) & set(each.values)) != 1):
            return f"values: preference {number} lacks {missing or 'one of ' + ', '.join(flow.either)}"
        if sorted(each.order) != lookups or not flow.consistent(each.values):
            return f"values: preference {number} does not go together, or its order is not of {lookups}"
    if not all(apart(flow, one, other) for one, other in combinations(draft.preferences(), 2)):
        return "apart: two of the preferences agree in something that has three values or more"
    return None


def _facets(flow: str) -> dict[str, tuple[Any, ...]]:
    return {facet.name: facet.values for facet in FLOWS[flow].facets}


def _sound_user(state: WriteState, scenario: WriteScenario) -> UserDraft | None:
    draft: UserDraft | None = draft_of(state, "users", scenario.user)
    return draft if draft is not None and draft.is_sound else None


def _resident(user: UserDraft | None) -> Resident:
    return user.resident if user else Resident("", "", "")


def _id(scenario: WriteScenario, flow: str) -> str:
    return f"{scenario.user}-{flow}"


def _flow(id_: str) -> str:
    return id_.partition("-")[2]


def _written(state: WriteState, id_: str) -> str:
    draft: PreferencesDraft | None = draft_of(state, "preferences", id_)
    return "\n".join(f"{values_text(each.values)}: {each.story}" for each in draft.sets) if draft else ""

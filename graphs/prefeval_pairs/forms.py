"""What is made of a chosen pair: the talk of a choice, a persona's talk, four answers, and an earlier preference.

PrefEval, section A.13, steps 2 and 3. Whatever a draft has already stays.
"""

from __future__ import annotations

from typing import Any

from dialoom.graphs.asking import ask_each
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.preferences import Draft
from dialoom.personas.similarity import content_words

from .replies import OfferedChoice, PersonaNumber, PersonaTalk
from .scenario import PairsScenario
from .stages import Found, PairsState, still_in


async def offer(state: PairsState, scene: Scene) -> Update:
    """Step by step: an easier question, four options, and the talk in which the fitting one is taken."""
    asked = still_in(state, lambda draft: draft.choice_conversation is None)
    queries = await ask_each(scene, "prefeval_pairs/choice-query", {at: _texts(draft) for at, draft in asked.items()})
    first = {
        at: {"preference": asked[at].preference, "query": reply.query}
        for at, reply in queries.items()
        if reply is not None and _folded(reply.query) != _folded(asked[at].question)
    }
    offered = await ask_each(scene, "prefeval_pairs/choice-options", first)
    second = {
        at: {**first[at], "fitting": reply.options[0], "others": reply.options[1:]}
        for at, reply in offered.items()
        if reply is not None
    }
    talks = await ask_each(scene, "prefeval_pairs/choice-talk", second)
    found: Found = {at: {"dropped": "choice unparsed"} for at in asked}
    for at, talk in talks.items():
        if talk is not None and not _gives_away(talk, asked[at]):
            made = talk.after(first[at]["query"])
            found[at] = {"options": list(offered[at].options), "choice_conversation": made.model_dump()}
    _tell(scene, "a choice", found)
    return {"choice": found}


async def tell(state: PairsState, scene: Scene) -> Update:
    """A talk about a persona's own affairs, with the preference in passing; of people drawn, the first that fits."""
    scenario: PairsScenario = scene.scenario
    asked = still_in(state, lambda draft: draft.persona_conversation is None)
    drawn = {at: [draft.persona] if draft.persona else _drawn(scene, at) for at, draft in asked.items()}
    numbers: dict[str, PersonaNumber | None] = await ask_each(
        scene,
        "prefeval_pairs/persona-choice",
        {
            at: {"preference": draft.preference, "personas": drawn[at]}
            for at, draft in asked.items()
            if not draft.persona
        },
    )
    found: Found = {}
    wanted: dict[str, dict[str, Any]] = {}
    for at, draft in asked.items():
        reply = PersonaNumber(number=1) if draft.persona else numbers[at]
        if reply is None or reply.number > len(drawn[at]):
            found[at] = {"dropped": "persona unparsed"}
        elif reply.number == 0:
            found[at] = {"dropped": "no persona"}
        else:
            turns = scene.draw(f"turns {at}").randint(scenario.shortest, scenario.longest)
            teller = drawn[at][reply.number - 1]
            wanted[at] = {"preference": draft.preference, "persona": teller, "turns": turns}
    talks: dict[str, PersonaTalk | None] = await ask_each(scene, "prefeval_pairs/persona-talk", wanted)
    for at, talk in talks.items():
        if talk is None:
            found[at] = {"dropped": "persona unparsed"}
        elif not scenario.shortest <= len(talk.turns) <= scenario.longest:
            found[at] = {"dropped": "talk length"}
        else:
            turns_said = [turn.model_dump() for turn in talk.turns]
            found[at] = {"persona": wanted[at]["persona"], "persona_conversation": turns_said}
    _tell(scene, "a persona's talk", found)
    return {"persona": found}


async def finish(state: PairsState, scene: Scene) -> Update:
    """Four answers to choose from, the right one first, and a preference that this one contradicts."""
    asked = still_in(state)
    lacking = {at: draft for at, draft in asked.items() if draft.classification_task_options is None}
    answers = await ask_each(
        scene,
        "prefeval_pairs/options",
        {at: {**_texts(draft), "explanation": draft.explanation} for at, draft in lacking.items()},
    )
    single = {at: draft for at, draft in asked.items() if not draft.conflicting_preference}
    earlier = await ask_each(scene, "prefeval_pairs/conflict", {at: _texts(draft) for at, draft in single.items()})
    found: Found = {at: {} for at in lacking | single}
    for at, reply in answers.items():
        made = reply and {"classification_task_options": list(reply.options)}
        found[at] |= made or {"dropped": "options unparsed"}
    for at, reply in earlier.items():
        is_other = reply is not None and _folded(reply.preference) != _folded(single[at].preference)
        conflicting = {"conflicting_preference": reply.preference} if is_other else {"dropped": "conflict unparsed"}
        found[at] = {**conflicting, **found[at]}
    _tell(scene, "options", found)
    return {"options": found}


def _drawn(scene: Scene, at: str) -> list[str]:
    scenario: PairsScenario = scene.scenario
    people = scenario.personas.value
    return scene.draw(f"personas {at}").sample(people, min(scenario.candidates, len(people)))


def _gives_away(talk: OfferedChoice, draft: Draft) -> bool:
    """Whether the assistant's last word says all of the preference again."""
    told = set(content_words(draft.preference))
    return bool(told) and told <= set(content_words(talk.assistant_acknowledgment))


def _texts(draft: Draft) -> dict[str, Any]:
    return {"preference": draft.preference, "question": draft.question}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _tell(scene: Scene, what: str, found: Found) -> None:
    made = sum("dropped" not in said for said in found.values())
    if found:
        scene.tell(f"{scene.scenario.topic.topic}: {made} of {len(found)} pairs have {what}")

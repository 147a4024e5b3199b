"""The summaries of what went on between a person and assistants, and whether they tell of anything else."""

from __future__ import annotations

from typing import Any

from dialoom.graphs.asking import ask_each
from dialoom.graphs.stage import Scene, Update

from .making import Defect, Note, PersonState, Wrong, listed, lost, noted, settled, shown_again
from .replies import ForeignPassages
from .scenario import PersonScenario


async def summarise(state: PersonState, scene: Scene) -> Update:
    """A summary for each domain, or those that are to be made again."""
    scenario: PersonScenario = scene.scenario
    before = state["wrong"]
    asked = list(before or state["preferences"])
    texts = await ask_each(
        scene,
        "personalens_people/summary",
        {name: _inputs(scenario, state, name) | shown_again(before, name) for name in asked},
    )
    round_ = state["round"] + 1
    made = {**state["summaries"], **{name: text for name, text in texts.items() if text is not None}}
    unread = [note for name, text in texts.items() if text is None for note in lost("summary", name, round_)]
    return {"summaries": made, "round": round_, "notes": unread}


async def verify(state: PersonState, scene: Scene) -> Update:
    """A judge looks in each new summary for preferences that the person does not have."""
    scenario: PersonScenario = scene.scenario
    round_, before = state["round"], state["wrong"]
    summaries = dict(state["summaries"])
    new = [name for name in (before or state["preferences"]) if name in summaries]
    replies: dict[str, ForeignPassages | None] = await ask_each(
        scene,
        "personalens_people/summary-check",
        {
            name: {"domain": name, "preferences": listed(state["preferences"][name]), "summary": summaries[name]}
            for name in new
        },
    )
    wrong: Wrong = {}
    notes: list[Note] = []
    for name, reply in replies.items():
        why = ""
        if summaries[name][-1].isalnum():
            why = "this breaks off in the middle of a sentence"
        elif reply is None or not all(_folded(each) in _folded(summaries[name]) for each in reply.passages):
            notes.append(noted("summary", name, round_, "unread"))
        elif reply.passages:
            why = f"this tells of preferences that the person does not have: {'; '.join(reply.passages)}"
        if why:
            wrong[name] = Defect(check="summary", why=why, written=summaries.pop(name))
    looked = {"summary": len(new)} if round_ == 1 else {}
    return {"summaries": summaries, "looked": looked, **settled(scenario, round_, wrong, notes)}


def domains_of(state: PersonState) -> list[str]:
    """The domains of which everything is there; all others are masked."""
    return [name for name in state["preferences"] if name in state["summaries"]]


def _inputs(scenario: PersonScenario, state: PersonState, name: str) -> dict[str, Any]:
    return {
        "demographics": scenario.demographics.for_prompt(),
        "domain": name,
        "description": scenario.domain(name).description,
        "preferences": listed(state["preferences"][name]),
    }


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())

"""The state of a user's part in the making, and what all stages do alike: write, look, write again what is refused.

A stage is gone through until nothing is refused, and at most `rewrites` times again. What is written again is shown as
it was, with what is wrong. What is refused in the end is out, and its draft says why. What people have mended is looked
at as everything else, and never written over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypedDict

from dialoom.graphs.asking import ask_each
from dialoom.graphs.conversation import joined
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.apollo.source.drafts import DRAFTS, ApolloDraft, DraftKind

from .scenario import WriteScenario

Rows = dict[str, dict[str, Any]]
UNREAD = "unread: the writer's reply could not be used"
UNCHECKED = "unchecked: the checker's word could not be had"
"""This is nothing that another text would mend: what cannot be checked is out at once."""


class Note(TypedDict):
    """What a check has said of something.

    Attributes:
        kind: Of which kind it is.
        id: Its name.
        round: When, from 1.
        result: `passed`, `refused` and so written again, or `out`.
        why: What is wrong, the name of the check first; empty if nothing is.
    """

    kind: DraftKind
    id: str
    round: int
    result: Literal["passed", "refused", "out"]
    why: str


def laid_over(left: Mapping[str, Rows], right: Mapping[str, Rows]) -> dict[str, Rows]:
    """The reducer of drafts: kind by kind, those of a name take each other's place."""
    return {kind: {**left.get(kind, {}), **right.get(kind, {})} for kind in DRAFTS}


class WriteState(TypedDict, total=False):
    """What is checkpointed.

    Attributes:
        drafts: By kind and id, as plain values.
        offers: By flow, the threes of preferences that can be chosen from.
        calls: Of the sessions under way, the call that is to be run next; empty of one that is over.
        refused: What is wrong with something before it is whole, by id.
        again: Of what is to be written again, what is wrong.
        round: How often the stage under way has been gone through.
        notes: What the checks have said.
    """

    drafts: Annotated[dict[str, Rows], laid_over]
    offers: dict[str, list[list[dict[str, Any]]]]
    calls: Rows
    refused: dict[str, str]
    again: dict[str, str]
    round: int
    notes: Annotated[list[Note], joined]


def draft_of(state: WriteState, kind: DraftKind, id_: str) -> Any:
    """A draft, of the type of its kind; None if there is none."""
    row = state["drafts"][kind].get(id_)
    return None if row is None else DRAFTS[kind].model_validate(row)


def rows_of(drafts: Iterable[ApolloDraft]) -> Rows:
    """Drafts as plain values."""
    return {draft.id: draft.model_dump(mode="json") for draft in drafts}


def to_write(state: WriteState, kind: DraftKind, planned: Iterable[str]) -> list[str]:
    """What is to be written now: what was refused, or at first all that is not there."""
    return list(state["again"]) if state["round"] else [id_ for id_ in planned if id_ not in state["drafts"][kind]]


def shown_again(state: WriteState, id_: str, written: str) -> dict[str, str]:
    """What a prompt is told of an earlier try: as it was, and what is wrong; empty at the first."""
    why = state["again"].get(id_, "")
    return {"written": written if why else "", "wrong": why}


async def ask_writer(
    scene: Scene, prompt: str, inputs: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The writer's replies by id, and what to say of those that could not be read."""
    replies = await ask_each(scene, prompt, inputs)
    read = {id_: reply for id_, reply in replies.items() if reply is not None}
    return read, dict.fromkeys((id_ for id_ in replies if id_ not in read), UNREAD)


async def look(
    state: WriteState,
    scene: Scene,
    kind: DraftKind,
    drafts: Mapping[str, Any],
    rules: Callable[[Any], str | None],
    checked: Callable[[Mapping[str, Any]], Any],
) -> Update:
    """Check all that is new, by rules and then by a model, and say what is to be written again.

    Args:
        state: The state.
        scene: The node's.
        kind: Of which kind the drafts are.
        drafts: All that the stage has made or found, by id.
        rules: What is wrong with one, as far as rules can tell.
        checked: An awaitable of what the checker says is wrong with some, by id; what it says nothing of is right.
    """
    round_ = state["round"] + 1
    wrong = dict(state["refused"])
    new = {id_: draft for id_, draft in drafts.items() if draft.is_mended}
    whole = [draft for id_, draft in new.items() if id_ not in wrong]
    found = await asyncio.to_thread(lambda: [(draft.id, rules(draft)) for draft in whole])  # it takes a second or two
    wrong |= {id_: why for id_, why in found if why}
    asked = {id_: draft for id_, draft in new.items() if id_ not in wrong and not draft.accepted}
    wrong |= {id_: why for id_, why in (await checked(asked)).items() if why}
    scenario: WriteScenario = scene.scenario
    by_hand = {draft.id: draft.own_id for draft in scenario.drafts.of(kind) if draft.is_mended}
    notes, again, after = list[Note](), dict[str, str](), list[ApolloDraft]()
    for id_ in [*new, *(id_ for id_ in wrong if id_ not in new)]:
        why = wrong.get(id_, "")
        is_theirs = id_ in new and by_hand.get(id_) == new[id_].own_id
        is_out = bool(why) and (round_ > scenario.rewrites or is_theirs or why == UNCHECKED)
        if why and not is_out:
            again[id_] = why
        elif id_ in drafts:
            after.append(drafts[id_].looked_at(why))
        notes.append(Note(kind=kind, id=id_, round=round_, result=_result(why, is_out), why=why))
    passed = sum(note["result"] == "passed" for note in notes)
    if notes:
        scene.tell(f"{scenario.user}: {passed} of {len(notes)} {kind} pass" + (", in a rewrite" if round_ > 1 else ""))
    ahead = {"round": round_ if again else 0, "again": again, "refused": {}}
    return {"drafts": {kind: rows_of(after)}, "notes": notes, **ahead}


def _result(why: str, is_out: bool) -> Literal["passed", "refused", "out"]:
    return "out" if is_out else "refused" if why else "passed"

"""The drafts of a user: their state and their review."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any

from dialoom.graphs.asking import ask_each
from dialoom.graphs.generation import GenerationState, Problem, Problems, Result, problem, reviewed, rule, settled
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.apollo.source.drafts import DRAFTS, ApolloDraft, DraftKind

from .scenario import WriteScenario

Rows = dict[str, dict[str, Any]]
UNCHECKED = "unchecked: the checker's reply could not be parsed"
"""The problem of a draft whose check could not be parsed; it is dropped at once, as another text would not help."""


def laid_over(left: Mapping[str, Rows], right: Mapping[str, Rows]) -> dict[str, Rows]:
    """Reduce drafts: by kind, a draft replaces the one with the same id."""
    return {kind: {**left.get(kind, {}), **right.get(kind, {})} for kind in DRAFTS}


class WriteState(GenerationState, total=False):
    """The state that is checkpointed.

    Attributes:
        drafts: The drafts by kind and id, as plain values.
        offers: By flow, the sets of three preferences to choose from.
        calls: By unfinished session, the call to run next; empty once it has been run.
    """

    drafts: Annotated[dict[str, Rows], laid_over]
    offers: dict[str, list[list[dict[str, Any]]]]
    calls: Rows


def draft_of(state: Mapping[str, Any], kind: DraftKind, id_: str) -> Any:
    """Return a draft, typed by its kind; `None` if there is none."""
    row = state["drafts"][kind].get(id_)
    return None if row is None else DRAFTS[kind].model_validate(row)


def rows_of(drafts: Iterable[ApolloDraft]) -> Rows:
    """Return drafts as plain values."""
    return {draft.id: draft.model_dump(mode="json") for draft in drafts}


def unwritten_of(state: WriteState, kind: DraftKind, planned: Iterable[str]) -> list[str]:
    """Return the ids of planned drafts that do not exist yet."""
    return [id_ for id_ in planned if id_ not in state["drafts"][kind]]


def stated(reason: str | None) -> Problem | None:
    """Return the problem for a reason that begins with the check's name and a colon; `None` without a reason."""
    result: Result = "dropped" if reason == UNCHECKED else "rejected"
    return problem(reason.partition(":")[0], reason, result=result) if reason else None


async def review(
    state: WriteState,
    scene: Scene,
    kind: DraftKind,
    drafts: Mapping[str, Any],
    rules: Callable[[Any], str | None],
    checker: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, str]]],
    text: Callable[[Any], str],
    problems: Mapping[str, Problem] | None = None,
) -> Update:
    """Check all new or edited drafts, by rules and then by a model, and settle which ones are rewritten.

    Args:
        state: The state.
        scene: The node's scene.
        kind: The kind of the drafts.
        drafts: All drafts of the stage, by id.
        rules: Returns the problem that the rules find in a draft.
        checker: Returns the problems that a model finds in some drafts, by id.
        text: Returns a draft in the form in which its writer sees it again.
        problems: The known problems; by default the state's.
    """
    scenario: WriteScenario = scene.scenario
    new = {id_: draft for id_, draft in drafts.items() if draft.is_mended}

    async def checked(asked: Mapping[str, Any]) -> dict[str, Problem | None]:
        found = await checker({id_: draft for id_, draft in asked.items() if not draft.accepted})
        return {id_: stated(why) for id_, why in found.items()}

    known = state["problems"] if problems is None else problems
    found = await reviewed(new, rule(lambda draft: stated(rules(draft))), checked, problems=known)
    told: Problems = {
        id_: {**each, "written": text(drafts[id_]) if id_ in drafts else ""} for id_, each in found.items()
    }
    given = {draft.id: draft.own_id for draft in scenario.drafts.of(kind) if draft.is_mended}
    by_hand = [id_ for id_, draft in new.items() if given.get(id_) == draft.own_id]
    update = settled(state, kind, new, told, scenario.rewrites, by_hand)
    notes, after = update["notes"], list[ApolloDraft]()
    for note in notes:
        if note["result"] != "rejected" and note["id"] in drafts:
            after.append(drafts[note["id"]].looked_at(note["reason"]))
    passed = sum(note["result"] == "passed" for note in notes)
    if notes:
        again = ", after a rewrite" if state["round"] else ""
        scene.tell(f"{scenario.user}: {passed} of {len(notes)} {kind} pass{again}")
    return {**update, "drafts": {kind: rows_of(after)}}


async def ask_checker(scene: Scene, check: str, prompt: str, inputs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Ask a model to check some drafts, and return the problems by id.

    Args:
        scene: The node's scene.
        check: The name of the check.
        prompt: The prompt; its reply has a verdict, `right` or `wrong`.
        inputs: The inputs of the prompt, by id.
    """
    replies = await ask_each(scene, prompt, inputs)
    return {
        id_: UNCHECKED if reply is None else f"{check}: {reply.explanation or 'the checker finds it wrong'}"
        for id_, reply in replies.items()
        if reply is None or reply.verdict == "wrong"
    }

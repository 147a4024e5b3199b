"""New pairs: some a call, each call shown what there is already."""

from __future__ import annotations

from dialoom.graphs.stage import Scene, Update
from dialoom.personas.preferences import Draft
from dialoom.roles import UnparsedReplyError

from .replies import WrittenPairs
from .scenario import PairsScenario
from .stages import PairsState


async def write(state: PairsState, scene: Scene) -> Update:
    """One call for new pairs. What repeats an earlier preference or question word for word is a twin."""
    scenario: PairsScenario = scene.scenario
    written = state["written"]
    told = f"{scenario.topic.topic}: call {len(state['calls']) + 1} of {scenario.calls}"
    inputs = {**scenario.topic.model_dump(), "count": scenario.per_call}
    try:
        reply: WrittenPairs = await scene.ask(
            "prefeval_pairs/pairs", **inputs, written=[row["preference"] for row in written]
        )
    except UnparsedReplyError:
        scene.tell(f"{told}: the reply could not be read")
        return {"calls": [{"pairs": 0, "unparsed": 1}]}
    known = {row[key].casefold() for row in written for key in ("preference", "question")}
    drafts = []
    for item in reply.items:
        texts = {item.preference.casefold(), item.question.casefold()}
        draft = Draft(topic=scenario.topic.topic, **item.model_dump(), dropped="twin" if texts & known else "")
        drafts.append({**draft.model_dump(mode="json", exclude_defaults=True), "text_id": draft.own_id})
        known |= texts
    scene.tell(f"{told}: {len(drafts)} pairs, {len(written) + len(drafts)} in all")
    return {"written": drafts, "calls": [{"pairs": len(drafts), "unparsed": 0}]}

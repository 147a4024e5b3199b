"""The state and the nodes of an item: replies to preferences, retrieval, the answer by its method, and the choice.

Section 2.3 and 4 of the paper. What goes to the model is built anew at each call from the scenario and the replies, so
a long conversation is in no checkpoint.
"""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, TypedDict

import numpy as np

from dialoom.graphs.conversation import joined
from dialoom.graphs.embedding import embedded_rows, highest
from dialoom.graphs.stage import Scene, Update
from dialoom.roles import UnparsedReplyError

from .conversation import explicit_preferences, own_places, preceding, utterances
from .options import Method, Task
from .scenario import PrefEvalScenario

LETTERS = "ABCD"

_LABEL = re.compile(
    r"\A[\s*_#]*(?:(?:my |the )?(?:new|revised|final|improved) )?(?:answer|response)[*_]*:[\s*_]*", re.I
)
_TAGGED = re.compile(r"<choice>(.*?)(?:</choice>|\Z)", re.I | re.S)
_LONE_LETTER = re.compile(r"[\s(\[*_'\"]*([A-D])[\s)\].:*_'\"]*")


class ItemState(TypedDict, total=False):
    """What is checkpointed.

    Attributes:
        task: As the scenario has it, for the edges.
        method: Likewise.
        position: Where the preference stands: at first as the scenario has it.
        replies: The model's own replies to explicit preferences, by the preference's sentence.
        replies_broken_off: Why some of them are not all that was to be said, in the provider's word.
        retrieved: The places, in the conversation before the question, of the messages that rag has found.
        question_sent: The last user message, as it was sent.
        first: The first answer of a self-critic.
        critique: Its critique.
        answer: The answer that counts; empty if the model gave none.
        broken_off: Why it is not all that was to be said, in the provider's word, if so.
        judgements: As plain values.
    """

    task: Task
    method: Method
    position: float
    replies: dict[str, str]
    replies_broken_off: dict[str, str]
    retrieved: list[int]
    question_sent: str
    first: str
    critique: str
    answer: str
    broken_off: str
    judgements: Annotated[list[dict[str, Any]], joined]


async def reply(state: ItemState, scene: Scene) -> Update:  # noqa: ARG001
    """Ask for the model's own replies to explicit preferences: of one model, the same in all items."""
    broken_off: dict[str, str] = {}

    async def to(preference: str) -> str:
        said = str(await scene.ask_common("prefeval/reply", history=[{"speaker": "user", "content": preference}]))
        if scene.finish_reason is not None:  # this reply's: nothing is awaited since it was heard
            broken_off[preference] = scene.finish_reason
        return said

    preferences = explicit_preferences(scene.scenario)
    replies = await asyncio.gather(*map(to, preferences))
    update: Update = {"replies": dict(zip(preferences, replies, strict=True))}
    if broken_off:
        update["replies_broken_off"] = {each: broken_off[each] for each in preferences if each in broken_off}
    return update


async def retrieve(state: ItemState, scene: Scene) -> Update:
    """Find the messages most like the question by the cosine of embeddings.

    The unit is a message, not an exchange as the paper has it: so the release does.
    """
    scenario: PrefEvalScenario = scene.scenario
    lines = preceding(scenario, state["replies"], state["position"])
    pool = {id(line): place for place, line in enumerate(scenario.distractors.value)}
    own = [line.content for line in lines if id(line) not in pool]
    shared = await embedded_rows([line.content for line in scenario.distractors.value], scene, scenario.embedder)
    others = await embedded_rows([scenario.pair.question, *own], scene, scenario.embedder)
    scores = np.empty(len(lines))
    scores[[place for place, line in enumerate(lines) if id(line) not in pool]] = others[1:] @ others[0]
    if len(shared):
        known = [(place, pool[id(line)]) for place, line in enumerate(lines) if id(line) in pool]
        scores[[place for place, _ in known]] = (shared @ others[0])[[at for _, at in known]]
    return {"retrieved": highest(scores, scenario.retrieved)}


async def answer(state: ItemState, scene: Scene) -> Update:
    """Ask for the answer, or what a self-critic says first."""
    prompt = PROMPTS[state["method"]]
    inputs = _inputs(state, scene)
    if state["method"] == "rag":
        inputs["retrieved"] = [inputs["history"][place] for place in state["retrieved"]]
    sent = scene.rendered(prompt, **{**inputs, "history": []})[-1]["content"]
    said = await _said(scene, prompt, inputs)
    # Without a first answer there is nothing to criticise.
    is_last = state["method"] != "self-critic" or not said
    return {"question_sent": sent, **(_answered(said, scene) if is_last else {"first": said})}


async def criticise(state: ItemState, scene: Scene) -> Update:
    """Ask for what a self-critic says of its first answer."""
    return {"critique": await _said(scene, "prefeval/critique", _second_inputs(state, scene))}


async def revise(state: ItemState, scene: Scene) -> Update:
    """Ask for the answer after the critique; none, if there was no critique."""
    if not state["critique"]:
        return {"answer": ""}
    inputs = {**_second_inputs(state, scene), "critique": state["critique"]}
    said = await _said(scene, "prefeval/revision", inputs)
    return _answered(_LABEL.sub("", said).strip(), scene)


def _answered(answer: str, scene: Scene) -> Update:
    return {"answer": answer, **({} if scene.finish_reason is None else {"broken_off": scene.finish_reason})}


def chosen(answer: str) -> str | None:
    """Return the letter of a choice, which must stand alone in its tag (or alone altogether); `None` without one."""
    tagged = _TAGGED.search(answer)
    found = _LONE_LETTER.fullmatch(tagged[1] if tagged else answer)
    return found[1] if found else None


def shown_options(scenario: PrefEvalScenario) -> list[str]:
    """Return the options in the order in which they are shown; none if the answer is free."""
    return [scenario.pair.options[place] for place in scenario.order]


def is_hit(scenario: PrefEvalScenario, state: ItemState) -> bool:
    """Return whether retrieval found a message of the user's that tells the preference."""
    own = own_places(scenario, state["replies"], state["position"])
    return any(place in own and (place - own.start) % 2 == 0 for place in state["retrieved"])


PROMPTS: dict[Method, str] = {
    "zero-shot": "prefeval/zero-shot",
    "reminder": "prefeval/reminder",
    "cot": "prefeval/cot",
    "rag": "prefeval/rag",
    "self-critic": "prefeval/zero-shot",
}


def _inputs(state: ItemState, scene: Scene) -> dict[str, Any]:
    scenario: PrefEvalScenario = scene.scenario
    history = utterances(preceding(scenario, state["replies"], state["position"]))
    return {"history": history, "question": scenario.pair.question, "options": shown_options(scenario)}


def _second_inputs(state: ItemState, scene: Scene) -> dict[str, Any]:
    """Return what a self-critic is shown besides; the letter apart, as a tag in what was said would be no tag."""
    return {**_inputs(state, scene), "first": state["first"], "choice": chosen(state["first"]) or ""}


async def _said(scene: Scene, prompt: str, inputs: dict[str, Any]) -> str:
    """Return what the assistant says; nothing, if it twice said nothing: its result, and no failure of the run."""
    try:
        return str(await scene.ask(prompt, **inputs))
    except UnparsedReplyError:
        return ""

"""The state and the nodes of an item: replies to preferences, retrieval, the answer by its method, and the choice.

Sections 2.3 and 4 of the paper. The model's prompt is rendered at each call from the scenario and the replies, so
no checkpoint holds a long conversation.
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
    """The state that is checkpointed.

    Attributes:
        task: The scenario's task, for the edges.
        method: The scenario's method, for the edges.
        position: The preference's position, initially that of the scenario.
        replies: The model's own replies to explicit preferences, by the preference's sentence.
        replies_broken_off: The provider's finish reasons of the replies that were cut off.
        retrieved: The indices, in the conversation before the question, of the messages that rag retrieved.
        question_sent: The last user message, as it was sent.
        first: The first answer of self-critic.
        critique: The critique of self-critic.
        answer: The final answer; empty if the model gave none.
        broken_off: The provider's finish reason, if the answer was cut off.
        judgements: The judgements as plain values.
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
    """Request the model's own replies to explicit preferences; a model's replies are the same in all items."""
    broken_off: dict[str, str] = {}

    async def to(preference: str) -> str:
        said = str(await scene.ask_common("prefeval/reply", history=[{"speaker": "user", "content": preference}]))
        if scene.finish_reason is not None:  # that of this reply: nothing was awaited since
            broken_off[preference] = scene.finish_reason
        return said

    preferences = explicit_preferences(scene.scenario)
    replies = await asyncio.gather(*map(to, preferences))
    update: Update = {"replies": dict(zip(preferences, replies, strict=True))}
    if broken_off:
        update["replies_broken_off"] = {each: broken_off[each] for each in preferences if each in broken_off}
    return update


async def retrieve(state: ItemState, scene: Scene) -> Update:
    """Retrieve the messages most similar to the question by cosine of embeddings.

    The unit is a message, as in the release, not an exchange, as in the paper.
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
    """Request the answer, or the first answer of self-critic."""
    prompt = PROMPTS[state["method"]]
    inputs = _inputs(state, scene)
    if state["method"] == "rag":
        inputs["retrieved"] = [inputs["history"][place] for place in state["retrieved"]]
    sent = scene.rendered(prompt, **{**inputs, "history": []})[-1]["content"]
    said = await _said(scene, prompt, inputs)
    # Self-critic without a first answer has nothing to criticise.
    is_last = state["method"] != "self-critic" or not said
    return {"question_sent": sent, **(_answered(said, scene) if is_last else {"first": said})}


async def criticise(state: ItemState, scene: Scene) -> Update:
    """Request the critique of the first answer."""
    return {"critique": await _said(scene, "prefeval/critique", _second_inputs(state, scene))}


async def revise(state: ItemState, scene: Scene) -> Update:
    """Request the answer after the critique; the answer is empty without a critique."""
    if not state["critique"]:
        return {"answer": ""}
    inputs = {**_second_inputs(state, scene), "critique": state["critique"]}
    said = await _said(scene, "prefeval/revision", inputs)
    return _answered(_LABEL.sub("", said).strip(), scene)


def _answered(answer: str, scene: Scene) -> Update:
    return {"answer": answer, **({} if scene.finish_reason is None else {"broken_off": scene.finish_reason})}


def chosen(answer: str) -> str | None:
    """Return the letter of a choice, alone in its tag or alone in the answer; `None` without one."""
    tagged = _TAGGED.search(answer)
    found = _LONE_LETTER.fullmatch(tagged[1] if tagged else answer)
    return found[1] if found else None


def shown_options(scenario: PrefEvalScenario) -> list[str]:
    """Return the options in the order shown; none for a free answer."""
    return [scenario.pair.options[place] for place in scenario.order]


def is_hit(scenario: PrefEvalScenario, state: ItemState) -> bool:
    """Return whether a retrieved message is one in which the user states the preference."""
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
    """Return the inputs of self-critic's later prompts; the letter is separate, as tags in messages are escaped."""
    return {**_inputs(state, scene), "first": state["first"], "choice": chosen(state["first"]) or ""}


async def _said(scene: Scene, prompt: str, inputs: dict[str, Any]) -> str:
    """Return the assistant's reply, or an empty text if it was empty twice, which is a result and no failure."""
    try:
        return str(await scene.ask(prompt, **inputs))
    except UnparsedReplyError:
        return ""

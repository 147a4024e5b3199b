"""Rows for trainers: prompts with the calls that should follow, and these calls as something to be learnt.

Calls are text in them, as a trainer's list of tools is one for all rows, and a row's eight stand in its prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from dialoom.graphs.capabilities import ExportOptions
from dialoom.graphs.outcome import Episode
from dialoom.personas.apollo import TOOLS, execute
from dialoom.personas.apollo.text_protocol import FINISH, call_text, responses_text
from dialoom.prompts import ChatMessage, PromptLibrary, Utterance

from .nodes import ASSISTANT, AgentState, agent_inputs, calling_inputs, world_of
from .scenario import ApolloScenario


class RolloutOptions(ExportOptions):
    """What a row for a trainer is."""

    rows: Literal["episode", "step"] = Field(
        "episode",
        description="What a row is: episode, a whole request; step, one turn after the right ones before it, which "
        "needs no tools in training.",
    )


def grpo_rows(
    episode: Episode,
    scenario: ApolloScenario,
    prompts: PromptLibrary,
    models: Mapping[str, str],  # noqa: ARG001
    *,
    options: RolloutOptions,
) -> Iterator[dict[str, Any]]:
    """Prompts with the calls that should follow, for TRL's reward functions and for verl. The protocol, section 9.

    Objects that differ from row to row are JSON text. For a step there is one call to make, or none: then the agent is
    to say that it has finished.
    """
    if episode.state != "done":
        return
    messages, gold = right_dialogue(episode, scenario, prompts), scenario.pair.calls()
    start = len(messages) - _turns_after(len(gold))
    is_step = options.rows == "step"
    for step in range(len(gold) + 1 if is_step else 1):
        calls = _json(gold[step : step + 1] if is_step else gold)
        yield {
            "prompt": messages[: start + 2 * step],
            **scenario.facets(),
            **({"step": step + 1} if is_step else {}),
            "tools": _json([TOOLS[name].definition() for name in scenario.case.value.tools]),
            "gold_calls": calls,
            "data_source": "dialoom/apollo",
            "ability": "tool_calling",
            "reward_model": {"style": "rule", "ground_truth": calls},
            "extra_info": {"index": f"{episode.id}-{step + 1}", "world_seed": scenario.played.world_seed},
            "agent_name": "single_turn_agent" if is_step else "tool_agent",
        }


def sft_rows(
    episode: Episode,
    scenario: ApolloScenario,
    prompts: PromptLibrary,
    models: Mapping[str, str],  # noqa: ARG001
    *,
    options: RolloutOptions,
) -> Iterator[dict[str, Any]]:
    """The right dialogue: as `messages`, or a row for each turn of the agent, as TRL's prompt and completion."""
    if episode.state != "done":
        return
    messages = right_dialogue(episode, scenario, prompts)
    if options.rows == "episode":
        yield {"messages": messages, **scenario.facets()}
        return
    start = len(messages) - _turns_after(len(scenario.pair.gold))
    for step, at in enumerate(range(start, len(messages), 2), start=1):
        yield {"prompt": messages[:at], "completion": [messages[at]], **scenario.facets(), "step": step}


def right_dialogue(episode: Episode, scenario: ApolloScenario, prompts: PromptLibrary) -> list[ChatMessage]:
    """A sample as it would go if the agent made the gold calls one by one, from the system message to its last word.

    The agent is helped as in the first attempt of the sample: notes and what was retrieved are those that were.
    """
    world, tools = world_of(scenario), scenario.case.value.tools
    said: list[Utterance] = []
    for call in scenario.pair.calls():
        output = json.dumps(execute(world, call, tools), ensure_ascii=False)
        said.append({"speaker": ASSISTANT, "content": call_text(call)})
        said.append({"speaker": "tool", "content": responses_text([output])})
    said.append({"speaker": ASSISTANT, "content": FINISH})
    details = episode.outcome.details
    state: AgentState = {"framework": scenario.played.framework, "is_native": False, "messages": [], "began": [0]}
    if "notes" in details:
        state["notes"] = details["notes"]
    if "retrieved" in details:
        state["retrieved"] = details["retrieved"]
    calling = prompts["apollo/calling"].render(calling_inputs(scenario))[0]["content"]
    return prompts["apollo/agent"].render({**agent_inputs(scenario, state, calling), "history": said})


def _turns_after(calls: int) -> int:
    """How many messages follow the request: each call and its output, and the last word."""
    return 2 * calls + 1


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

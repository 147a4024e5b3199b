"""APOLLO's formats: a row per sample with its scores, and rows for trainers.

Rows for trainers hold calls as text. A trainer takes one list of tools for all rows, but each row has its own eight
tools, which its prompt describes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from dialoom.graphs import Episode, Exporter
from dialoom.graphs.training_rows import SystemOptions
from dialoom.personas.apollo import TOOLS, execute
from dialoom.personas.apollo.calls import json_text
from dialoom.personas.apollo.scores import FINISH, format_call, format_responses
from dialoom.prompts import ChatMessage, PromptLibrary, Utterance

from .nodes import ASSISTANT, build_agent_inputs, build_calling_inputs, load_world
from .scenario import ApolloScenario

Rows = Iterator[dict[str, Any]]


class RolloutOptions(SystemOptions):
    """The options of an export for a trainer: the kind of rows."""

    rows: Literal["episode", "step"] = Field(
        "episode",
        description="Content of a row: episode (a whole request) or step (one turn, preceded by the gold turns before "
        "it; training then needs no tools).",
    )


def sample_rows(episode: Episode, scenario: ApolloScenario, _: PromptLibrary, models: Mapping[str, str]) -> Rows:
    """Yield a sample as a row.

    Values whose structure varies between rows are JSON text, so that each column has one type.
    """
    details, outcome = episode.outcome.details, episode.outcome
    yield {
        "id": episode.scenario,
        "model": models["assistant"],
        **scenario.facets(),
        "protocol": details["protocol"],
        "request": details["request"],
        "preference": json_text(dict(scenario.pair.values)),
        "tools": details["tools"],
        "gold_calls": json_text(details["gold"]),
        "calls": json_text(details["calls"]),
        "outputs": json_text(details["outputs"]),
        "ended_by": outcome.ended_by,
        "flags": details["flags"],
        "turns": outcome.counts["turns"],
        "attempts": outcome.counts["attempts"],
        "hit": details.get("hit"),
        **details["scores"],
    }


def grpo_rows(
    episode: Episode, scenario: ApolloScenario, prompts: PromptLibrary, _: Any, *, options: RolloutOptions
) -> Rows:
    """Yield prompts with the expected calls, for TRL's rewards and for verl (section 9 of the protocol).

    Objects that differ between rows are JSON text. A step expects one call, except the last one: there the agent should
    say that it has finished.
    """
    messages, gold = options.apply(build_gold_dialogue(episode, scenario, prompts)), scenario.pair.calls()
    start = len(messages) - (2 * len(gold) + 1)  # each call with its output, and the final message
    is_step = options.rows == "step"
    for step in range(len(gold) + 1 if is_step else 1):
        calls = json_text(gold[step : step + 1] if is_step else gold)
        yield {
            "prompt": messages[: start + 2 * step],
            **scenario.facets(),
            **({"step": step + 1} if is_step else {}),
            "tools": json_text([TOOLS[name].definition() for name in scenario.case.value.tools]),
            "gold_calls": calls,
            "data_source": "dialoom/apollo",
            "ability": "tool_calling",
            "reward_model": {"style": "rule", "ground_truth": calls},
            "extra_info": {"index": f"{episode.id}-{step + 1}", "world_seed": scenario.played.world_seed},
            "agent_name": "single_turn_agent" if is_step else "tool_agent",
        }


def sft_rows(
    episode: Episode, scenario: ApolloScenario, prompts: PromptLibrary, _: Any, *, options: RolloutOptions
) -> Rows:
    """Yield the gold dialogue as one row of `messages`, or as rows in TRL's prompt-completion form, one per turn."""
    messages = options.apply(build_gold_dialogue(episode, scenario, prompts))
    if options.rows == "episode":
        yield {"messages": messages, **scenario.facets()}
        return
    for step, at in enumerate(range(len(messages) - (2 * len(scenario.pair.gold) + 1), len(messages), 2), start=1):
        yield {"prompt": messages[:at], "completion": [messages[at]], **scenario.facets(), "step": step}


def build_gold_dialogue(episode: Episode, scenario: ApolloScenario, prompts: PromptLibrary) -> list[ChatMessage]:
    """Return a sample's dialogue, including the system message, in which the gold calls are made one by one.

    The agent gets the same notes or retrieved sessions as in the sample's first attempt.
    """
    world, tools = load_world(scenario), scenario.case.value.tools
    lines: list[Utterance] = []
    for call in scenario.pair.calls():
        output = format_responses([json_text(execute(world, call, tools))])
        lines += [{"speaker": ASSISTANT, "content": format_call(call)}, {"speaker": "tool", "content": output}]
    lines.append({"speaker": ASSISTANT, "content": FINISH})
    start = {"framework": scenario.played.framework, "is_native": False, "messages": [], "began": [0]}
    details = episode.outcome.details
    state: Any = start | {name: details[name] for name in ("notes", "retrieved") if name in details}
    calling = prompts["apollo/calling"].render(build_calling_inputs(scenario))[0]["content"]
    return prompts["apollo/agent"].render({**build_agent_inputs(scenario, state, calling), "history": lines})


EXPORTERS: Mapping[str, Exporter] = {
    "apollo": Exporter(
        "a row per sample: its axes, the gold calls, the agent's calls, and the scores",
        "lines",
        sample_rows,
        only_done=True,
    ),
    "grpo": Exporter(
        "prompts with the expected calls, for TRL's and verl's rewards",
        "lines",
        grpo_rows,
        RolloutOptions,
        tasks=("reinforcement-learning",),
        only_done=True,
    ),
    "sft": Exporter(
        "the gold dialogue: messages, or TRL prompt-completion by step",
        "lines",
        sft_rows,
        RolloutOptions,
        only_done=True,
    ),
}

"""PersonaLens formats: the release's own files, and conversational fine-tuning data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dialoom.graphs.outcome import Episode
from dialoom.graphs.recipe import Exporter
from dialoom.prompts import PromptLibrary, Utterance

from .scenario import PersonaLensScenario


def release_files(
    episode: Episode,
    scenario: PersonaLensScenario,
    prompts: PromptLibrary,  # noqa: ARG001
    models: Mapping[str, str],
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """`output/dialogue/<user>/<assistant>/<task>_dialogue.json`, as the release's own tools read it.

    The assistant's folder also names the setting, as one task may have been held in several.
    """
    if episode.state != "done":
        return
    assistant = f"{models['assistant']}-{scenario.setting}".replace("/", "_").replace(":", "_")
    content = {
        "user_id": scenario.user,
        "task_id": scenario.task,
        "task_description": scenario.description,
        "user_model": models["user"],
        "assistant_model": models["assistant"],
        "dialogue": [{"role": line.role, "content": line.content} for line in episode.outcome.messages],
    }
    yield ("output", "dialogue", scenario.user, assistant, f"{scenario.task}_dialogue.json"), content


def sft_lines(
    episode: Episode,
    scenario: PersonaLensScenario,
    prompts: PromptLibrary,
    models: Mapping[str, str],  # noqa: ARG001
) -> Iterator[dict[str, Any]]:
    """`{"messages": [...]}` as the assistant saw the dialogue, its system message first, ending on its own reply."""
    said = list(episode.outcome.messages)
    while said and said[-1].role != "assistant":
        said.pop()
    if episode.state != "done" or not said:
        return
    name = "personalens/assistant-vanilla" if scenario.setting == "vanilla" else "personalens/assistant"
    history: list[Utterance] = [{"speaker": line.role, "content": line.content} for line in said]
    yield {"messages": prompts[name].render({"history": history, **scenario.for_assistant()})}


EXPORTERS: Mapping[str, Exporter] = {
    "personalens": Exporter("the PersonaLens release's own dialogue files (a folder)", "files", release_files),
    "sft": Exporter("conversations for supervised fine-tuning of the assistant", "lines", sft_lines),
}

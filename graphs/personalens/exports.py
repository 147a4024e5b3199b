"""PersonaLens formats: the release's own files, and conversational fine-tuning data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dialoom.graphs.capabilities import Exporter
from dialoom.graphs.outcome import Episode
from dialoom.prompts import PromptLibrary, Utterance

from .scenario import PersonaLensScenario

_PARTS = {"user": "_user", "assistant": "_asst"}


def release_files(
    episode: Episode, scenario: PersonaLensScenario, _: PromptLibrary, models: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield `output/dialogue/<user>/<assistant>/<task>_dialogue.json`, as the release's own tools read it.

    The assistant's folder also names the setting, because a task may have been played in several settings.
    """
    if episode.state != "done":
        return
    content = {
        "user_id": _number(scenario.user),
        "task_id": scenario.task,
        "task_description": scenario.intent,  # the release's name for the intent, which its judge is shown
        "user_model": models["user"],
        "assistant_model": models["assistant"],
        "dialogue": [{"role": line.role, "content": line.content} for line in episode.outcome.messages],
    }
    folders = ("output", "dialogue", scenario.user, _assistant(scenario, models))
    yield (*folders, f"{scenario.task}_dialogue.json"), content


def evaluation_files(
    episode: Episode, scenario: PersonaLensScenario, _: PromptLibrary, models: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield `output/evaluation/<user>/<assistant>/<metric>/<judge>/<task>.txt`, as the release's own scripts read it.

    The score has the wording by which those scripts find it (figures 16 to 20 of the paper). They treat a file without
    it as a failed task, so a missing score has no file. Judgements of single turns have no place in the layout.
    """
    for judgement in episode.outcome.judgements:
        if judgement.score is None or judgement.turn is not None:
            continue
        folders = ("output", "evaluation", scenario.user, _assistant(scenario, models), judgement.metric)
        part = _PARTS[judgement.target] if judgement.metric in ("naturalness", "coherence") else ""
        if isinstance(judgement.score, bool):
            text = f"VERDICT: {judgement.score}\nEXPLANATION: {judgement.explanation}\n"
        else:
            text = f"{judgement.metric.capitalize()} Score: {judgement.score}\nJustification: {judgement.explanation}\n"
        yield (*folders, _name(models["judge"]), f"{scenario.task}{part}.txt"), text


def sft_lines(
    episode: Episode, scenario: PersonaLensScenario, prompts: PromptLibrary, _: Any
) -> Iterator[dict[str, Any]]:
    """Yield `{"messages": [...]}` as the assistant saw the dialogue, from its system message to its last reply."""
    said = list(episode.outcome.messages)
    while said and said[-1].role != "assistant":
        said.pop()
    if episode.state != "done" or not said:
        return
    history: list[Utterance] = [{"speaker": line.role, "content": line.content} for line in said]
    prompt = prompts[scenario.assistant_prompt]
    inputs = {"history": history, **scenario.for_assistant()}
    yield {"messages": prompt.render({name: inputs[name] for name in prompt.front.inputs})}


def _assistant(scenario: PersonaLensScenario, models: Mapping[str, str]) -> str:
    return _name(f"{models['assistant']}-{scenario.setting}")


def _name(model: str) -> str:
    return model.replace("/", "_").replace(":", "_")


def _number(user: str) -> int | str:
    """Return the number of `user7`, which is the release's id; ids of another form are unchanged."""
    found = re.fullmatch(r"user(\d+)", user, re.ASCII)
    return int(found[1]) if found else user


EXPORTERS: Mapping[str, Exporter] = {
    "personalens": Exporter("the PersonaLens release's own dialogue files (a folder)", "files", release_files),
    "evaluations": Exporter(
        "the judgements in the layout of the PersonaLens release (a folder)", "files", evaluation_files
    ),
    "sft": Exporter("conversations for supervised fine-tuning of the assistant", "lines", sft_lines),
}

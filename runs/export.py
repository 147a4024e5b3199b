"""Taking a run away: lines of JSON, or a folder of files; written beside their place and moved there when whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dialoom.graphs import Episode, Recipe, Scenario
from dialoom.graphs.recipe import Exporter
from dialoom.prompts import PromptLibrary

from .errors import RunError
from .recipes import load_recipe
from .store import Judging, RunFile

DIALOGUES = "dialogues"


def formats(recipe: Recipe) -> dict[str, str]:
    """Names and descriptions of the formats that a recipe's runs can be exported to."""
    own = {name: exporter.description for name, exporter in recipe.exporters().items()}
    return {DIALOGUES: "one JSON line per finished scenario, with its judgements", **own}


def export(run: RunFile, format_: str, target: Path, judging: str | None = None) -> int:
    """Write a run's finished scenarios, in plan order; returns how many lines or files were written.

    Args:
        run: The run.
        format_: One of `formats`.
        target: A file, or for formats of files a folder.
        judging: The set of judgements; by default the oldest.

    Raises:
        RunError: If there is no such format, or the target cannot be written; nothing is left half-written.
        StoreError: If there is no such set.
    """
    recipe = load_recipe(run.config.recipe)
    exporter = recipe.exporters().get(format_)
    if exporter is None and format_ != DIALOGUES:
        raise RunError(f"unknown format {format_!r}; there are {', '.join(formats(recipe))}")
    chosen = run.judging(judging)
    items = _dialogues(run, recipe, chosen) if exporter is None else _items(run, recipe, exporter, chosen)
    try:
        if exporter is not None and exporter.kind == "files":
            return _write_files(items, target)
        return _write_lines(items, target)
    except OSError as error:
        raise RunError(f"{target} cannot be written: {error.strerror or error}") from error


def dialogue(
    episode: Episode, scenario: Scenario, recipe: Recipe, models: Mapping[str, str], prompts: Mapping[str, str]
) -> dict[str, Any]:
    """One line of the `dialogues` format."""
    line: dict[str, Any] = {
        "id": episode.id,
        "recipe": recipe.name,
        "scenario": scenario.described(),
        "messages": [{"role": message.role, "content": message.content} for message in episode.outcome.messages],
        "ended_by": episode.outcome.ended_by,
        "judgements": [judgement.model_dump() for judgement in episode.outcome.judgements],
        "models": dict(models),
        "prompts": dict(prompts),
    }
    return line if episode.error is None else {**line, "error": episode.error}


def provenance(run: RunFile, judging: Judging | None) -> tuple[dict[str, str], dict[str, str]]:
    """Models by role and prompts' hashes by id behind an exported line; the judge is that of the set."""
    models = run.config.model_names
    prompts = {prompt.id: prompt.hash for prompt in run.prompts.values() if prompt.front.role in models}
    if judging is not None:
        models |= judging.model_names
        prompts |= judging.prompts
    return models, dict(sorted(prompts.items()))


def _dialogues(run: RunFile, recipe: Recipe, judging: Judging | None) -> Iterator[dict[str, Any]]:
    models, prompts = provenance(run, judging)
    for episode, scenario in _finished(run, recipe, judging):
        yield dialogue(episode, scenario, recipe, models, prompts)


def _items(run: RunFile, recipe: Recipe, exporter: Exporter, judging: Judging | None) -> Iterator[Any]:
    models: Mapping[str, str] = run.config.model_names
    prompts: PromptLibrary = run.prompts
    for episode, scenario in _finished(run, recipe, judging):
        yield from exporter.items(episode, scenario, prompts, models)


def _finished(run: RunFile, recipe: Recipe, judging: Judging | None) -> Iterator[tuple[Episode, Scenario]]:
    for episode in run.episodes(judging.name if judging else None):
        yield episode, run.scenario(recipe, run.resolve(episode.id))


def _write_lines(items: Iterator[Any], target: Path) -> int:
    """Write to a file beside the target, then put it in the target's place; pipes and devices are written directly."""
    if target.exists() and not target.is_file():
        if target.is_dir():
            raise RunError(f"{target} is a folder; this format is one file")
        with target.open("w", encoding="utf-8") as file:
            return _dump(items, file)
    partial = target.with_name(f".{target.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            count = _dump(items, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _dump(items: Iterator[Any], file: Any) -> int:
    count = 0
    for item in items:
        file.write(json.dumps(item, ensure_ascii=False) + "\n")
        count += 1
    return count


def _write_files(items: Iterator[Any], target: Path) -> int:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunError(f"{target} exists and is no empty folder; this format is a folder of files")
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    count = 0
    try:
        partial.mkdir(parents=True)
        for name, content in items:
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
            count += 1
        if target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return count

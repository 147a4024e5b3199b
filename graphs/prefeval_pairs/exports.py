"""Formats of pairs: drafts for people to edit, and the folder that PrefEval reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dialoom.graphs.capabilities import Exporter
from dialoom.graphs.outcome import Episode
from dialoom.graphs.recipe import RecipeError
from dialoom.personas.preferences import FOLDERS, FORMS, OPTIONS_FOLDER, Draft, row_of, texts_of
from dialoom.prompts import PromptLibrary

from .scenario import PairsScenario

Named = tuple[tuple[str, ...], dict[str, Any]]
"""The names of a file's folders and its own, and one of the rows in it."""


def draft_rows(
    episode: Episode,
    scenario: PairsScenario,
    prompts: PromptLibrary,  # noqa: ARG001
    models: Mapping[str, str],  # noqa: ARG001
) -> Iterator[Named]:
    """Every draft of a topic, with what has been made of it: first those that are in, then the others."""
    if episode.state != "done":
        return
    drafts = drafts_in(episode)
    for draft in sorted(drafts, key=lambda draft: bool(draft.dropped)):
        yield (f"{scenario.topic.topic}.json",), draft.model_dump(mode="json", exclude_defaults=True)


def release_rows(
    episode: Episode,
    scenario: PairsScenario,
    prompts: PromptLibrary,  # noqa: ARG001
    models: Mapping[str, str],  # noqa: ARG001
) -> Iterator[Named]:
    """The pairs that have all forms and options, as rows of the release's four files; row i is one pair in each.

    Raises:
        RecipeError: If the run ends before there are forms.
    """
    if episode.state != "done":
        return
    if scenario.until != "complete":
        raise RecipeError(
            f"format 'pairs': the run ends with pairs that are {scenario.until}; export drafts, and go on from them"
        )
    name = f"{scenario.topic.topic}.json"
    complete = [draft for draft in drafts_in(episode) if draft.is_complete]
    for index, draft in enumerate(complete):
        for form in FORMS:
            pair = draft.pair(form, index)
            conflicting = {"conflicting_preference": draft.conflicting_preference} if form == "explicit" else {}
            yield (*FOLDERS[form].split("/"), name), {**row_of(pair), **conflicting}
        answers = {"classification_task_options": list(draft.classification_task_options or ())}
        rate = {} if draft.violation_rate is None else {"violation_probability": draft.violation_rate}
        yield (OPTIONS_FOLDER, name), {**texts_of(pair), **answers, **rate}


def drafts_in(episode: Episode) -> list[Draft]:
    """The drafts that an outcome holds."""
    return [Draft.model_validate(each) for each in episode.outcome.details["drafts"]]


EXPORTERS: Mapping[str, Exporter] = {
    "pairs": Exporter(
        "the pairs as prefeval reads them, in the layout of its release (a folder)", "lists", release_rows
    ),
    "drafts": Exporter(
        "all drafts with what was found of them, to edit and go on from (a folder)", "lists", draft_rows
    ),
}

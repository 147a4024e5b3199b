"""Exports of finished topics: drafts to edit, the folder that PrefEval reads, texts for the gate, and tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dialoom.graphs.capabilities import Exporter
from dialoom.graphs.gate.talk import Facts, Said, Talk
from dialoom.graphs.generation import Note, NoteTally, Result
from dialoom.graphs.outcome import Episode
from dialoom.graphs.recipe import RecipeError
from dialoom.graphs.reporting.pivot import Column, Pivot, tabulate
from dialoom.graphs.reporting.table import Table
from dialoom.personas.preferences import FOLDERS, FORMS, OPTIONS_FOLDER, Draft, Form, row_of, texts_of

from .building import REASONS
from .scenario import PairsScenario

Named = tuple[tuple[str, ...], dict[str, Any]]
"""A file's path as folder names and its name, and one of its rows."""


def draft_rows(episode: Episode, scenario: PairsScenario, *_: Any) -> Iterator[Named]:
    """Yield every draft of a topic with its results; dropped ones come last."""
    if episode.state != "done":
        return
    for draft in sorted(drafts_in(episode), key=lambda draft: bool(draft.dropped)):
        yield (f"{scenario.topic.topic}.json",), draft.model_dump(mode="json", exclude_defaults=True)


def release_rows(episode: Episode, scenario: PairsScenario, *_: Any) -> Iterator[Named]:
    """Yield the complete pairs as rows of the release's four files; row i is the same pair in each.

    Raises:
        RecipeError: If the run ends before the forms are written.
    """
    if episode.state != "done":
        return
    if scenario.until != "complete":
        raise RecipeError(
            f"format 'pairs': the run ends with pairs that are {scenario.until}; export drafts, and go on from them"
        )
    name = f"{scenario.topic.topic}.json"
    for index, draft in enumerate(draft for draft in drafts_in(episode) if draft.is_complete):
        for form in FORMS:
            pair = draft.pair(form, index)
            conflicting = {"conflicting_preference": draft.conflicting_preference} if form == "explicit" else {}
            yield (*FOLDERS[form].split("/"), name), {**row_of(pair), **conflicting}
        answers = {"classification_task_options": list(draft.classification_task_options or ())}
        rate = {} if draft.violation_rate is None else {"violation_probability": draft.violation_rate}
        yield (OPTIONS_FOLDER, name), {**texts_of(pair), **answers, **rate}


def drafts_in(episode: Episode) -> list[Draft]:
    """Return the drafts of an outcome."""
    return [Draft.model_validate(each) for each in episode.outcome.details["drafts"]]


def written_talks(draft: Draft, place: str, facts: Facts, is_given: bool) -> Iterator[Talk]:
    """Yield a pair's texts, then its talks, which are written by a model and not spoken.

    Args:
        draft: The pair.
        place: The pair's name in locations.
        facts: The facts for the gate.
        is_given: Whether preference and question are the user's own: then they only serve to detect copies of them.
    """
    own = {"preference": draft.preference, "question": draft.question}
    made = {"earlier preference": draft.conflicting_preference}
    options = draft.classification_task_options or ()
    answers = {f"option {number}": text for number, text in enumerate(options, start=1)}
    texts = {f"{place}, {name}": text for name, text in (own | made | answers).items() if text}
    since = len(own) if is_given else 0
    if len(texts) > since:
        yield Talk.of_texts("writer", texts, facts, since)
    forms: tuple[Form, ...] = ("choice", "persona")
    for form in forms:
        lines = draft.pair(form, 0).talk
        said = [
            Said(line.speaker, line.content, where=f"{place}, {form} {at}") for at, line in enumerate(lines, start=1)
        ]
        if said:
            yield Talk(said, facts, author="writer")


_COLUMNS = {
    "written": "no twins",
    "validity": "valid",
    "rate": "violated",
    "rating": "rated",
    "selection": "chosen",
    "forms": "complete",
}
"""The stages after which pairs are counted, and the columns' titles."""
_REACHED = {"written": 1, "filtered": 4, "chosen": 5, "complete": 6}
_BY_HAND = "left out by hand"
_STAGE_OF = {reason: stage for stage, reasons in REASONS.items() for reason in reasons}
_MEANINGS = {reason: meaning for reasons in REASONS.values() for reason, meaning in reasons.items()}


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """Return the number of pairs left after each stage by topic, and the reasons for which others were dropped."""
    done = (episode for episode in episodes if episode.state == "done")
    first = next(done, None)
    if first is None:
        return []
    tally = NoteTally({**_MEANINGS, _BY_HAND: "somebody's own words stand in the drafts"})

    def counted() -> Iterator[Episode]:
        for episode in itertools.chain([first], done):
            tally.add(_note(str(number), draft) for number, draft in enumerate(drafts_in(episode), start=1))
            yield episode

    return [*tabulate([_stages(_REACHED[str(first.facets["until"])])], counted()), *tally.tables()]


def _note(number: str, draft: Draft) -> Note:
    check = draft.dropped if draft.dropped in _STAGE_OF else _BY_HAND if draft.dropped else ""
    result: Result = "dropped" if draft.dropped else "passed"
    return Note(kind="pairs", id=number, check=check, round=1, result=result, reason=draft.dropped)


def _stages(reached: int) -> Pivot:
    """Return the table of pairs left after each stage that the run reaches."""

    def left(place: int) -> Callable[[Episode], list[Any]]:
        return lambda episode: [not draft.dropped or _place(draft) > place for draft in drafts_in(episode)]

    def rates(episode: Episode) -> list[Any]:
        return [draft.violation_rate for draft in drafts_in(episode) if not draft.dropped]

    return Pivot(
        "stages",
        "Pairs that each stage has left",
        rows=["topic"],
        columns=[
            Column("pairs", lambda episode: [True] * episode.outcome.counts["pairs"], "count"),
            *(Column(title, left(place), "count") for place, title in enumerate([*_COLUMNS.values()][:reached])),
            Column("rate %", rates, "mean"),
            Column("unparsed calls", lambda episode: [True] * episode.outcome.counts["unparsed_calls"], "count"),
        ],
        only_scored=False,
        notes=[
            "Rate: the violation rate, the mean over the pairs that are left. Unparsed calls: replies to calls for new "
            "pairs that could not be parsed."
        ],
    )


def _place(draft: Draft) -> int:
    """Return the column of the stage that dropped a draft; drafts left out by hand count in no column."""
    stage = _STAGE_OF.get(draft.dropped, "written")
    return [*_COLUMNS].index(stage if stage in _COLUMNS else "forms")


EXPORTERS: Mapping[str, Exporter] = {
    "pairs": Exporter(
        "the pairs as prefeval reads them, in the layout of its release (a folder)", "lists", release_rows
    ),
    "drafts": Exporter(
        "all drafts with what was found of them, to edit and go on from (a folder)", "lists", draft_rows
    ),
}

"""The opened runs of one scorecard or several, by system and assistant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dialoom.graphs import Recipe
from dialoom.runs.errors import RunError
from dialoom.runs.report.reported import ReportedRun
from dialoom.runs.store import RunFile, panel_of
from dialoom.runs.trust import Trust

from .suite import RECORD, CardRecord, Size, Suite, SuiteSystem, read_record


@dataclass(frozen=True, slots=True)
class PlayedSystem:
    """A system and the runs of all assistants, with the judgements that count.

    Attributes:
        system: The system, as defined in the suite.
        recipe: Its recipe.
        reported: A run for each assistant, labelled by it, in the same order for all systems.
    """

    system: SuiteSystem
    recipe: Recipe
    reported: Sequence[ReportedRun]


def kept_records(folders: Sequence[Path]) -> list[CardRecord]:
    """Return the records of folders, which must be of the same suite in the same size.

    Raises:
        RunError: If a folder holds no scorecard or is named twice, or they are not comparable.
    """
    records: list[CardRecord] = []
    for folder in folders:
        if (record := read_record(folder)) is None:
            raise RunError(f"{folder} holds no scorecard")
        records.append(record)
    places = [folder.resolve() for folder in folders]
    if twice := [folder for folder, place in zip(folders, places, strict=True) if places.count(place) > 1]:
        raise RunError(f"{twice[0]} is named twice")
    for folder, record in zip(folders, records, strict=True):
        if record.told() != records[0].told():
            raise RunError(
                f"{folder} was played with {record.told()}, and {folders[0]} with {records[0].told()}: only figures "
                "of one suite in one size can stand side by side"
            )
    return records


def opened(folders: Sequence[Path], trust: Trust, stack: ExitStack) -> tuple[Suite, Size, list[PlayedSystem]]:
    """Open all runs of the folders until the stack is closed.

    Raises:
        RunError: As `kept_records`.
        StoreError: If a run is missing or damaged.
    """
    records = kept_records(folders)
    runs = [
        (folder, assistant) for folder, record in zip(folders, records, strict=True) for assistant in record.assistants
    ]
    names = Counter(assistant.label for _, assistant in runs)
    labels = [
        assistant.label if names[assistant.label] == 1 else f"{assistant.label} ({folder})"
        for folder, assistant in runs
    ]
    played = []
    for system in records[0].suite.systems:
        reported = []
        for label, (folder, assistant) in zip(labels, runs, strict=True):
            if (name := assistant.runs.get(system.label)) is None:
                raise RunError(f"{folder / RECORD} names no run of {system.label} by {assistant.label}")
            file = stack.enter_context(RunFile(folder / name, trust=trust))
            panel = panel_of(file.judgement_sets())
            reported.append(ReportedRun(label, file, panel or file.judgement_set(None)))
        played.append(PlayedSystem(system, reported[0].run.recipe, reported))
    return records[0].suite, records[0].size, played

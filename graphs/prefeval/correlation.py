"""How far the quick task, to choose among options, ranks models and methods as free answers do (PrefEval, 3.4)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from .results import ItemResults
from .setting import Setting, grouped

_FEWEST = 3
"""Two points always lie on a line."""


class BothTasks(NamedTuple):
    """A setting's accuracy in both tasks, each the mean over topics."""

    setting: Setting
    generation: float
    classification: float


def both_tasks(results: ItemResults) -> list[BothTasks]:
    """The settings that have both."""
    found = []
    for setting in results.settings:
        if setting.task == "generation":
            free = results.average(setting)
            choice = results.average(setting._replace(task="classification"))
            if free and choice:
                found.append(BothTasks(setting, free.mean, choice.mean))
    return found


def by_form(cells: Sequence[BothTasks]) -> list[list[BothTasks]]:
    """The cells of each form together."""
    known = {cell.setting: cell for cell in cells}
    return [[known[setting] for setting in settings] for settings in grouped(known, by=("form",))]


def pearson(cells: Sequence[BothTasks]) -> float | None:
    """Pearson's coefficient; `None` of fewer than three cells, or where one task's accuracy is the same in all."""
    if len(cells) < _FEWEST:
        return None
    try:
        return statistics.correlation([cell.generation for cell in cells], [cell.classification for cell in cells])
    except statistics.StatisticsError:
        return None

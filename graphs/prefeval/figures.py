"""PrefEval's charts: figures 3-9, 10-13 and 23-25 of the paper, each where there is something to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dialoom.graphs.reporting.chart import Chart, Series

from .correlation import BothTasks, both_tasks, by_form, pearson
from .results import ItemResults, Runs
from .setting import OWN_TURNS, Setting, along, grouped, varying
from .verdicts import ERROR_TYPES, UNPARSED

PIE_TURNS = 10
"""The length at which the paper shows the shares of errors."""

_AXIS = "accuracy, mean over topics"
_TURNS = "turns: the unrelated ones, the preference's and the question's"
_BANDS = "Bands: 95 % bootstrap intervals; pairs are resampled within each topic."
_ENDS = "With 95 % bootstrap intervals; pairs are resampled within each topic."

Place = Callable[[Setting], float]


def charts(runs: Runs) -> list[Chart]:
    """All charts that there is something for, in one pass over the items of each run."""
    results = ItemResults(runs)
    return [
        chart
        for made in (_lengths, _methods, _forms, _shares, _numbers, _preferences, _conflict, _positions, _scatter, _k)
        for chart in made(results)
    ]


def _lengths(results: ItemResults) -> Iterable[Chart]:
    """Figures 3 and 10: zero-shot over turns and over tokens, a line for each model."""
    settings = [each for each in results.settings if each.is_plain and each.method == "zero-shot"]
    for suffix, panel in _panels(settings, ("task", "form")):
        by_turns = [setting for setting in panel if setting.length.unit == "turns"]
        for name, x_label, place, some in (
            ("turns", _TURNS, _turns, by_turns),
            ("tokens", "tokens before the question", results.tokens, panel),
        ):
            chart = _chart(f"{name}{suffix.name}", f"Zero-shot accuracy by {name}{suffix.title}", x_label)
            chart.series = _lines(results, some, "length", place)
            yield from _worth(chart)


def _methods(results: ItemResults) -> Iterable[Chart]:
    """Figures 4 and 6: over turns, a line for each method."""
    for suffix, panel in _panels(_by_turns(results), ("model", "task", "form")):
        if len({(setting.method, setting.retrieved) for setting in panel}) > 1:
            chart = _chart(f"methods{suffix.name}", f"Accuracy by method{suffix.title}", _TURNS)
            chart.series = _lines(results, panel, "length", _turns)
            yield from _worth(chart)


def _forms(results: ItemResults) -> Iterable[Chart]:
    """Figure 5: over turns, a line for each form, with the reminder."""
    settings = [setting for setting in _by_turns(results) if setting.method == "reminder"]
    for suffix, panel in _panels(settings, ("model", "task")):
        if len({setting.form for setting in panel}) > 1:
            chart = _chart(f"forms{suffix.name}", f"Accuracy with a reminder, by form{suffix.title}", _TURNS)
            chart.series = _lines(results, panel, "length", _turns)
            yield from _worth(chart)


def _shares(results: ItemResults) -> Iterable[Chart]:
    """Figure 7: what share of the answers has which error, by method."""
    settings = [setting for setting in _free(results) if setting.is_plain and setting.length.unit == "turns"]
    nearest = min((setting.length for setting in settings), key=lambda each: abs(each.amount - PIE_TURNS), default=None)
    for suffix, panel in _panels([setting for setting in settings if setting.length == nearest], ("model", "form")):
        axes = varying(panel) or ["method"]
        totals = [results.total(setting) for setting in panel]
        chart = Chart(
            f"errors{suffix.name}", f"Errors after {nearest}{suffix.title}", "", "share of answers", kind="stacked"
        )
        chart.names = [_named(setting, axes) for setting in panel]
        places = range(len(panel))
        for kind in (*ERROR_TYPES, UNPARSED):
            series = Series(kind, places, [total.errors[kind] / total.n for total in totals])
            if kind != UNPARSED or any(series.y):
                chart.series.append(series)
        chart.y_range = (0.0, 1.0)
        chart.notes.append("All topics together. What is left to 1 is right.")
        yield chart


def _numbers(results: ItemResults) -> Iterable[Chart]:
    """Figure 13: the number of errors of each type over turns."""
    settings = [setting for setting in _free(results) if setting.is_plain and setting.length.unit == "turns"]
    for suffix, panel in _panels(settings, ("model", "form", "method", "retrieved")):
        chart = Chart(f"error-numbers{suffix.name}", f"Errors by turns{suffix.title}", _TURNS, "number of answers")
        x = [setting.length.amount for setting in panel]
        for kind in (*ERROR_TYPES, UNPARSED):
            counts = [results.total(setting).errors[kind] for setting in panel]
            if kind != UNPARSED or any(counts):
                chart.series.append(Series(kind, x, [float(count) for count in counts]))
        chart.y_range = (0.0, max([1.0, *(value or 0.0 for series in chart.series for value in series.y)]) * 1.05)
        chart.notes.append("All topics together.")
        yield from _worth(chart)


def _preferences(results: ItemResults) -> Iterable[Chart]:
    """Figures 8 and 24: over the number of preferences."""
    settings = [setting for setting in results.settings if not setting.arm]
    chart = _chart("preferences", "Accuracy by the number of preferences", "preferences")
    chart.series = _lines(results, settings, "preferences", lambda setting: setting.preferences)
    return _worth(chart)


def _conflict(results: ItemResults) -> Iterable[Chart]:
    """Figures 9 and 25: the arms as bars."""
    settings = results.some(lambda setting: bool(setting.arm))
    arms = results.values("arm", settings)
    chart = Chart("conflict", "Accuracy by what came before the preference", "", _AXIS, kind="bars", y_range=(0.0, 1.0))
    chart.names, chart.notes = [*arms], [_ENDS]
    chart.series = _lines(results, settings, "arm", lambda setting: arms.index(setting.arm))
    return [chart] if chart.series else []


def _positions(results: ItemResults) -> Iterable[Chart]:
    """Figure 23: over the turn in which the preference stands."""
    settings = [setting for setting in _by_turns(results, plain=False) if setting.preferences == 1 and not setting.arm]
    chart = _chart("position", "Accuracy by where the preference stands", "the preference's turn")
    chart.series = _lines(results, settings, "position", _own_turn)
    return _worth(chart)


def _scatter(results: ItemResults) -> Iterable[Chart]:
    """Figure 11: both tasks' accuracy, a point for each cell."""
    for cells in by_form(both_tasks(results)):
        if (r := pearson(cells)) is None:
            continue
        form = cells[0].setting.form
        chart = Chart(f"tasks-{form}", f"Both tasks, {form} preferences", "accuracy of choices", "")
        chart.y_label, chart.kind = "accuracy of free answers", "points"
        for model in dict.fromkeys(cell.setting.model for cell in cells):
            chart.series.append(_points(model, [cell for cell in cells if cell.setting.model == model]))
        chart.notes.append(f"Pearson's r = {r:.2f} over {len(cells)} cells, each the mean over topics.")
        yield chart


def _k(results: ItemResults) -> Iterable[Chart]:
    """Figure 12: over the number of messages retrieved, with how often the preference is among them."""
    settings = along([setting for setting in results.settings if setting.retrieved], "retrieved")
    chart = _chart("retrieval", "Accuracy by how much is retrieved", "messages retrieved (k)")
    chart.y_label = "share, mean over topics"
    for group, label in _groups(settings, "retrieved"):
        x = [setting.retrieved for setting in group]
        hits = [results.hit_rate(setting) for setting in group]
        chart.series.append(_series(results, group, label or "accuracy", x))
        found = f"{label}, preference found" if label else "preference found"
        chart.series.append(Series(found, x, [each.mean if each else None for each in hits]))
    return _worth(chart)


class _Suffix:
    """What tells one of several charts from the others, in its name and in its title."""

    def __init__(self, parts: Sequence[str]) -> None:
        self.name = "".join(f"-{part}" for part in parts)
        self.title = f": {', '.join(parts)}" if parts else ""


def _panels(settings: Sequence[Setting], axes: Sequence[str]) -> Iterable[tuple[_Suffix, list[Setting]]]:
    """A group for each value of these axes; those in which all settings agree are not named."""
    told = [axis for axis in varying(settings) if axis in axes]
    for panel in grouped(settings, by=axes):
        yield _Suffix([*filter(None, map(panel[0].told, told))]), panel


def _groups(settings: Sequence[Setting], axis: str) -> Iterable[tuple[list[Setting], str]]:
    """Settings that differ in an axis alone, with a label that tells them from the others."""
    axes = varying(settings, but=(axis,))
    for group in grouped(settings, but=(axis,)):
        yield group, _named(group[0], axes)


def _named(setting: Setting, axes: Iterable[str]) -> str:
    return " ".join(filter(None, map(setting.told, axes)))


def _lines(results: ItemResults, settings: Sequence[Setting], axis: str, place: Place) -> list[Series]:
    """A line for each group, over one axis, if it has something to go along; groups without any accuracy have none."""
    made = []
    for group, label in _groups(along(settings, axis), axis):
        ordered = sorted(group, key=place)
        series = _series(results, ordered, label or ordered[0].model, [place(setting) for setting in ordered])
        if any(value is not None for value in series.y):
            made.append(series)
    return made


def _series(results: ItemResults, settings: Sequence[Setting], label: str, x: Sequence[float]) -> Series:
    averages = [results.average(setting) for setting in settings]
    return Series(
        label,
        x,
        [each.mean if each else None for each in averages],
        [each.low if each else None for each in averages],
        [each.high if each else None for each in averages],
    )


def _points(label: str, cells: Sequence[BothTasks]) -> Series:
    return Series(label, [cell.classification for cell in cells], [cell.generation for cell in cells])


def _chart(name: str, title: str, x_label: str) -> Chart:
    return Chart(name, title, x_label, _AXIS, y_range=(0.0, 1.0), notes=[_BANDS])


def _worth(chart: Chart) -> list[Chart]:
    """The chart, if a line of it has two points."""
    is_worth = any(sum(value is not None for value in series.y) > 1 for series in chart.series)
    return [chart] if is_worth else []


def _by_turns(results: ItemResults, plain: bool = True) -> list[Setting]:
    return [each for each in results.settings if each.length.unit == "turns" and (each.is_plain or not plain)]


def _free(results: ItemResults) -> list[Setting]:
    """The settings of free answers that were judged."""
    return [each for each in results.settings if each.task == "generation" and results.total(each).n]


def _turns(setting: Setting) -> float:
    return setting.length.amount


def _own_turn(setting: Setting) -> float:
    """The turn in which the preference is told: after a share of the unrelated ones."""
    return 1 + round(setting.position * (setting.length.amount - OWN_TURNS))

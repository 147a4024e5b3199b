"""PrefEval's tables and charts over one or more runs: the paper's tables 2 and 4-13, and figures 3-13 and 23-25."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter

from dialoom.graphs.tables import Cell, Chart, Estimate, FacetColumn, Runs, ScenarioFilter, Series, Table
from dialoom.graphs.tables.statistics import TRIALS_NOTE

from .results import (
    ASSISTANT,
    CHECKERS,
    CORRECT,
    ERROR_TYPES,
    OWN_TURNS,
    RIGHT,
    UNJUDGED,
    UNPARSED,
    WRONG,
    ItemResults,
    Setting,
    along,
    counted_by_error,
    grouped,
    pearson,
    varying,
)

Figures = Mapping[str, Callable[[Sequence[Setting]], Cell]]
"""The columns of a table: functions of a row's settings, by name."""
Place = Callable[[Setting], float]

PIE_TURNS = 10
"""The number of turns for which the paper shows the shares of errors."""
_FIXED_AXES = ("model", "method")
"""The axes that tables show even if all rows have the same value."""
_ONE = {"preferences": "1", "arm": ""}
"""The facets of settings with a single preference."""
_PLAIN = {"position": "0.0", **_ONE}
"""The facets of settings for which `is_plain` is true."""
_JUDGED = ScenarioFilter(state="done", is_judged=True)
"""The items that count in accuracies."""
_ACCURACY = (
    "Accuracy: share of answers without an error, or of right choices; unparsed answers count as wrong. Averages are "
    "unweighted means over the topics. In brackets: Wilson's 95 % intervals; for averages, with the effective number "
    "of pairs that follows from the variance within each topic. A dash: no item is finished and judged, or the "
    "average lacks a topic."
)
_TURNS = "Turns: the number of unrelated turns, plus the turns of the preference and the question."
_ERRORS = (
    "An answer has at most one error: unaware (goes against the preference and names none), hallucination (goes "
    "against it and names another one), inconsistency (names it and goes against it), unhelpful. Unparsed: a checker's "
    "reply could not be parsed."
)
_ITEMS = (
    "Too long: items that failed because the request exceeded the model's context window. Tokens: the mean number of "
    "tokens before the question, without a model's own replies to preferences."
)
_CELLS = (
    "r: Pearson's correlation of the accuracies of both tasks over the settings (model, method, length and any other "
    "varied axis). Each accuracy is the mean over the topics."
)
_BEFORE = "Stated before: no preference (alone), one on another topic (agreeing), or a contradictory one (conflicting)."
_FOUND = (
    "Found: the k retrieved messages include the one in which the user states the preference (form persona: any "
    "message of the user in the talk that mentions it, as it is unknown which one does)."
)

_ACCURACY_AXIS = "accuracy, mean over topics"
_TURNS_AXIS = "turns: the unrelated ones, the preference's and the question's"
_INTERVALS = "95 % intervals by Wilson, for pairs sampled within each topic."


def report_tables(runs: Runs) -> list[Table]:
    """Return all tables that have rows, in one pass over the items of each run."""
    results = ItemResults(runs)
    one = [setting for setting in results.settings if setting.preferences == 1 and not setting.arm]
    over = f"mean over {len(results.topics)} topics" if len(results.topics) > 1 else "".join(results.topics)
    before = "Accuracy by the position of the preference (share of unrelated turns before it)"
    plain = results.some(lambda setting: setting.is_plain)
    found = [
        _across(results, "length", plain, "accuracy", f"Accuracy by length, {over}", constant=_PLAIN),
        *_by_topic(results),
        _across(results, "position", _varied(results, one, "position", 0), "position", before, constant=_ONE),
        _across(
            results,
            "preferences",
            _varied(results, [setting for setting in results.settings if not setting.arm], "preferences", 1),
            "preferences",
            "Accuracy by the number of preferences",
        ),
        _across(
            results,
            "arm",
            results.some(lambda setting: bool(setting.arm)),
            "conflict",
            "Accuracy by the preference stated earlier in the conversation",
            [_BEFORE],
        ),
        _retrieval(results),
        _errors(results),
        _choices(results),
        _correlation(results),
        _items(results),
    ]
    for table in found if results.has_trials else ():
        if any(isinstance(cell, Estimate) for row in table.rows for cell in row):
            table.notes.append(TRIALS_NOTE)
    return [table for table in found if table.rows]


def _varied(results: ItemResults, settings: Sequence[Setting], axis: str, usual: int) -> list[Setting]:
    """Return the settings that differ only in this axis; if there are none, those with a value above `usual`."""
    if not results.total(*settings).n:
        return []
    return along(settings, axis) or [setting for setting in settings if getattr(setting, axis) > usual]


def _table(
    name: str,
    title: str,
    groups: Sequence[Sequence[Setting]],
    axes: Sequence[str],
    figures: Figures,
    notes: Sequence[str] = (),
    constant: Mapping[str, str] | None = None,
) -> Table:
    """Return a table with a row for each group of settings: the axes' values, and the figures.

    Args:
        name: The table's name.
        title: Its title.
        groups: The settings of each row.
        axes: The axes that the first columns show.
        figures: The functions that compute the other columns.
        notes: Its notes.
        constant: The facets that are constant in the table, with their values.
    """
    rows: list[Sequence[Cell]] = [
        [*map(group[0].text_of, axes), *(figure(group) for figure in figures.values())] for group in groups
    ]
    table = Table(name, title, [*axes, *figures], rows, list(notes))
    settings = [setting for group in groups for setting in group]
    facets: dict[str, FacetColumn | None] = {"model": None}
    for axis in set(table.columns) & set(Setting._fields):
        values = {setting.text_of(axis): facet for setting in settings if (facet := setting.facet(axis))}
        if len(names := {facet for facet, _ in values.values()}) == 1:  # lengths may be in turns and in tokens
            facets[axis] = FacetColumn(names.pop(), {words: value for words, (_, value) in values.items()})
    table.facets, table.chosen = facets, dict.fromkeys(table.columns, constant or {})
    table.judged = {column: [f"{checker} ({ASSISTANT})" for checker in CHECKERS] for column in figures}
    return table


def _across(
    results: ItemResults,
    axis: str,
    settings: list[Setting],
    name: str,
    title: str,
    notes: Sequence[str] = (),
    constant: Mapping[str, str] | None = None,
) -> Table:
    """Return a table of averages with one axis as columns and all others as rows. `constant` states fixed facets."""

    def at(group: Sequence[Setting], value: object) -> Cell:
        return next((results.average(each) for each in group if getattr(each, axis) == value), None)

    words = {getattr(setting, axis): f"{setting.text_of(axis)} %" for setting in settings}
    figures: Figures = {words[value]: partial(at, value=value) for value in results.values(axis, settings)}
    axes = varying(settings, but=(axis,), always=_FIXED_AXES)
    notes = [*notes, _ACCURACY, _TURNS, *_too_long(results, settings)]
    table = _table(name, title, grouped(settings, but=(axis,)), axes, figures, notes, constant)
    table.population = _JUDGED
    for each in settings:
        table.chosen[words[getattr(each, axis)]] = {**(constant or {}), **dict(filter(None, [each.facet(axis)]))}
    return table


def _by_topic(results: ItemResults) -> list[Table]:
    """Return a table by topic for each task, form and length, if there are several topics."""
    tables = []
    by = ("task", "form", "length")
    for group in grouped((each for each in results.settings if each.is_plain), by=by):
        task, form, length = group[0].task, group[0].form, group[0].length
        constant = {**_PLAIN, **dict(filter(None, map(group[0].facet, by)))}

        figures: Figures = {
            "Average %": lambda row: results.average(row[0]),
            **{f"{topic} %": lambda row, topic=topic: results.share(row[0], topic) for topic in results.topics},  # type: ignore[misc]
        }
        name, title = f"{task}-{form}-{length.amount}-{length.unit}", f"Accuracy by topic: {task}, {form}, {length}"
        rows = [[setting] for setting in group] if results.total(*group).n else []
        notes = [_ACCURACY, *_too_long(results, group)]
        table = _table(name, title, rows, varying(group, always=_FIXED_AXES), figures, notes, constant)
        table.chosen.update({f"{topic} %": {**constant, "topic": topic} for topic in results.topics})
        table.population = _JUDGED
        tables.append(table)
    return tables if len(results.topics) > 1 else []


def _too_long(results: ItemResults, settings: Sequence[Setting]) -> list[str]:
    count = results.total(*settings)["too_long"]
    return [f"Not counted, because a request exceeded the model's context window: {count:,} items."] if count else []


def _retrieval(results: ItemResults) -> Table:
    settings = [setting for setting in results.settings if setting.retrieved]
    figures: Figures = {
        "retrieved": lambda row: row[0].text_of("retrieved"),
        "accuracy %": lambda row: results.average(row[0]),
        "preference found %": lambda row: results.hit_rate(row[0]),
    }
    axes = varying(settings, but=("retrieved", "method"), always=("model",))
    title = "Retrieval: hit rate among k messages"
    table = _table("retrieval", title, [[each] for each in settings], axes, figures, [_FOUND, _ACCURACY])
    table.population, table.counted["accuracy %"] = ScenarioFilter(state="done"), _JUDGED
    return table


def _counts(results: ItemResults, keys: Mapping[str, str]) -> Figures:
    """Return the columns that count items."""
    return {column: lambda row, key=key: results.total(*row)[key] for column, key in keys.items()}  # type: ignore[misc]


def _of_task(results: ItemResults, task: str, name: str, title: str, figures: Figures, notes: Sequence[str]) -> Table:
    settings = results.some(lambda setting: setting.task == task)
    axes = varying(settings, always=(*_FIXED_AXES, "length"))
    table = _table(name, title, [[each] for each in settings], axes, figures, notes, {"task": task})
    table.population = ScenarioFilter(state="done")
    return table


def _errors(results: ItemResults) -> Table:
    keys = {"answers": "done", **{kind: kind for kind in (RIGHT, *ERROR_TYPES, UNPARSED)}, "not judged": UNJUDGED}
    figures = _counts(results, keys)
    table = _of_task(results, "generation", "errors", "Free answers and their errors", figures, [_ERRORS])
    table.counted = {**counted_by_error(), "not judged": ScenarioFilter(is_judged=False)}
    table.judged = {kind: [f"{checker} ({ASSISTANT})" for checker in CHECKERS] for kind in (RIGHT, *ERROR_TYPES)}
    return table


def _choices(results: ItemResults) -> Table:
    no_letter = "wrong without a letter"
    counts = _counts(results, {"right": RIGHT, "wrong": WRONG, no_letter: "no_letter"})
    figures: Figures = {"choices": lambda row: results.total(*row).n, **counts}
    table = _of_task(results, "classification", "choices", "Choices among four options", figures, [])
    table.judged = {}
    table.counted = {choice: ScenarioFilter(verdicts=[{CORRECT: choice == "right"}]) for choice in ("right", "wrong")}
    table.counted["choices"] = ScenarioFilter(is_judged=True)
    table.chosen[no_letter] = None
    return table


def _correlation(results: ItemResults) -> Table:
    table = Table("correlation", "Correlation of free answers and choices", ["form", "cells", "r"], notes=[_CELLS])
    for cells in results.both_tasks():
        if (r := pearson(cells)) is not None:
            table.rows.append([cells[0].setting.form, len(cells), r])
    return table


def _items(results: ItemResults) -> Table:
    counts = {"items": "items", "failed": "failed", "too long": "too_long", "empty answers": "empty"}
    figures: Figures = {**_counts(results, counts), "tokens": lambda row: results.tokens(*row)}
    axes = ("model", "length")
    table = _table("dialogues", "Items", grouped(results.settings, by=axes), axes, figures, [_ITEMS, _TURNS])
    table.judged, table.decimals = {}, {"tokens": 0}
    table.counted["failed"] = ScenarioFilter(state="failed")
    table.chosen.update(dict.fromkeys(("too long", "empty answers")))
    return table


def charts(runs: Runs) -> list[Chart]:
    """Return all charts that have data, in one pass over the items of each run."""
    results = ItemResults(runs)
    made = (_lengths, _variants, _shares, _numbers, _preferences, _conflict, _positions, _scatter, _retrieved)
    return [chart for chart_of in made for chart in chart_of(results)]


def _lengths(results: ItemResults) -> Iterable[Chart]:
    """Yield figures 3 and 10 of the paper: accuracy of zero-shot by turns and by tokens, with one line per model."""
    settings = [each for each in results.settings if each.is_plain and each.method == "zero-shot"]
    for suffix, in_title, panel in _panels(settings, ("task", "form")):
        by_turns = [setting for setting in panel if setting.length.unit == "turns"]
        title = f"Zero-shot accuracy by {{}}{in_title}"
        yield from _over(
            results,
            by_turns,
            "length",
            attrgetter("length.amount"),
            f"turns{suffix}",
            title.format("turns"),
            _TURNS_AXIS,
        )
        tokens = "tokens before the question"
        yield from _over(results, panel, "length", results.tokens, f"tokens{suffix}", title.format("tokens"), tokens)


def _variants(results: ItemResults) -> Iterable[Chart]:
    """Yield the paper's figures 4 and 6 (accuracy by turns, a line per method) and 5 (reminder, a line per form)."""
    every = _by_turns(results)
    reminded = [setting for setting in every if setting.method == "reminder"]
    for name, title, settings, axes in (
        ("methods", "Accuracy by method", every, ("model", "task", "form")),
        ("forms", "Accuracy with a reminder, by form", reminded, ("model", "task")),
    ):
        for suffix, in_title, panel in _panels(settings, axes):
            if len({(setting.method, setting.retrieved, setting.form) for setting in panel}) > 1:
                yield from _over(
                    results,
                    panel,
                    "length",
                    attrgetter("length.amount"),
                    f"{name}{suffix}",
                    f"{title}{in_title}",
                    _TURNS_AXIS,
                )


def _shares(results: ItemResults) -> Iterable[Chart]:
    """Yield figure 7 of the paper: each error's share of the answers, by method."""
    settings = _free(results)
    nearest = min((setting.length for setting in settings), key=lambda each: abs(each.amount - PIE_TURNS), default=None)
    for suffix, in_title, panel in _panels([each for each in settings if each.length == nearest], ("model", "form")):
        totals = [results.total(setting) for setting in panel]
        title = f"Errors after {nearest}{in_title}"
        chart = Chart(f"errors{suffix}", title, "", "share of answers", y_range=(0.0, 1.0), kind="stacked")
        chart.names = [_named(setting, varying(panel) or ["method"]) for setting in panel]
        shares = {kind: [total[kind] / total.n for total in totals] for kind in (*ERROR_TYPES, UNPARSED)}
        chart.series = _series_of(shares, range(len(panel)))
        chart.notes.append("Answers on all topics are counted together. The remaining answers are right.")
        yield chart


def _numbers(results: ItemResults) -> Iterable[Chart]:
    """Yield figure 13 of the paper: the number of errors of each type, by turns."""
    for suffix, in_title, panel in _panels(_free(results), ("model", "form", "method", "retrieved")):
        chart = Chart(f"error-numbers{suffix}", f"Errors by turns{in_title}", _TURNS_AXIS, "number of answers")
        totals = [results.total(setting) for setting in panel]
        counts = {kind: [float(total[kind]) for total in totals] for kind in (*ERROR_TYPES, UNPARSED)}
        chart.series = _series_of(counts, [setting.length.amount for setting in panel])
        chart.y_range = (0.0, max([1.0, *(count for of_kind in counts.values() for count in of_kind)]) * 1.05)
        chart.notes.append("Answers on all topics are counted together.")
        yield from _worth(chart)


def _series_of(values: Mapping[str, Sequence[float]], x: Sequence[float]) -> list[Series]:
    """Return a series for each kind of error, and a series for unparsed verdicts if there are any."""
    return [Series(kind, x, y) for kind, y in values.items() if kind != UNPARSED or any(y)]


def _preferences(results: ItemResults) -> Iterable[Chart]:
    """Return figures 8 and 24 of the paper: accuracy by the number of preferences."""
    settings = [setting for setting in results.settings if not setting.arm]
    title = "Accuracy by the number of preferences"
    return _over(results, settings, "preferences", attrgetter("preferences"), "preferences", title, "preferences")


def _conflict(results: ItemResults) -> Iterable[Chart]:
    """Return figures 9 and 25 of the paper: accuracy in each arm of the conflict setting, as bars."""
    settings = results.some(lambda setting: bool(setting.arm))
    arms = results.values("arm", settings)
    title = "Accuracy by the preference stated before"
    chart = Chart("conflict", title, "", _ACCURACY_AXIS, kind="bars", y_range=(0.0, 1.0), names=[*arms])
    chart.notes = [f"With {_INTERVALS}"]
    chart.series = _lines(results, settings, "arm", lambda setting: arms.index(setting.arm))
    return [chart] if chart.series else []


def _positions(results: ItemResults) -> Iterable[Chart]:
    """Return figure 23 of the paper: accuracy by the turn that states the preference."""
    settings = [setting for setting in _by_turns(results, plain=False) if setting.preferences == 1 and not setting.arm]

    return _over(
        results,
        settings,
        "position",
        lambda each: 1 + round(each.position * (each.length.amount - OWN_TURNS)),
        "position",
        "Accuracy by the position of the preference",
        "the preference's turn",
    )


def _scatter(results: ItemResults) -> Iterable[Chart]:
    """Yield figure 11 of the paper: accuracy in both tasks, with one point per setting."""
    for cells in results.both_tasks():
        if (r := pearson(cells)) is None:
            continue
        form = cells[0].setting.form
        chart = Chart(
            f"tasks-{form}",
            f"Accuracy in both tasks, {form} preferences",
            "accuracy of choices",
            "accuracy of free answers",
            notes=[f"Pearson's r = {r:.2f} over {len(cells)} settings; each accuracy is a mean over topics."],
            kind="points",
        )
        for model in dict.fromkeys(cell.setting.model for cell in cells):
            some = [cell for cell in cells if cell.setting.model == model]
            chart.series.append(
                Series(model, [each.classification for each in some], [each.generation for each in some])
            )
        yield chart


def _retrieved(results: ItemResults) -> Iterable[Chart]:
    """Return figure 12 of the paper: accuracy and hit rate by the number of retrieved messages."""
    settings = along([setting for setting in results.settings if setting.retrieved], "retrieved")
    chart = _chart("retrieval", "Accuracy by the number of retrieved messages", "messages retrieved (k)")
    chart.y_label = "share, mean over topics"
    for group, label in _groups(settings, "retrieved"):
        x = [setting.retrieved for setting in group]
        chart.series.append(Series.of(label or "accuracy", x, [results.average(each) for each in group]))
        hits = [results.hit_rate(setting) for setting in group]
        found = f"{label}, preference found" if label else "preference found"
        chart.series.append(Series(found, x, [each.mean if each else None for each in hits]))
    return _worth(chart)


def _panels(settings: Sequence[Setting], axes: Sequence[str]) -> Iterable[tuple[str, str, list[Setting]]]:
    """Yield the settings for each combination of values of these axes.

    A suffix for the names of charts and one for their titles come first. Both are empty if no axis varies.
    """
    varying_axes = [axis for axis in varying(settings) if axis in axes]
    for panel in grouped(settings, by=axes):
        parts = [*filter(None, map(panel[0].text_of, varying_axes))]
        yield "".join(f"-{part}" for part in parts), f": {', '.join(parts)}" if parts else "", panel


def _groups(settings: Sequence[Setting], axis: str) -> Iterable[tuple[list[Setting], str]]:
    """Yield groups of settings that differ only in an axis, with a label for each group."""
    axes = varying(settings, but=(axis,))
    for group in grouped(settings, but=(axis,)):
        yield group, _named(group[0], axes)


def _named(setting: Setting, axes: Iterable[str]) -> str:
    return " ".join(filter(None, map(setting.text_of, axes)))


def _over(
    results: ItemResults, settings: Sequence[Setting], axis: str, place: Place, name: str, title: str, x_label: str
) -> list[Chart]:
    """Return a chart of accuracy by an axis, if at least one of its lines has two points."""
    chart = _chart(name, title, x_label)
    chart.series = _lines(results, settings, axis, place)
    return _worth(chart)


def _lines(results: ItemResults, settings: Sequence[Setting], axis: str, place: Place) -> list[Series]:
    """Return a line along an axis for each group of settings with several values of the axis and an accuracy."""
    made = []
    for group, label in _groups(along(settings, axis), axis):
        averages = [results.average(setting) for setting in sorted(group, key=place)]
        if any(averages):
            made.append(Series.of(label or group[0].model, sorted(map(place, group)), averages))
    return made


def _chart(name: str, title: str, x_label: str) -> Chart:
    return Chart(name, title, x_label, _ACCURACY_AXIS, y_range=(0.0, 1.0), notes=[f"Bands: {_INTERVALS}"])


def _worth(chart: Chart) -> list[Chart]:
    return [chart] if any(sum(value is not None for value in series.y) > 1 for series in chart.series) else []


def _by_turns(results: ItemResults, plain: bool = True) -> list[Setting]:
    return [each for each in results.settings if each.length.unit == "turns" and (each.is_plain or not plain)]


def _free(results: ItemResults) -> list[Setting]:
    """Return the settings whose length is in turns and whose free answers were judged."""
    return [each for each in _by_turns(results) if each.task == "generation" and results.total(each).n]

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
    build_error_filters,
    find_varying_axes,
    group_settings,
    pearson,
    select_varying,
)

Figures = Mapping[str, Callable[[Sequence[Setting]], Cell]]
"""The columns of a table: functions of a row's settings, by name."""
Place = Callable[[Setting], float]

PIE_TURNS = 10
"""The number of turns for which the paper shows the shares of errors."""
_FIXED_AXES = ("model", "method")
"""The axes that tables show even if all rows have the same value."""
_SINGLE_FACETS = {"preferences": "1", "arm": ""}
"""The facets of settings with a single preference."""
_PLAIN_FACETS = {"position": "0.0", **_SINGLE_FACETS}
"""The facets of settings for which `is_plain` is true."""
_JUDGED_ITEMS = ScenarioFilter(state="done", is_judged=True)
"""The items that count in accuracies."""
_ACCURACY_NOTE = (
    "Accuracy: share of answers without an error, or of right choices; unparsed answers count as wrong. Averages are "
    "unweighted means over the topics. In brackets: Wilson's 95 % intervals; for averages, with the effective number "
    "of pairs that follows from the variance within each topic. A dash: no item is finished and judged, or the "
    "average lacks a topic."
)
_TURNS_NOTE = "Turns: the number of unrelated turns, plus the turns of the preference and the question."
_ERRORS_NOTE = (
    "An answer has at most one error: unaware (goes against the preference and names none), hallucination (goes "
    "against it and names another one), inconsistency (names it and goes against it), unhelpful. Unparsed: a checker's "
    "reply could not be parsed."
)
_ITEMS_NOTE = (
    "Too long: items that failed because the request exceeded the model's context window. Tokens: the mean number of "
    "tokens before the question, without a model's own replies to preferences."
)
_CORRELATION_NOTE = (
    "r: Pearson's correlation of the accuracies of both tasks over the settings (model, method, length and any other "
    "varied axis). Each accuracy is the mean over the topics."
)
_CONFLICT_NOTE = (
    "Stated before: no preference (alone), one on another topic (agreeing), or a contradictory one (conflicting)."
)
_RETRIEVAL_NOTE = (
    "Found: the k retrieved messages include the one in which the user states the preference (form persona: any "
    "message of the user in the talk that mentions it, as it is unknown which one does)."
)

_ACCURACY_LABEL = "accuracy, mean over topics"
_TURNS_LABEL = "turns: the unrelated ones, the preference's and the question's"
_INTERVALS_NOTE = "95 % intervals by Wilson, for pairs sampled within each topic."


def build_tables(runs: Runs) -> list[Table]:
    """Return all tables that have rows, in one pass over the items of each run."""
    results = ItemResults(runs)
    one = [setting for setting in results.settings if setting.preferences == 1 and not setting.arm]
    over = f"mean over {len(results.topics)} topics" if len(results.topics) > 1 else "".join(results.topics)
    before = "Accuracy by the position of the preference (share of unrelated turns before it)"
    plain = results.some(lambda setting: setting.is_plain)
    found = [
        _build_axis_table(results, "length", plain, "accuracy", f"Accuracy by length, {over}", constant=_PLAIN_FACETS),
        *_build_topic_tables(results),
        _build_axis_table(
            results, "position", _select_axis(results, one, "position", 0), "position", before, constant=_SINGLE_FACETS
        ),
        _build_axis_table(
            results,
            "preferences",
            _select_axis(results, [setting for setting in results.settings if not setting.arm], "preferences", 1),
            "preferences",
            "Accuracy by the number of preferences",
        ),
        _build_axis_table(
            results,
            "arm",
            results.some(lambda setting: bool(setting.arm)),
            "conflict",
            "Accuracy by the preference stated earlier in the conversation",
            [_CONFLICT_NOTE],
        ),
        _build_retrieval_table(results),
        _build_error_table(results),
        _build_choice_table(results),
        _build_correlation_table(results),
        _build_item_table(results),
    ]
    for table in found if results.has_trials else ():
        if any(isinstance(cell, Estimate) for row in table.rows for cell in row):
            table.notes.append(TRIALS_NOTE)
    return [table for table in found if table.rows]


def _select_axis(results: ItemResults, settings: Sequence[Setting], axis: str, usual: int) -> list[Setting]:
    """Return the settings that differ only in this axis; if there are none, those with a value above `usual`."""
    if not results.total(*settings).n:
        return []
    return select_varying(settings, axis) or [setting for setting in settings if getattr(setting, axis) > usual]


def _build_table(
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


def _build_axis_table(
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
    axes = find_varying_axes(settings, but=(axis,), always=_FIXED_AXES)
    notes = [*notes, _ACCURACY_NOTE, _TURNS_NOTE, *_build_too_long_notes(results, settings)]
    table = _build_table(name, title, group_settings(settings, but=(axis,)), axes, figures, notes, constant)
    table.population = _JUDGED_ITEMS
    for each in settings:
        table.chosen[words[getattr(each, axis)]] = {**(constant or {}), **dict(filter(None, [each.facet(axis)]))}
    return table


def _build_topic_tables(results: ItemResults) -> list[Table]:
    """Return a table by topic for each task, form and length, if there are several topics."""
    tables = []
    by = ("task", "form", "length")
    for group in group_settings((each for each in results.settings if each.is_plain), by=by):
        task, form, length = group[0].task, group[0].form, group[0].length
        constant = {**_PLAIN_FACETS, **dict(filter(None, map(group[0].facet, by)))}

        figures: Figures = {
            "Average %": lambda row: results.average(row[0]),
            **{f"{topic} %": lambda row, topic=topic: results.share(row[0], topic) for topic in results.topics},  # type: ignore[misc]
        }
        name, title = f"{task}-{form}-{length.amount}-{length.unit}", f"Accuracy by topic: {task}, {form}, {length}"
        rows = [[setting] for setting in group] if results.total(*group).n else []
        notes = [_ACCURACY_NOTE, *_build_too_long_notes(results, group)]
        table = _build_table(name, title, rows, find_varying_axes(group, always=_FIXED_AXES), figures, notes, constant)
        table.chosen.update({f"{topic} %": {**constant, "topic": topic} for topic in results.topics})
        table.population = _JUDGED_ITEMS
        tables.append(table)
    return tables if len(results.topics) > 1 else []


def _build_too_long_notes(results: ItemResults, settings: Sequence[Setting]) -> list[str]:
    count = results.total(*settings)["too_long"]
    return [f"Not counted, because a request exceeded the model's context window: {count:,} items."] if count else []


def _build_retrieval_table(results: ItemResults) -> Table:
    settings = [setting for setting in results.settings if setting.retrieved]
    figures: Figures = {
        "retrieved": lambda row: row[0].text_of("retrieved"),
        "accuracy %": lambda row: results.average(row[0]),
        "preference found %": lambda row: results.hit_rate(row[0]),
    }
    axes = find_varying_axes(settings, but=("retrieved", "method"), always=("model",))
    title = "Retrieval: hit rate among k messages"
    table = _build_table(
        "retrieval", title, [[each] for each in settings], axes, figures, [_RETRIEVAL_NOTE, _ACCURACY_NOTE]
    )
    table.population, table.counted["accuracy %"] = ScenarioFilter(state="done"), _JUDGED_ITEMS
    return table


def _build_count_columns(results: ItemResults, keys: Mapping[str, str]) -> Figures:
    """Return the columns that count items."""
    return {column: lambda row, key=key: results.total(*row)[key] for column, key in keys.items()}  # type: ignore[misc]


def _build_task_table(
    results: ItemResults, task: str, name: str, title: str, figures: Figures, notes: Sequence[str]
) -> Table:
    settings = results.some(lambda setting: setting.task == task)
    axes = find_varying_axes(settings, always=(*_FIXED_AXES, "length"))
    table = _build_table(name, title, [[each] for each in settings], axes, figures, notes, {"task": task})
    table.population = ScenarioFilter(state="done")
    return table


def _build_error_table(results: ItemResults) -> Table:
    keys = {"answers": "done", **{kind: kind for kind in (RIGHT, *ERROR_TYPES, UNPARSED)}, "not judged": UNJUDGED}
    figures = _build_count_columns(results, keys)
    table = _build_task_table(results, "generation", "errors", "Free answers and their errors", figures, [_ERRORS_NOTE])
    table.counted = {**build_error_filters(), "not judged": ScenarioFilter(is_judged=False)}
    table.judged = {kind: [f"{checker} ({ASSISTANT})" for checker in CHECKERS] for kind in (RIGHT, *ERROR_TYPES)}
    return table


def _build_choice_table(results: ItemResults) -> Table:
    no_letter = "wrong without a letter"
    counts = _build_count_columns(results, {"right": RIGHT, "wrong": WRONG, no_letter: "no_letter"})
    figures: Figures = {"choices": lambda row: results.total(*row).n, **counts}
    table = _build_task_table(results, "classification", "choices", "Choices among four options", figures, [])
    table.judged = {}
    table.counted = {choice: ScenarioFilter(verdicts=[{CORRECT: choice == "right"}]) for choice in ("right", "wrong")}
    table.counted["choices"] = ScenarioFilter(is_judged=True)
    table.chosen[no_letter] = None
    return table


def _build_correlation_table(results: ItemResults) -> Table:
    table = Table(
        "correlation", "Correlation of free answers and choices", ["form", "cells", "r"], notes=[_CORRELATION_NOTE]
    )
    for cells in results.both_tasks():
        if (r := pearson(cells)) is not None:
            table.rows.append([cells[0].setting.form, len(cells), r])
    return table


def _build_item_table(results: ItemResults) -> Table:
    counts = {"items": "items", "failed": "failed", "too long": "too_long", "empty answers": "empty"}
    figures: Figures = {**_build_count_columns(results, counts), "tokens": lambda row: results.tokens(*row)}
    axes = ("model", "length")
    table = _build_table(
        "dialogues", "Items", group_settings(results.settings, by=axes), axes, figures, [_ITEMS_NOTE, _TURNS_NOTE]
    )
    table.judged, table.decimals = {}, {"tokens": 0}
    table.counted["failed"] = ScenarioFilter(state="failed")
    table.chosen.update(dict.fromkeys(("too long", "empty answers")))
    return table


def build_charts(runs: Runs) -> list[Chart]:
    """Return all charts that have data, in one pass over the items of each run."""
    results = ItemResults(runs)
    made = (
        _length_charts,
        _variant_charts,
        _error_share_charts,
        _error_count_charts,
        _preference_charts,
        _conflict_charts,
        _position_charts,
        _correlation_charts,
        _retrieval_charts,
    )
    return [chart for chart_of in made for chart in chart_of(results)]


def _length_charts(results: ItemResults) -> Iterable[Chart]:
    """Yield figures 3 and 10 of the paper: accuracy of zero-shot by turns and by tokens, with one line per model."""
    settings = [each for each in results.settings if each.is_plain and each.method == "zero-shot"]
    for suffix, in_title, panel in _split_panels(settings, ("task", "form")):
        by_turns = [setting for setting in panel if setting.length.unit == "turns"]
        title = f"Zero-shot accuracy by {{}}{in_title}"
        yield from _build_axis_chart(
            results,
            by_turns,
            "length",
            attrgetter("length.amount"),
            f"turns{suffix}",
            title.format("turns"),
            _TURNS_LABEL,
        )
        tokens = "tokens before the question"
        yield from _build_axis_chart(
            results, panel, "length", results.tokens, f"tokens{suffix}", title.format("tokens"), tokens
        )


def _variant_charts(results: ItemResults) -> Iterable[Chart]:
    """Yield the paper's figures 4 and 6 (accuracy by turns, a line per method) and 5 (reminder, a line per form)."""
    every = _select_by_turns(results)
    reminded = [setting for setting in every if setting.method == "reminder"]
    for name, title, settings, axes in (
        ("methods", "Accuracy by method", every, ("model", "task", "form")),
        ("forms", "Accuracy with a reminder, by form", reminded, ("model", "task")),
    ):
        for suffix, in_title, panel in _split_panels(settings, axes):
            if len({(setting.method, setting.retrieved, setting.form) for setting in panel}) > 1:
                yield from _build_axis_chart(
                    results,
                    panel,
                    "length",
                    attrgetter("length.amount"),
                    f"{name}{suffix}",
                    f"{title}{in_title}",
                    _TURNS_LABEL,
                )


def _error_share_charts(results: ItemResults) -> Iterable[Chart]:
    """Yield figure 7 of the paper: each error's share of the answers, by method."""
    settings = _select_free_answers(results)
    nearest = min((setting.length for setting in settings), key=lambda each: abs(each.amount - PIE_TURNS), default=None)
    for suffix, in_title, panel in _split_panels(
        [each for each in settings if each.length == nearest], ("model", "form")
    ):
        totals = [results.total(setting) for setting in panel]
        title = f"Errors after {nearest}{in_title}"
        chart = Chart(f"errors{suffix}", title, "", "share of answers", y_range=(0.0, 1.0), kind="stacked")
        chart.names = [_build_label(setting, find_varying_axes(panel) or ["method"]) for setting in panel]
        shares = {kind: [total[kind] / total.n for total in totals] for kind in (*ERROR_TYPES, UNPARSED)}
        chart.series = _build_error_series(shares, range(len(panel)))
        chart.notes.append("Answers on all topics are counted together. The remaining answers are right.")
        yield chart


def _error_count_charts(results: ItemResults) -> Iterable[Chart]:
    """Yield figure 13 of the paper: the number of errors of each type, by turns."""
    for suffix, in_title, panel in _split_panels(
        _select_free_answers(results), ("model", "form", "method", "retrieved")
    ):
        chart = Chart(f"error-numbers{suffix}", f"Errors by turns{in_title}", _TURNS_LABEL, "number of answers")
        totals = [results.total(setting) for setting in panel]
        counts = {kind: [float(total[kind]) for total in totals] for kind in (*ERROR_TYPES, UNPARSED)}
        chart.series = _build_error_series(counts, [setting.length.amount for setting in panel])
        chart.y_range = (0.0, max([1.0, *(count for of_kind in counts.values() for count in of_kind)]) * 1.05)
        chart.notes.append("Answers on all topics are counted together.")
        yield from _keep_if_drawable(chart)


def _build_error_series(values: Mapping[str, Sequence[float]], x: Sequence[float]) -> list[Series]:
    """Return a series for each kind of error, and a series for unparsed verdicts if there are any."""
    return [Series(kind, x, y) for kind, y in values.items() if kind != UNPARSED or any(y)]


def _preference_charts(results: ItemResults) -> Iterable[Chart]:
    """Return figures 8 and 24 of the paper: accuracy by the number of preferences."""
    settings = [setting for setting in results.settings if not setting.arm]
    title = "Accuracy by the number of preferences"
    return _build_axis_chart(
        results, settings, "preferences", attrgetter("preferences"), "preferences", title, "preferences"
    )


def _conflict_charts(results: ItemResults) -> Iterable[Chart]:
    """Return figures 9 and 25 of the paper: accuracy in each arm of the conflict setting, as bars."""
    settings = results.some(lambda setting: bool(setting.arm))
    arms = results.values("arm", settings)
    title = "Accuracy by the preference stated before"
    chart = Chart("conflict", title, "", _ACCURACY_LABEL, kind="bars", y_range=(0.0, 1.0), names=[*arms])
    chart.notes = [f"With {_INTERVALS_NOTE}"]
    chart.series = _build_series(results, settings, "arm", lambda setting: arms.index(setting.arm))
    return [chart] if chart.series else []


def _position_charts(results: ItemResults) -> Iterable[Chart]:
    """Return figure 23 of the paper: accuracy by the turn that states the preference."""
    settings = [
        setting for setting in _select_by_turns(results, plain=False) if setting.preferences == 1 and not setting.arm
    ]

    return _build_axis_chart(
        results,
        settings,
        "position",
        lambda each: 1 + round(each.position * (each.length.amount - OWN_TURNS)),
        "position",
        "Accuracy by the position of the preference",
        "the preference's turn",
    )


def _correlation_charts(results: ItemResults) -> Iterable[Chart]:
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


def _retrieval_charts(results: ItemResults) -> Iterable[Chart]:
    """Return figure 12 of the paper: accuracy and hit rate by the number of retrieved messages."""
    settings = select_varying([setting for setting in results.settings if setting.retrieved], "retrieved")
    chart = _build_chart("retrieval", "Accuracy by the number of retrieved messages", "messages retrieved (k)")
    chart.y_label = "share, mean over topics"
    for group, label in _group_with_labels(settings, "retrieved"):
        x = [setting.retrieved for setting in group]
        chart.series.append(Series.of(label or "accuracy", x, [results.average(each) for each in group]))
        hits = [results.hit_rate(setting) for setting in group]
        found = f"{label}, preference found" if label else "preference found"
        chart.series.append(Series(found, x, [each.mean if each else None for each in hits]))
    return _keep_if_drawable(chart)


def _split_panels(settings: Sequence[Setting], axes: Sequence[str]) -> Iterable[tuple[str, str, list[Setting]]]:
    """Yield the settings for each combination of values of these axes.

    A suffix for the names of charts and one for their titles come first. Both are empty if no axis varies.
    """
    varying_axes = [axis for axis in find_varying_axes(settings) if axis in axes]
    for panel in group_settings(settings, by=axes):
        parts = [*filter(None, map(panel[0].text_of, varying_axes))]
        yield "".join(f"-{part}" for part in parts), f": {', '.join(parts)}" if parts else "", panel


def _group_with_labels(settings: Sequence[Setting], axis: str) -> Iterable[tuple[list[Setting], str]]:
    """Yield groups of settings that differ only in an axis, with a label for each group."""
    axes = find_varying_axes(settings, but=(axis,))
    for group in group_settings(settings, but=(axis,)):
        yield group, _build_label(group[0], axes)


def _build_label(setting: Setting, axes: Iterable[str]) -> str:
    return " ".join(filter(None, map(setting.text_of, axes)))


def _build_axis_chart(
    results: ItemResults, settings: Sequence[Setting], axis: str, place: Place, name: str, title: str, x_label: str
) -> list[Chart]:
    """Return a chart of accuracy by an axis, if at least one of its lines has two points."""
    chart = _build_chart(name, title, x_label)
    chart.series = _build_series(results, settings, axis, place)
    return _keep_if_drawable(chart)


def _build_series(results: ItemResults, settings: Sequence[Setting], axis: str, place: Place) -> list[Series]:
    """Return a line along an axis for each group of settings with several values of the axis and an accuracy."""
    made = []
    for group, label in _group_with_labels(select_varying(settings, axis), axis):
        averages = [results.average(setting) for setting in sorted(group, key=place)]
        if any(averages):
            made.append(Series.of(label or group[0].model, sorted(map(place, group)), averages))
    return made


def _build_chart(name: str, title: str, x_label: str) -> Chart:
    return Chart(name, title, x_label, _ACCURACY_LABEL, y_range=(0.0, 1.0), notes=[f"Bands: {_INTERVALS_NOTE}"])


def _keep_if_drawable(chart: Chart) -> list[Chart]:
    return [chart] if any(sum(value is not None for value in series.y) > 1 for series in chart.series) else []


def _select_by_turns(results: ItemResults, plain: bool = True) -> list[Setting]:
    return [each for each in results.settings if each.length.unit == "turns" and (each.is_plain or not plain)]


def _select_free_answers(results: ItemResults) -> list[Setting]:
    """Return the settings whose length is in turns and whose free answers were judged."""
    return [each for each in _select_by_turns(results) if each.task == "generation" and results.total(each).n]

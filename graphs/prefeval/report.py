"""PrefEval's tables: the paper's 2 and 4-13, and the figures that its charts show, over one run or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialoom.graphs.reporting.statistics import FEWEST
from dialoom.graphs.reporting.table import Cell, FacetColumn, Table

from .correlation import both_tasks, by_form, pearson
from .results import ItemResults, Runs
from .setting import Setting, along, facet_of, grouped, varying
from .verdicts import ERROR_TYPES, UNJUDGED, UNPARSED, WHERE, WRONG

_DONE = "state == 'done'"

_TOLD = ("model", "method")
"""What a row tells even where all rows have the same."""

_PLAIN = {"position": "0.0", "preferences": "1", "arm": ""}
"""The facets of what `_is_plain`."""
_ACCURACY = (
    "Accuracy: share of answers without an error, or of right choices; what is unparsed counts and is no success. "
    "Averages are unweighted means over the topics. In brackets: 95 % intervals; of one topic Wilson's, of averages "
    f"bootstrapped over the pairs of each topic (none for fewer than {FEWEST}, or where no topic has both right and "
    "wrong ones). A dash: nothing was finished there, or an average lacks a topic."
)
_TURNS = "Turns: the unrelated ones, the preference's and the question's."
_ERRORS = (
    "An answer has at most one error: unaware (goes against the preference and names none), hallucination (goes "
    "against it and names another one), inconsistency (names it and goes against it), unhelpful. Unparsed: a checker's "
    "word could not be had."
)


def compared(runs: Runs) -> list[Table]:
    """All tables that there is something for, in one pass over the items of each run."""
    results = ItemResults(runs)
    found = [
        _by_length(results),
        *_by_topic(results),
        _positions(results),
        _preferences(results),
        _conflict(results),
        _retrieval(results),
        _errors(results),
        _choices(results),
        _correlation(results),
        _items(results),
    ]
    return [table for table in found if table.rows]


def _by_length(results: ItemResults) -> Table:
    over = f"mean over {len(results.topics)} topics" if len(results.topics) > 1 else "".join(results.topics)
    return _across(
        results, "length", results.some(_is_plain), Table("accuracy", f"Accuracy by length, {over}", []), _PLAIN
    )


def _by_topic(results: ItemResults) -> list[Table]:
    """A table for each task, form and length."""
    tables = []
    for group in grouped(filter(_is_plain, results.settings), by=("task", "form", "length")):
        task, form, length = group[0].task, group[0].form, group[0].length
        name = f"{task}-{form}-{length.amount}-{length.unit}"
        table = Table(name, f"Accuracy by topic: {task}, {form}, {length}", [])
        axes = varying(group, always=_TOLD)
        table.columns = [*axes, "Average %", *(f"{topic} %" for topic in results.topics)]
        for setting in results.some(group.__contains__):
            shares = [results.share(setting, topic) for topic in results.topics]
            table.rows.append([*map(setting.told, axes), results.average(setting), *shares])
        own = dict(filter(None, (facet_of(group[0], axis) for axis in ("task", "form", "length"))))
        _tell_facets(table, group, {**_PLAIN, **own})
        table.chosen.update({f"{topic} %": {**_PLAIN, **own, "topic": topic} for topic in results.topics})
        table.notes = [_ACCURACY, *_too_long(results, group)]
        tables.append(table)
    return tables if len(results.topics) > 1 else []


def _positions(results: ItemResults) -> Table:
    settings = results.some(lambda setting: setting.preferences == 1 and not setting.arm)
    settings = along(settings, "position") or [setting for setting in settings if setting.position]
    table = Table("position", "Accuracy by the share of the unrelated turns that stands before the preference", [])
    return _across(results, "position", settings, table)


def _preferences(results: ItemResults) -> Table:
    settings = results.some(lambda setting: not setting.arm)
    settings = along(settings, "preferences") or [setting for setting in settings if setting.preferences > 1]
    table = Table("preferences", "Accuracy by the number of preferences", [])
    return _across(results, "preferences", settings, table)


def _conflict(results: ItemResults) -> Table:
    note = "Alone: nothing. Agreeing: a preference of another topic. Conflicting: one that this one contradicts."
    table = Table("conflict", "Accuracy by what came before the preference", [], notes=[note])
    return _across(results, "arm", results.some(lambda setting: bool(setting.arm)), table)


def _across(
    results: ItemResults, axis: str, settings: list[Setting], table: Table, held: Mapping[str, str] | None = None
) -> Table:
    """Fill a table with averages: an axis in its columns, all others in its rows; some facets are held in all of it."""
    columns = results.values(axis, settings)
    axes = varying(settings, but=(axis,), always=_TOLD)
    by_column = {getattr(setting, axis): setting.told(axis) for setting in settings}
    table.columns = [*axes, *(f"{by_column[column]} %" for column in columns)]
    for group in grouped(settings, but=(axis,)):
        found = {getattr(setting, axis): results.average(setting) for setting in group}
        table.rows.append([*map(group[0].told, axes), *map(found.get, columns)])
    _tell_facets(table, settings, held or {})
    for setting in settings:
        if (facet := facet_of(setting, axis)) is not None:
            table.chosen[f"{setting.told(axis)} %"] = {**(held or {}), facet[0]: facet[1]}
    table.notes += [_ACCURACY, _TURNS, *_too_long(results, settings)]
    return table


def _tell_facets(table: Table, settings: Sequence[Setting], held: Mapping[str, str]) -> None:
    """Say which items a table's figures are of; some facets are held in all of it."""
    facets: dict[str, FacetColumn | None] = {"model": None}
    for axis in table.columns:
        told = {setting.told(axis): facet_of(setting, axis) for setting in settings if axis in Setting._fields}
        names = {facet[0] for facet in told.values() if facet is not None}
        if len(names) == 1:  # a length may be of turns here and of tokens there
            facets[axis] = FacetColumn(names.pop(), {words: facet[1] for words, facet in told.items() if facet})
    table.facets = facets
    table.chosen = dict.fromkeys(table.columns, held)


def _too_long(results: ItemResults, settings: list[Setting]) -> list[str]:
    count = sum(results.total(setting).too_long for setting in settings)
    return [f"Not counted, as a request was longer than the model reads: {count:,} items."] if count else []


def _retrieval(results: ItemResults) -> Table:
    settings = [setting for setting in results.settings if setting.retrieved]
    axes = varying(settings, but=("retrieved", "method"), always=("model",))
    columns = [*axes, "retrieved", "accuracy %", "preference found %"]
    table = Table("retrieval", "Retrieval: whether the preference is among k messages", columns)
    for setting in settings:
        figures: list[Cell] = [setting.told("retrieved"), results.average(setting), results.hit_rate(setting)]
        table.rows.append([*map(setting.told, axes), *figures])
    _tell_facets(table, settings, {})
    table.notes += ["Found: a message of the user's that tells the preference is among the k retrieved.", _ACCURACY]
    return table


def _errors(results: ItemResults) -> Table:
    settings = results.some(lambda setting: setting.task == "generation")
    axes = varying(settings, always=(*_TOLD, "length"))
    columns = [*axes, "answers", "right", *ERROR_TYPES, UNPARSED, "not judged"]
    table = Table("errors", "Free answers and their errors", columns)
    for setting in settings:
        errors = results.total(setting).errors
        kinds = (None, *ERROR_TYPES, UNPARSED, UNJUDGED)
        table.rows.append([*map(setting.told, axes), errors.total(), *(errors[kind] for kind in kinds)])
    _tell_facets(table, settings, {"task": "generation"})
    table.where = _DONE
    table.where_of = {**WHERE, "not judged": "not judgements"}
    table.notes += [_ERRORS]
    return table


def _choices(results: ItemResults) -> Table:
    settings = results.some(lambda setting: setting.task == "classification")
    axes = varying(settings, always=(*_TOLD, "length"))
    table = Table("choices", "Choices among four options", [*axes, "choices", "right", "wrong", "of these, no letter"])
    for setting in settings:
        total = results.total(setting)
        figures = [total.n, total.right, total.errors[WRONG], total.no_letter]
        table.rows.append([*map(setting.told, axes), *figures])
    _tell_facets(table, settings, {"task": "classification"})
    table.where = _DONE
    table.where_of = {"choices": "correct is defined or judgements", "right": "correct == 1", "wrong": "correct == 0"}
    table.chosen["of these, no letter"] = None
    return table


def _correlation(results: ItemResults) -> Table:
    table = Table("correlation", "Correlation of free answers and choices", ["form", "cells", "r"])
    for cells in by_form(both_tasks(results)):
        if (r := pearson(cells)) is not None:
            table.rows.append([cells[0].setting.form, len(cells), r])
    table.notes.append(
        "r: Pearson's, over cells (model, method, length and what else is varied), each the mean over the topics."
    )
    return table


def _items(results: ItemResults) -> Table:
    columns = ["model", "length", "items", "failed", "too long", "empty answers", "tokens"]
    table = Table("dialogues", "The items", columns, decimals={"tokens": 0})
    for group in grouped(results.settings, by=("model", "length")):
        totals = [results.total(setting) for setting in group]
        items = [total.errors.total() + total.failed for total in totals]
        tokens = sum(results.tokens(setting) * count for setting, count in zip(group, items, strict=True))
        failed, too_long, empty = (
            sum(getattr(total, name) for total in totals) for name in ("failed", "too_long", "empty")
        )
        named = map(group[0].told, ("model", "length"))
        table.rows.append([*named, sum(items), failed, too_long, empty, tokens / sum(items)])
    _tell_facets(table, results.settings, {})
    table.where_of["failed"] = "state == 'failed'"
    table.chosen.update(dict.fromkeys(("too long", "empty answers")))
    table.notes += [
        "Too long: failed because the request was longer than the model reads. Tokens: the mean of what precedes the "
        "question, without a model's own replies to preferences.",
        _TURNS,
    ]
    return table


def _is_plain(setting: Setting) -> bool:
    return setting.is_plain

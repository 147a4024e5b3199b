"""APOLLO's tables, over one run or several: accuracy and F1 by what is varied, and what was odd about the samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dialoom.graphs.reporting.statistics import FEWEST, share_of
from dialoom.graphs.reporting.table import Cell, FacetColumn, Table

from .errors import LABELS, kappa
from .gains import gains
from .loop import ENDINGS, FLAGS
from .results import IMPLICIT, ApolloResults, Runs, SampleResult, accuracy, f1, hit_rate, share

_SIZES = {"tokens": "length", "sessions": "sessions"}
_FACETS: dict[str, FacetColumn | None] = {
    "model": None,
    "protocol": None,
    "told": FacetColumn("form"),
    "users": FacetColumn("split"),
    "earlier preferences": FacetColumn("evolving", {"yes": "1", "no": "0"}),
}
_HELD = ("model", "framework")
"""What a row tells even where all rows have the same."""

_SCORES = (
    "Accuracy: share of samples whose calls are the gold ones, in number, order, names and arguments. F1: the harmonic "
    "mean of the shares of calls made that are among the gold ones, and of gold ones that are among those made."
)
_INTERVALS = (
    "In brackets: 95 % intervals. Of accuracy they are Wilson's where each pair comes once; of all else, and over "
    f"several lengths, they are bootstrapped over pairs (none for fewer than {FEWEST} pairs)."
)
_REFLEXION = "Reflexion: gold decides whether a further attempt is made; the last one is scored."
_RULE = (
    "The rule looks at the first call that is not as it should be; without any call, at whether something was asked."
)
_KAPPA = "Kappa: Cohen's, of the judge and the rule, over samples that both have labelled."
_OTHERS = {"strict %": "strict", "any order %": "any_order", "F1 multiset": "f1_multiset", "actions %": "actions"}


def compared(runs: Runs) -> list[Table]:
    """All tables that there is something for, in one pass over the samples of each run."""
    results = ApolloResults(runs)
    plain = [sample for sample in results.samples if not sample.evolving]
    of_plain = [
        *_by_size(results, plain or results.samples),
        _preferences(results, plain),
        gains(results, plain),
        _by_split(results, plain),
        _by_form(results, plain),
        *(_by(results, plain, axis, title) for axis, title in _AXES.items()),
        _by_place(results, plain),
    ]
    of_all = [_evolving(results), _errors(results), _others(results), _endings(results), _retrieval(results)]
    only_plain = {"evolving": "0"} if 0 < len(plain) < len(results.samples) else {}
    found = [_with_facets(table, results, only_plain) for table in of_plain]
    found += [_with_facets(table, results, {}) for table in of_all]
    for table in found:
        table.warnings += results.warnings
    return [table for table in found if table.rows]


def _with_facets(table: Table, results: ApolloResults, held: Mapping[str, str]) -> Table:
    """A table that says which samples its figures are of; some facets are held in all of it."""
    sizes = {str(size): (_SIZES[size.unit], str(size.amount)) for size in results.values("size", results.samples)}
    names = {name for name, _ in sizes.values()}
    history = FacetColumn(names.pop(), {told: value for told, (_, value) in sizes.items()}) if len(names) == 1 else None
    table.facets = {**_FACETS, **({} if history is None else {"history": history})}
    of_columns: dict[str, dict[str, str] | None] = {told: {name: value} for told, (name, value) in sizes.items()}
    of_columns |= {query: {"query": query} for query in ("reactive", "proactive")}
    of_columns |= {"explicit": {"form": "explicit"}}
    of_columns |= dict.fromkeys(table.columns if table.name == "errors" else table.chosen)
    for column in table.columns:
        own = of_columns.get(column, of_columns.get(column.removesuffix(" %"), {}))
        table.chosen[column] = None if own is None else {**held, **own}
    if results.failed and table.name != "dialogues":
        table.where = "state == 'done'"
    if table.name == "preferences":
        table.where_of["implicit %"] = "form != 'explicit'"
    return table


_AXES = {"query": "kind of query", "kind": "way from the preference to the calls", "domain": "domain"}


def _by_size(results: ApolloResults, samples: Sequence[SampleResult]) -> Iterator[Table]:
    """The paper's table 1, accuracy and F1 each: a column for every length, and their mean."""
    sizes = results.values("size", samples)
    for name, title, unit, of in (("accuracy", "Accuracy", " %", accuracy), ("f1", "F1", "", f1)):
        columns = [*_HELD, *(f"{size}{unit}" for size in sizes), *([f"mean{unit}"] if len(sizes) > 1 else [])]
        table = Table(name, f"{title} by length of the history", columns, notes=_notes(samples))
        for key, group in results.grouped(samples, _HELD):
            cells: list[Cell] = [of(each for each in group if each.size == size) for size in sizes]
            table.rows.append([*key, *cells, *([of(group)] if len(sizes) > 1 else [])])
        yield table


def _preferences(results: ApolloResults, samples: Sequence[SampleResult]) -> Table:
    """The paper's table 2: explicit and implicit preferences, reactive and proactive queries, over all lengths."""
    columns = [*_HELD, *(f"{name} %" for name in ("explicit", "implicit", "reactive", "proactive"))]
    table = Table("preferences", _over("Accuracy by type of preference and of query", samples), columns)
    table.notes = _notes(samples)
    for key, group in results.grouped(samples, _HELD):
        explicit, implicit = ([each for each in group if (each.form in IMPLICIT) == is_] for is_ in (False, True))
        queries = ([each for each in group if each.query == query] for query in ("reactive", "proactive"))
        table.rows.append([*key, *map(accuracy, (explicit, implicit, *queries))])
    return table


def _by_split(results: ApolloResults, samples: Sequence[SampleResult]) -> Table:
    """The paper's figure 6: users that were trained on, and those that were not, where it is said which."""
    known = [sample for sample in samples if sample.split]
    sizes = results.values("size", known)
    columns = [*_HELD, "users", *(f"{size} %" for size in sizes), *(["mean %"] if len(sizes) > 1 else []), "F1"]
    table = Table("users", "Accuracy on users that were trained on, and on others", columns, notes=_notes(known))
    for key, group in results.grouped(known, [*_HELD, "split"]):
        cells = [accuracy(each for each in group if each.size == size) for size in sizes]
        table.rows.append([*key, *cells, *([accuracy(group)] if len(sizes) > 1 else []), f1(group)])
    return table


def _by_form(results: ApolloResults, samples: Sequence[SampleResult]) -> Table:
    """The five implicit forms apart, and together."""
    table = _scores_table("form", "Accuracy and F1 by how the preference is told", "told", samples)
    for key, group in results.grouped(samples, _HELD):
        for (form,), some in results.grouped(group, ["form"]):
            table.rows.append([*key, form, accuracy(some), f1(some)])
        if implicit := [sample for sample in group if sample.form in IMPLICIT]:
            table.rows.append([*key, "all implicit", accuracy(implicit), f1(implicit)])
    return table


def _by(results: ApolloResults, samples: Sequence[SampleResult], axis: str, title: str) -> Table:
    table = _scores_table(axis, f"Accuracy and F1 by {title}", axis, samples)
    for (*key, value), group in results.grouped(samples, [*_HELD, axis]):
        table.rows.append([*key, value, accuracy(group), f1(group)])
    return table


def _by_place(results: ApolloResults, samples: Sequence[SampleResult]) -> Table:
    """Where the number of sessions was given; of drawn places each has few samples."""
    some = [sample for sample in samples if sample.size.unit == "sessions"]
    table = Table("place", "Accuracy and F1 by where the session stands that matters", [], notes=_notes(some))
    table.columns = [*_HELD, "history", "place", "accuracy %", "F1"]
    for (model, framework, size, place), group in results.grouped(some, [*_HELD, "size", "place"]):
        table.rows.append([model, framework, str(size), place, accuracy(group), f1(group)])
    return table


def _evolving(results: ApolloResults) -> Table:
    """The paper's table 3: samples with earlier preferences beside those of the same length without."""
    columns = [*_HELD, "history", "earlier preferences", "accuracy %", "F1", "stale %"]
    table = Table("evolving", "Preferences that have changed", columns)
    if not any(sample.evolving for sample in results.samples):
        return table
    for (model, framework, size, evolving), group in results.grouped(results.samples, [*_HELD, "size", "evolving"]):
        told: list[Cell] = [model, framework, str(size), "yes" if evolving else "no"]
        table.rows.append([*told, accuracy(group), f1(group), share(group, "stale")])
    table.notes = [*_notes(results.samples), "Stale: the calls are those of a preference that no longer holds."]
    return table


def _errors(results: ApolloResults) -> Table:
    """The paper's analysis of errors: by the rule, and where a judge was asked, by the judge, with their agreement."""
    judged = any(sample.judged_error for sample in results.samples)
    by = ("rule", "judge") if judged else ("rule",)
    named = [label.replace("_", " ") for label in LABELS]
    table = Table("errors", "Why samples failed", [*_HELD, "by", "samples", *(f"{name} %" for name in named), "kappa"])
    for key, group in results.grouped((sample for sample in results.samples if sample.error), _HELD):
        for who in by:
            labels = [label for each in group if (label := each.error if who == "rule" else each.judged_error)]
            if not labels:
                continue  # none of these is among those that the judge was asked about
            shares: list[Cell] = [share_of(labels.count(label), len(labels)) for label in LABELS]
            both = [(each.error, each.judged_error) for each in group if each.error and each.judged_error]
            table.rows.append([*key, who, len(labels), *shares, kappa(both) if who == "judge" else None])
    if not judged:
        table.columns, table.rows = table.columns[:-1], [row[:-1] for row in table.rows]
    meanings = " ".join(f"{name.capitalize()}: {LABELS[label]}." for name, label in zip(named, LABELS, strict=True))
    agreement = [_KAPPA] if judged else []
    table.notes = [f"Of samples whose calls are not the gold ones. {meanings}", _RULE, *agreement]
    return table


def _others(results: ApolloResults) -> Table:
    table = Table("readings", "Other ways to compare the calls", [*_HELD, "accuracy %", "F1", *_OTHERS])
    for key, group in results.grouped(results.samples, _HELD):
        others: list[Cell] = [share(group, name) for name in _OTHERS.values()]
        table.rows.append([*key, accuracy(group), f1(group), *others])
    table.notes = [
        "Strict: equal as JSON. Any order: the same calls, whatever their order. F1 multiset: a repeat counts once. "
        "Actions: the calls that order, book or send are the same, whatever was looked up.",
        _INTERVALS,
    ]
    return table


def _endings(results: ApolloResults) -> Table:
    """How the loops ended, and what was odd."""
    flags = [flag for flag in FLAGS if any(flag in sample.flags for sample in results.samples)]
    ended = {name.replace("_", " "): name for name in ENDINGS[:-1]}
    oddly = [flag.replace("_", " ") for flag in flags]
    columns = [*_HELD, "protocol", "samples", "failed", *ended, *oddly]
    table = Table("dialogues", "The samples: endings, and what was odd", columns)
    done = dict(results.grouped(results.samples, _HELD))
    for key in dict.fromkeys([*done, *results.failed]):
        group, failed = done.get(key, []), results.failed.count((key[0], key[1]))
        protocols = ", ".join(results.values("protocol", group))
        endings = [sum(sample.ending == ending for sample in group) for ending in ended.values()]
        odd = [sum(flag in sample.flags for sample in group) for flag in flags]
        table.rows.append([*key, protocols, len(group) + failed, failed, *endings, *odd])
    table.where_of = {told: f"ended_by == '{name}'" for told, name in ended.items()}
    table.where_of["failed"] = "state == 'failed'"
    table.chosen = dict.fromkeys(oddly)
    meanings = "".join(f" {told.capitalize()}: {FLAGS[flag]}." for told, flag in zip(oddly, flags, strict=True))
    table.notes = [f"None of this changes a score.{meanings}"]
    return table


def _retrieval(results: ApolloResults) -> Table:
    columns = [*_HELD, "history", "accuracy %", "recall@3 %"]
    table = Table("retrieval", "Whether the session that matters is among the three retrieved", columns)
    found = [sample for sample in results.samples if sample.hit is not None]
    for (model, framework, size), group in results.grouped(found, [*_HELD, "size"]):
        table.rows.append([model, framework, str(size), accuracy(group), hit_rate(group)])
    table.notes = [_INTERVALS]
    return table


def _scores_table(name: str, title: str, column: str, samples: Sequence[SampleResult]) -> Table:
    return Table(name, _over(title, samples), [*_HELD, column, "accuracy %", "F1"], notes=_notes(samples))


def _over(title: str, samples: Sequence[SampleResult]) -> str:
    """A title with the lengths that stand together, if there are several."""
    sizes = [str(size) for size in sorted({sample.size for sample in samples})]
    return title + (f", over {', '.join(sizes)}" if len(sizes) > 1 else "")


def _notes(samples: Sequence[SampleResult]) -> list[str]:
    reflexion = [_REFLEXION] if any(sample.framework == "reflexion" for sample in samples) else []
    return [_SCORES, *reflexion, _INTERVALS]

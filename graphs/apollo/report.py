"""APOLLO's tables and charts over one or more runs: accuracy and F1 by the axes, errors, and flags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from dialoom.graphs import Chart, Episode, Estimate, Runs, Series, Table, Tally
from dialoom.graphs.tables import (
    MIN_UNITS,
    Cell,
    FacetColumn,
    PairedDifference,
    ScenarioFilter,
    holm,
    paired_difference,
    share_of,
)
from dialoom.graphs.tables.statistics import TRIALS_NOTE
from dialoom.grouping import group_pairs
from dialoom.personas.apollo.source import FORMS

from .loop import ENDINGS, FLAGS, LABELS, kappa
from .scenario import FRAMEWORKS

Sample: TypeAlias = Mapping[str, Any]
"""A finished sample: its facets and scores by name, and the values that `_sample` adds."""
Group: TypeAlias = Sequence[Sample]

IMPLICIT_FORMS = tuple(form for form in FORMS if form != "explicit")
ALL_IMPLICIT = "all implicit"

_PROTOCOL_NOTES = {
    "native": "It was offered the tools (protocol native)",
    "text": "It was offered no tools: they were only described in its prompt (protocol text). How an assistant of your "
    "own takes tools is in docs/assistants.md",
}
"""Explanations of how an agent was given its tools, by protocol."""


class HistorySize(NamedTuple):
    """The length of a history: in tokens, or in sessions."""

    unit: str
    amount: int

    def __str__(self) -> str:
        return f"{self.amount / 1000:g}k" if self.unit == "tokens" else f"{self.amount} sessions"


class ApolloResults:
    """The data of all tables and charts, from one pass over the samples of each run.

    Attributes:
        samples: The finished samples.
        failed: The failed samples.
    """

    def __init__(self, runs: Runs) -> None:
        self._orders: Mapping[str, Sequence[Any]] = {
            "model": [label for label, _ in runs],
            "framework": FRAMEWORKS,
            "form": (*FORMS, ALL_IMPLICIT),
        }
        self.samples: list[Sample] = []
        self.failed: list[Sample] = []
        for label, episodes in runs:
            for episode in episodes:
                (self.samples if episode.state == "done" else self.failed).append(_build_sample(label, episode))

    @property
    def warnings(self) -> list[str]:
        """A warning for each model that made no call at all, although calls were expected."""
        found = []
        for (model,), samples in self.grouped(self.samples, ["model"]):
            expected = sum(sample["has_gold"] for sample in samples)
            if expected and not any(sample["has_called"] for sample in samples):
                offers = "; ".join(_PROTOCOL_NOTES[protocol] for protocol in self.values("protocol", samples))
                found.append(
                    f"{model} made no tool call in any sample, although {expected:,} of {len(samples):,} right "
                    f"answers contain calls, so these figures do not show how well it uses tools. {offers}."
                )
        return found

    def values(self, axis: str, samples: Iterable[Sample]) -> list[Any]:
        """Return the samples' values of an axis.

        Models are in the order of the runs, and other names in the order of the options.
        """
        return [value for (value,), _ in self.grouped(samples, [axis])]

    def grouped(self, samples: Iterable[Sample], axes: Sequence[str]) -> list[tuple[tuple[Any, ...], list[Sample]]]:
        """Return the groups of samples with equal values of these axes, with these values and sorted by them."""
        groups = group_pairs((tuple(sample[axis] for axis in axes), sample) for sample in samples)
        ordered = [self._orders.get(axis) for axis in axes]

        def place(key: tuple[Any, ...]) -> list[Any]:
            return [value if order is None else order.index(value) for order, value in zip(ordered, key, strict=True)]

        return [(key, groups[key]) for key in sorted(groups, key=place)]


def mean(samples: Iterable[Sample], name: str) -> Estimate | None:
    """Return the mean of a score, or the share of true flags, over the samples that have this score or flag.

    If pairs occur several times, the bootstrap resamples whole pairs, because samples of one pair are not independent.
    """
    scored = [(sample["pair"], sample[name]) for sample in samples if sample[name] is not None]
    once, tally = len({pair for pair, _ in scored}) == len(scored), Tally()
    for pair, score in scored:
        tally.add(score if once else float(score), pair)
    return tally.estimate()


accuracy, f1 = partial(mean, name="accuracy"), partial(mean, name="f1")
"""The columns of accuracy (the share of samples with exactly the gold calls) and of the mean F1."""


def _build_sample(label: str, episode: Episode) -> Sample:
    facets, outcome = episode.facets, episode.outcome
    details: Mapping[str, Any] = outcome.details if episode.state == "done" else {}
    labels = [each.metric for each in outcome.judgements if each.metric in LABELS and each.score]
    length = int(facets["length"])
    return {
        "split": "",
        **facets,
        **details.get("scores", {}),
        "model": label,
        "trial": episode.trial,
        "size": HistorySize("tokens", length) if length else HistorySize("sessions", int(facets["sessions"])),
        "evolving": bool(facets["evolving"]),
        "ending": outcome.ended_by,
        "protocol": details.get("protocol"),
        "flags": details.get("flags", ()),
        "hit": details.get("hit"),
        "has_called": bool(details.get("calls")),
        "has_gold": bool(details.get("gold")),
        "error": details.get("error"),
        "judged_error": labels[0] if labels else None,
    }


Figures = Mapping[str, Callable[[Group], Cell]]
"""The columns of a table: functions of a row's samples, by name."""

BASELINE = "function-calling"
_SIZES = {"tokens": "length", "sessions": "sessions"}
_FACETS: dict[str, FacetColumn | None] = {
    "model": None,
    "protocol": None,
    "users": FacetColumn("split"),
    "earlier preferences": FacetColumn("evolving", {"yes": "1", "no": "0"}),
}
_FIXED_AXES = ("model", "framework")
"""The axes that tables show even if all rows have the same value."""
_TITLES = {"size": "history", "split": "users", "evolving": "earlier preferences"}
"""Titles of axes' columns that differ from the axis's name."""
_AXES = {"query": "kind of query", "kind": "way from the preference to the calls", "domain": "domain"}
_ACCURACY_AND_F1: Figures = {"accuracy %": accuracy, "F1": f1}
_ALTERNATIVE_SCORES = {
    "strict %": "strict",
    "any order %": "any_order",
    "F1 multiset": "f1_multiset",
    "actions %": "actions",
}

_SCORES_NOTE = (
    "Accuracy: share of samples whose calls are the gold ones, in number, order, names and arguments. F1: the "
    "harmonic mean of precision (the share of calls made that are gold calls) and recall (the share of gold calls "
    "that were made)."
)
_INTERVALS_NOTE = (
    "In brackets: 95 % intervals. For shares they are Wilson's if each pair occurs once; otherwise, and over "
    "several lengths, they are bootstrapped over pairs, and widened for few pairs as by Student's t (none for "
    f"fewer than {MIN_UNITS} pairs)."
)
_LABEL_INTERVALS_NOTE = "In brackets: 95 % intervals. They are Wilson's; all samples of a pair count as one."
_MEAN_NOTE = "Mean: over the samples of all lengths together, so that a length with fewer finished samples counts less."
_REFLEXION_NOTE = (
    "Reflexion: another attempt is made if the calls differ from the gold calls; the last attempt is scored."
)
_STALE_NOTE = "Stale: the calls are those of a preference that no longer holds."
_ALTERNATIVE_SCORES_NOTE = (
    "Strict: equal as JSON. Any order: the same calls, whatever their order. F1 multiset: a repeat counts once. "
    "Actions: the calls that order, book or send something are the same; lookups do not count."
)
_RULE_NOTE = (
    "The rule labels a sample unawareness if the agent asked something, and unhelpful if it made no call; otherwise "
    "the first wrong call decides the label."
)
_KAPPA_NOTE = (
    "Rows by the judge cover only the samples that it has labelled. Kappa: Cohen's kappa of the judge and the rule, "
    "over the samples that both have labelled."
)
_GAINS_NOTE = (
    f"Each sample is compared with the sample of {BASELINE} with the same pair and history. In brackets: 95 % "
    "intervals, bootstrapped over pairs, and widened for few pairs as by Student's t "
    f"(none for fewer than {MIN_UNITS} pairs). p: from the same bootstrap over all lengths, with Holm's "
    "correction for all rows together."
)


def build_tables(runs: Runs) -> list[Table]:
    """Return all tables that have rows, in one pass over the samples of each run."""
    results = ApolloResults(runs)
    plain = [sample for sample in results.samples if not sample["evolving"]]
    only_plain = {"evolving": "0"} if 0 < len(plain) < len(results.samples) else {}
    found = [_set_facets(table, results, only_plain) for table in _build_plain_tables(results, plain)]
    found += [_set_facets(table, results, {}) for table in _build_overall_tables(results)]
    has_trials = any(sample["trial"] is not None for sample in results.samples)
    for table in found:
        table.warnings += results.warnings
        if has_trials:
            table.notes.append(TRIALS_NOTE)
    return [table for table in found if table.rows]


def _build_plain_tables(results: ApolloResults, plain: Group) -> Iterator[Table]:
    """Yield the tables about samples without outdated preferences.

    If there are none, the first two tables cover all samples.
    """
    lengths = plain or results.samples
    # The paper's table 1: a column for every length, and their mean.
    of_length = _build_size_columns(results, lengths, accuracy, " %")
    yield _build_table(results, "accuracy", "Accuracy by length of the history", lengths, _FIXED_AXES, of_length)
    yield _build_table(
        results,
        "f1",
        "F1 by length of the history",
        lengths,
        _FIXED_AXES,
        _build_size_columns(results, lengths, f1, ""),
    )
    # Table 2: explicit and implicit preferences, reactive and proactive queries.
    kinds: Figures = {
        "explicit %": lambda group: accuracy(each for each in group if each["form"] not in IMPLICIT_FORMS),
        "implicit %": lambda group: accuracy(each for each in group if each["form"] in IMPLICIT_FORMS),
        "reactive %": lambda group: accuracy(each for each in group if each["query"] == "reactive"),
        "proactive %": lambda group: accuracy(each for each in group if each["query"] == "proactive"),
    }
    title = "Accuracy by type of preference and of query"
    yield _build_table(results, "preferences", title, plain, _FIXED_AXES, kinds)
    yield build_gains_table(results, plain)
    # Figure 6: users in the training data and other users, if the split is known.
    known = [sample for sample in plain if sample["split"]]
    title = "Accuracy by the users' split (train: trained on; test: others), and F1 over all lengths"
    split: Figures = {**_build_size_columns(results, known, accuracy, " %"), "F1": f1}
    yield _build_table(results, "users", title, known, [*_FIXED_AXES, "split"], split)
    implicit = [{**sample, "form": ALL_IMPLICIT} for sample in plain if sample["form"] in IMPLICIT_FORMS]
    title = "Accuracy and F1 by the form of the preference"
    yield _build_table(results, "form", title, [*plain, *implicit], [*_FIXED_AXES, "form"], _ACCURACY_AND_F1)
    for axis, about in _AXES.items():
        yield _build_table(results, axis, f"Accuracy and F1 by {about}", plain, [*_FIXED_AXES, axis], _ACCURACY_AND_F1)
    # Drawn positions are left out, because each has only few samples.
    placed = [sample for sample in plain if sample["size"].unit == "sessions"]
    title = "Accuracy and F1 by the position of the relevant session"
    yield _build_table(results, "place", title, placed, [*_FIXED_AXES, "size", "place"], _ACCURACY_AND_F1)


def _build_overall_tables(results: ApolloResults) -> Iterator[Table]:
    every = results.samples
    if any(sample["evolving"] for sample in every):  # table 3: compared with plain samples of equal length
        figures: Figures = {**_ACCURACY_AND_F1, "stale %": partial(mean, name="stale")}
        title, axes = "Accuracy and F1 with outdated preferences", [*_FIXED_AXES, "size", "evolving"]
        yield _build_table(results, "evolving", title, every, axes, figures, [*_select_notes(every), _STALE_NOTE])
    yield _build_error_table(results)
    readings: Figures = {
        **_ACCURACY_AND_F1,
        **{label: partial(mean, name=name) for label, name in _ALTERNATIVE_SCORES.items()},
    }
    yield _build_table(
        results,
        "readings",
        "Alternative scores of the calls",
        every,
        _FIXED_AXES,
        readings,
        [_ALTERNATIVE_SCORES_NOTE, _INTERVALS_NOTE],
    )
    yield _build_ending_table(results)
    found = [sample for sample in every if sample["hit"] is not None]
    title = "Retrieval: recall of the relevant session among three"
    recall: Figures = {"accuracy %": accuracy, "recall@3 %": partial(mean, name="hit")}
    yield _build_table(results, "retrieval", title, found, [*_FIXED_AXES, "size"], recall, [_INTERVALS_NOTE])


def _build_table(
    results: ApolloResults,
    name: str,
    title: str,
    samples: Group,
    axes: Sequence[str],
    figures: Figures,
    notes: Sequence[str] | None = None,
) -> Table:
    """Return a table with a row for each group of samples with equal axes, and a column for each figure."""
    columns = [*(_TITLES.get(axis, axis) for axis in axes), *figures]
    table = Table(name, _qualify_title(title, samples, columns), columns)
    for key, group in results.grouped(samples, axes):
        cells = [str(each) if axis == "size" else each for axis, each in zip(axes, key, strict=True)]
        cells = [("yes" if each else "no") if isinstance(each, bool) else each for each in cells]
        table.rows.append([*cells, *(figure(group) for figure in figures.values())])
    table.notes = [*(_select_notes(samples) if notes is None else notes), *([_MEAN_NOTE] if _has_mean(columns) else [])]
    return table


def _build_size_columns(
    results: ApolloResults, samples: Group, of: Callable[[Iterable[Sample]], Cell], unit: str
) -> Figures:
    """Return a figure for each length, and one for all lengths together if there are several."""
    sizes = results.values("size", samples)
    figures: dict[str, Callable[[Group], Cell]] = {
        f"{size}{unit}": lambda group, size=size: of(each for each in group if each["size"] == size)  # type: ignore[misc]
        for size in sizes
    }
    return {**figures, **({f"mean{unit}": of} if len(sizes) > 1 else {})}


def _set_facets(table: Table, results: ApolloResults, constant: Mapping[str, str]) -> Table:
    """Return a table that records which samples each figure covers; the facets in `constant` apply to all rows."""
    sizes = {str(size): (_SIZES[size.unit], str(size.amount)) for size in results.values("size", results.samples)}
    names = {name for name, _ in sizes.values()}
    in_table = {title: value for title, (_, value) in sizes.items()}
    table.facets = {**_FACETS, **({"history": FacetColumn(names.pop(), in_table)} if len(names) == 1 else {})}
    of_columns: dict[str, dict[str, str] | None] = {title: {name: value} for title, (name, value) in sizes.items()}
    of_columns |= {"explicit": {"form": "explicit"}, **{query: {"query": query} for query in ("reactive", "proactive")}}
    of_columns |= dict.fromkeys(table.columns if table.name == "errors" else table.chosen)
    for column in table.columns:
        own = of_columns.get(column, of_columns.get(column.removesuffix(" %"), {}))
        table.chosen[column] = None if own is None else {**constant, **own}
    if results.failed and table.name != "dialogues":
        table.population = ScenarioFilter(state="done")
    if table.name == "preferences":
        table.counted["implicit %"] = ScenarioFilter(other_than={"form": "explicit"})
    return table


def build_gains_table(results: ApolloResults, samples: Group) -> Table:
    """Return a table of each framework's difference from the baseline on the same samples, by length and overall.

    See section 6 of the paper.
    """
    sizes = results.values("size", samples)
    columns = [*_FIXED_AXES, *(f"{size} %" for size in sizes), *(["mean %"] if len(sizes) > 1 else []), "p"]
    title = _qualify_title(f"Accuracy: difference from {BASELINE}", samples, columns)
    notes = [_GAINS_NOTE, *([_MEAN_NOTE] if _has_mean(columns) else [])]
    table = Table("frameworks", title, columns, notes=notes, decimals={"p": 3})
    ps: list[float | None] = []
    for (model,), group in results.grouped(samples, ["model"]):
        plain = {_comparison_key(sample): sample for sample in group if sample["framework"] == BASELINE}
        for (framework,), some in results.grouped(group, ["framework"]):
            whole = _compare(some, plain)
            if framework == BASELINE or whole is None:
                continue
            found = (_compare((each for each in some if each["size"] == size), plain) for size in sizes)
            cells: list[Cell] = [each.estimate if each else None for each in found]
            table.rows.append([model, framework, *cells, *([whole.estimate] if len(sizes) > 1 else [])])
            ps.append(whole.p)
    table.rows = [[*row, p] for row, p in zip(table.rows, holm(ps), strict=True)]
    return table


def _comparison_key(sample: Sample) -> tuple[object, ...]:
    return tuple(sample[axis] for axis in ("pair", "size", "place", "evolving", "trial"))


def _compare(samples: Iterable[Sample], plain: Mapping[tuple[object, ...], Sample]) -> PairedDifference | None:
    pairs = ((sample, plain[_comparison_key(sample)]) for sample in samples if _comparison_key(sample) in plain)
    return paired_difference((one["pair"], float(one["accuracy"]) - float(other["accuracy"])) for one, other in pairs)


def _build_error_table(results: ApolloResults) -> Table:
    """Return the table of the paper's error analysis, by the rule's labels and by the judge's labels, if any."""
    judged = any(sample["judged_error"] for sample in results.samples)
    named = [label.replace("_", " ") for label in LABELS]
    columns = [*_FIXED_AXES, "by", "samples", *(f"{name} %" for name in named), *(["kappa"] if judged else [])]
    failed = [sample for sample in results.samples if sample["error"]]
    table = Table("errors", _qualify_title("Errors of failed samples", failed, columns), columns)
    table.judged = {f"{name} %": [f"{label} (assistant)"] for name, label in zip(named, LABELS, strict=True)}
    for key, group in results.grouped(failed, _FIXED_AXES):
        for who, by in (("rule", "error"), ("judge", "judged_error")):
            if labels := [sample[by] for sample in group if sample[by]]:
                pairs = len({sample["pair"] for sample in group if sample[by]})
                shares = [share_of(labels.count(label), len(labels), pairs) for label in LABELS]
                if who == "judge":
                    constant = len(labels) >= MIN_UNITS and len({*labels}) == 1
                    shares = [share and replace(share, is_constant=constant) for share in shares]
                both = [(each["error"], each["judged_error"]) for each in group if each["judged_error"]]
                agreement = [kappa(both) if who == "judge" else None] if judged else []
                table.rows.append([*key, who, len(labels), *shares, *agreement])
    meanings = " ".join(f"{name.capitalize()}: {LABELS[label]}." for name, label in zip(named, LABELS, strict=True))
    table.notes = [f"Samples whose calls differ from the gold calls. {meanings}", _RULE_NOTE]
    table.notes += [*([_KAPPA_NOTE] if judged else []), _LABEL_INTERVALS_NOTE]
    return table


def _build_ending_table(results: ApolloResults) -> Table:
    """Return the table of the loops' endings and of the flags."""
    odd = {flag.replace("_", " "): flag for flag in FLAGS if any(flag in each["flags"] for each in results.samples)}
    ended = {name.replace("_", " "): name for name in ENDINGS}

    def count(group: Group, axis: str, value: str) -> int:
        return sum(value in each["flags"] if axis == "flags" else each[axis] == value for each in group)

    figures: Figures = {
        "protocol": lambda group: ", ".join(sorted({each["protocol"] for each in group if each["protocol"]})),
        "samples": len,
        "failed": lambda group: sum(each["protocol"] is None for each in group),
        **{label: partial(count, axis="ending", value=name) for label, name in ended.items()},
        **{label: partial(count, axis="flags", value=flag) for label, flag in odd.items()},
    }
    meanings = "".join(f" {label.capitalize()}: {FLAGS[flag]}." for label, flag in odd.items())
    title, notes = "Endings and flags of the samples", [f"Endings and flags do not affect scores.{meanings}"]
    table = _build_table(results, "dialogues", title, [*results.samples, *results.failed], _FIXED_AXES, figures, notes)
    table.counted = {label: ScenarioFilter(ended_by=name) for label, name in ended.items()}
    table.counted["failed"] = ScenarioFilter(state="failed")
    table.chosen = dict.fromkeys(odd)
    return table


def _qualify_title(title: str, samples: Group, shown: Sequence[str]) -> str:
    """Return a title that states which settings the figures combine.

    Args:
        title: The title.
        samples: The samples that the figures cover.
        shown: The titles of the columns. A table with a column of lengths, or a column for each, combines none.
    """
    sizes = [str(size) for size in sorted({sample["size"] for sample in samples})]
    if len(sizes) > 1 and not {_TITLES["size"], *sizes} & {column.removesuffix(" %") for column in shown}:
        title += f", over {', '.join(sizes)}"
    played = ((tuple(sample[axis] for axis in ("model", "pair", "size")), sample) for sample in samples)
    places = group_pairs((key, sample["place"]) for key, sample in played if not sample["evolving"])
    if "place" not in shown and any(len({*of_pair}) > 1 for of_pair in places.values()):
        title += ", over several positions of the relevant session"
    if _TITLES["evolving"] not in shown and len({sample["evolving"] for sample in samples}) > 1:
        title += ", with and without outdated preferences"
    return title


def _has_mean(columns: Iterable[str]) -> bool:
    """Return whether a column shows the mean over several lengths."""
    return not {"mean", "mean %"}.isdisjoint(columns)


def _select_notes(samples: Group) -> list[str]:
    reflexion = [_REFLEXION_NOTE] if any(sample["framework"] == "reflexion" for sample in samples) else []
    return [_SCORES_NOTE, *reflexion, _INTERVALS_NOTE]


def build_charts(runs: Runs) -> list[Chart]:
    """Return the charts of the paper's figures 3 to 6 that have data. Each run is read once."""
    results = ApolloResults(runs)
    plain = [sample for sample in results.samples if not sample["evolving"]]
    by_length = [sample for sample in plain if sample["size"].unit == "tokens"]
    by_place = [sample for sample in plain if sample["size"].unit == "sessions"]
    tokens, place = "tokens of the first message", "position among the sessions, oldest first"
    drawn = [_build_line_chart(results, by_length, "accuracy", "Accuracy by length of the history", tokens, "size")]
    for (size,), group in results.grouped(by_place, ["size"]):
        title = f"Accuracy by the position of the relevant session: {size}"
        drawn.append(_build_line_chart(results, group, f"place-{size.amount}", title, place, "place"))
    if split := [sample for sample in by_length if sample["split"]]:
        title = "Accuracy by length and split (train: users that were trained on; test: others)"
        drawn.append(_build_line_chart(results, split, "users", title, tokens, "size", [*_FIXED_AXES, "split"]))
    drawn = [chart for chart in drawn if any(len(series.x) > 1 for series in chart.series)]
    drawn += [*_framework_charts(results, plain), *_error_charts(results)]
    for chart in drawn:
        chart.notes = [*(f"Warning: {each}" for each in results.warnings), *chart.notes]
    return drawn


def _build_line_chart(
    results: ApolloResults,
    samples: Group,
    name: str,
    title: str,
    x_label: str,
    axis: str,
    axes: Sequence[str] = _FIXED_AXES,
) -> Chart:
    """Return a chart with a line for each model and framework, or for the given axes."""
    chart = Chart(name, title, x_label, "accuracy", y_range=(0.0, 1.0), notes=["Bands: 95 % intervals over pairs."])
    groups = results.grouped(samples, axes)
    varies = [len({key[at] for key, _ in groups}) > 1 for at in range(len(axes))]
    for key, group in groups:
        points = results.grouped(group, [axis])
        x = [value.amount if axis == "size" else value for (value,), _ in points]
        label = " ".join(part for part, is_shown in zip(key, varies, strict=True) if is_shown) or key[1]
        chart.series.append(Series.of(label, x, [accuracy(some) for _, some in points]))
    return chart


def _framework_charts(results: ApolloResults, samples: Group) -> Iterator[Chart]:
    """Yield the chart of the paper's figure 5: frameworks side by side, with one bar per model, over all lengths."""
    names = results.values("framework", samples)
    chart = Chart("frameworks", "Accuracy by framework", "", "accuracy", y_range=(0.0, 1.0), kind="bars", names=names)
    chart.notes = ["Over all lengths, with 95 % intervals over pairs."]
    for (model,), group in results.grouped(samples, ["model"]):
        by_name = results.grouped(group, ["framework"])
        places = [names.index(name) for (name,), _ in by_name]
        chart.series.append(Series.of(model, places, [accuracy(some) for _, some in by_name]))
    if len(names) > 1:
        yield chart


def _error_charts(results: ApolloResults) -> Iterator[Chart]:
    """Yield the paper's figure 3: each error's share of the failed samples.

    The judge's labels are used if there are any.
    """
    is_judged = any(sample["judged_error"] for sample in results.samples)
    by = "judged_error" if is_judged else "error"
    failed = [each for each in results.samples if each[by]]
    groups = results.grouped(failed, _FIXED_AXES)
    title = _qualify_title("Errors of failed samples", failed, ())
    chart = Chart("errors", title, "", "share of failed samples", y_range=(0.0, 1.0), kind="stacked")
    varies = [len({key[at] for key, _ in groups}) > 1 for at in range(2)]
    chart.names = [" ".join(part for part, is_ in zip(key, varies, strict=True) if is_) or key[0] for key, _ in groups]
    sizes = ", ".join(str(len(some)) for _, some in groups)
    chart.notes = [f"Labels by the {'judge' if is_judged else 'rule'}. Samples: {sizes}."]
    for label in LABELS:
        shares = [sum(each[by] == label for each in some) / len(some) for _, some in groups]
        chart.series.append(Series(label.replace("_", " "), range(len(groups)), shares))
    if groups:
        yield chart

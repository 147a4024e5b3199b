"""Dataset cards: the provenance of an export as text that accompanies the file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import commonpath, dirname
from typing import Any, get_args

import yaml

from dialoom.graphs.capabilities import WithFacets, WithGate, WithJudging
from dialoom.graphs.gate import format_reduced_coverage
from dialoom.graphs.gate.talk import UNDETERMINED
from dialoom.grouping import group_pairs
from dialoom.runs.report.health import assess_health, health_table
from dialoom.runs.report.labelled_runs import OFFLINE_NOTE, label_runs, offline_roles, played_again_note
from dialoom.runs.report.report import markdown_rows, markdown_table
from dialoom.runs.store import OWN_JUDGEMENTS
from dialoom.text import escape_markdown, quote_code
from dialoom.version import __version__

from .rows import TEST, ExportResult, RowCount, Rows, formats
from .shortcuts import shortcut_table

_OFFLINE = (
    "Made with an offline model ({roles}), a scripted stand-in and not a language model. These texts are for testing a "
    "pipeline: they do not show how models or people write, and a model trained on them learns nothing of use."
)
_WITHOUT_TOOLS = (
    "In {:,} of {:,} dialogues the assistant was offered no tools, because its model is not known to accept any: "
    "actions that it claims were not carried out."
)

_COVERAGE_NOTE = "Covers all judged conversations of the run, also those that are not exported."
_UNKNOWN = "unknown"
_NO_LICENSE = (
    "No licence was given (`license: unknown`). What may be done with this dataset depends on its sources and on the "
    "terms of the models below; whoever publishes it has to state a licence."
)
_TASKS = ("text-generation",)
_ENCODINGS = {"jsonl": "JSON Lines", "parquet": "Parquet"}
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))


class Card:
    """The card of an export.

    Args:
        rows: The exported rows.
        files: The counts of rows of each file.
        splits: The file of each split, if there are splits.
        total: The counts over all files, if the format defines the files and they are not consecutive parts.
    """

    def __init__(
        self,
        rows: Rows,
        files: Mapping[str, RowCount],
        splits: Mapping[str, str] | None = None,
        total: RowCount | None = None,
    ) -> None:
        self._rows, self._files, self._total = rows, files, total
        self._splits = splits or {"train": next(iter(files))}
        self._counts = [*files.values()] if total is None else [total]
        self._models = rows.run.config.role_bindings(None if rows.judging is None else rows.judging.models)

    def text(self) -> str:
        """Return the card as Markdown. It names neither time nor machine, so that equal runs have equal cards."""
        parts = (
            self._front_matter(),
            self._title(),
            self._contents(),
            self._shortcuts(),
            self._health(),
            self._made(),
            self._roles(),
            self._prompts(),
        )
        return "\n".join(line for part in parts for line in part)

    def _front_matter(self) -> Iterator[str]:
        """Yield the front matter that dataset hubs and `datasets.load_dataset` read."""
        recipe, exporter = self._rows.recipe, self._rows.exporter
        recognized = {*self._rows.run.status().languages} - {UNDETERMINED}
        number = sum(count.rows for count in self._files.values())
        files = [{"split": split, "path": name} for split, name in self._splits.items()]
        front: dict[str, Any] = {
            "pretty_name": f"{recipe.name}: {self._rows.request.format}",
            "license": self._rows.request.license or _UNKNOWN,
            "language": list(WithGate.of(recipe).languages or sorted(recognized)),
            "task_categories": list(exporter.tasks if exporter else _TASKS),
            "size_categories": [next((name for bound, name in _SIZES if number < bound), "n>10M")],
            "tags": ["synthetic", "dialoom", recipe.name],
            "configs": [{"config_name": "default", "data_files": files}]
            if self._total is None
            else self._own_configs(),
        }
        text = yaml.safe_dump(
            {key: value for key, value in front.items() if value}, sort_keys=False, allow_unicode=True
        )
        yield from ("---", text.rstrip(), "---", "")

    def _own_configs(self) -> list[dict[str, Any]]:
        """Return a configuration for each exported folder or file; several if its rows have different fields."""
        shapes = group_pairs(
            ((name.partition("/")[0].partition(".")[0], frozenset(count.places)), name)
            for name, count in self._files.items()
        )
        tops = Counter(top for top, _ in shapes)
        named: dict[str, list[str]] = {}
        for (top, _), paths in shapes.items():
            name = top if tops[top] == 1 else commonpath(map(dirname, paths)).replace("/", "-")
            again = sum(other == name or other.startswith(f"{name} ") for other in named)
            named[f"{name} {again + 1}" if again else name] = paths
        return [{"config_name": name, "data_files": paths} for name, paths in named.items()]

    def _title(self) -> Iterator[str]:
        recipe, request = self._rows.recipe, self._rows.request
        form = f"Format `{request.format}`, as {_ENCODINGS[request.encoding]}: {formats(recipe)[request.format]}."
        yield from (f"# {recipe.name}: {request.format}", "", recipe.summary, "", form, "")
        if request.license is None:
            yield from (_NO_LICENSE, "")
        if offline := offline_roles(self._models):
            judging = WithJudging.of(recipe).judging_roles()
            has_texts = offline_roles(each for each in self._models if each[0] not in judging)
            yield from (f"**{(_OFFLINE if has_texts else OFFLINE_NOTE).format(roles=offline)}**", "")
        if without := sum(count.without_tools for count in self._counts):
            yield from (f"**{_WITHOUT_TOOLS.format(without, sum(count.scenarios for count in self._counts))}**", "")

    def _contents(self) -> Iterator[str]:
        facet = WithFacets.of(self._rows.recipe).split_facet
        header = ["file", "rows", self._rows.run.config.units, *([f"distinct values of `{facet}`"] if facet else [])]
        width = len(header) if self._total is None else 2
        lines = (
            [escape_markdown(name), f"{count.rows:,}", f"{count.scenarios:,}", f"{len(count.groups):,}"][:width]
            for name, count in self._files.items()
        )
        yield from ("## Contents", "", *markdown_rows(header[:width], lines), "")
        if self._rows.test is not None:
            realised = self._files[self._splits[TEST]].rows / max(1, sum(count.rows for count in self._files.values()))
            yield (
                f"Split at random by `{facet}`: all rows with the same `{facet}` are in one file. The test split has "
                f"{realised:.1%} of the rows ({self._rows.request.test_share:.1%} were requested)."
            )
            yield ""

    def _health(self) -> Iterator[str]:
        """Yield lines on the health of the judge whose scores are exported."""
        if self._rows.judging is not None:
            (reported,) = label_runs([self._rows.run], self._rows.recipe, self._rows.judging.name)
            for table in health_table(assess_health(reported, None), several=False, covers=_COVERAGE_NOTE):
                yield from markdown_table(table)

    def _shortcuts(self) -> Iterator[str]:
        """Yield lines on superficial features that separate chosen from rejected replies, and on their authors."""
        table = shortcut_table(self._rows.pairs)
        if table is None:
            return
        yield from markdown_table(table)
        exporter, models = self._rows.exporter, self._rows.run.config.model_names
        if exporter is not None and exporter.pair_roles is not None:
            chosen, rejected = (models[role] for role in exporter.pair_roles)
            text = f"Chosen replies were written by {quote_code(chosen)}, rejected ones by {quote_code(rejected)}."
            different = " These are different models: their styles alone may tell the replies apart."
            yield from (text if chosen == rejected else text + different, "")

    def _made(self) -> Iterator[str]:
        run, request = self._rows.run, self._rows.request
        status = run.status()
        yield from ("## How it was made", "")
        yield f"* with dialoom {__version__}, recipe `{run.config.recipe}`, seed {run.config.seed}"
        if run.config.prompts:
            yield f"* with the prompts {', '.join(quote_code(Path(each).name) for each in run.config.prompts)}"
        if run.config.sample is not None:
            yield f"* a sample of {run.config.sample:,} scenarios, drawn with the seed"
        yield f"* {run.config.units}: {status.total:,} planned, {status.done:,} done, {status.failed:,} failed, " + (
            f"{status.pending:,} pending"
        )
        if run.config.trials > 1:
            yield f"* each scenario was played {run.config.trials:,} times (`trial`)"
        if again := played_again_note(run):
            yield f"* {again}"
        filters = request.describe_filters()
        yield f"* filters of the export: {quote_code(filters) if filters else 'none'}"
        if request.only or request.without:
            left_out = sum(count.left_out for count in self._counts)
            yield f"* left out, because the gate found faults or did not check them: {left_out:,} dialogues"
            yield f"* {format_reduced_coverage(status.languages, status.gated)}"
        yield from (f"* {notice}" for notice in ExportResult({}, self._counts, run.config.units).notices)
        for id_, branch in run.promoted_branches():
            taken = quote_code(branch.name)
            yield f"* {quote_code(id_)} comes from the branch {taken}, made by hand in the step debugger"
        if self._rows.judging is not None and self._rows.judging.name != OWN_JUDGEMENTS:
            yield f"* judgements: the set {quote_code(self._rows.judging.name)}"
        fields = self._rows.recipe.options_type.model_fields
        for name, value in run.config.options.items():
            values = value if isinstance(value, list | tuple) else [] if value is None else [value]
            # Paths are reduced to their last part, so that equal runs have equal cards.
            is_path = name in fields and _is_path(fields[name].annotation)
            if text := ", ".join(Path(each).name if is_path else str(each) for each in values):
                yield f"* option {quote_code(name)}: {escape_markdown(text)}"
        yield ""

    def _roles(self) -> Iterator[str]:
        lines = [
            [
                escape_markdown(role),
                quote_code(each.model),
                "not sent" if each.temperature is None else str(each.temperature),
                "none" if each.max_reply is None else f"{each.max_reply:,}",
                ", ".join(quote_code(f"{name}={json.dumps(value)}") for name, value in each.params.items()),
            ]
            for role, each in self._models
        ]
        yield from (*markdown_rows(["role", "model", "temperature", "reply limit in tokens", "parameters"], lines), "")
        changes = self._rows.run.changes()
        for role, texts in changes.items():
            for text, calls in texts.items():
                yield f"* not sent as configured, {escape_markdown(role)}: {escape_markdown(text)} ({calls:,} calls)"
        if changes:
            yield ""

    def _prompts(self) -> Iterator[str]:
        library, roles = self._rows.run.prompts.values(), dict(self._models)
        hashes = {prompt.id: prompt.hash for prompt in library if prompt.front.role in roles}
        hashes |= self._rows.judging.prompts if self._rows.judging else {}
        lines = [map(quote_code, each) for each in sorted(hashes.items())]
        yield from (*markdown_rows(["prompt", "SHA-256, first 16 digits"], lines), "")


def _is_path(annotation: Any) -> bool:
    """Return whether an option's type is a path, or contains one."""
    return annotation is Path or any(map(_is_path, get_args(annotation)))

"""Dataset cards: the provenance of an export as text that accompanies the file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import commonpath, dirname
from typing import Any, get_args

import yaml

from dialoom.graphs.capabilities import WithFacets, WithGate
from dialoom.graphs.gate import reduced_shares
from dialoom.roles import ModelBinding
from dialoom.runs.report.report import markdown_table
from dialoom.runs.report.reported import is_offline
from dialoom.runs.store import OWN_JUDGEMENTS
from dialoom.shown import markdown_code, markdown_text
from dialoom.version import __version__

from .rows import TEST, RowCount, Rows, formats
from .shortcuts import shortcut_table

_OFFLINE = (
    "Made with an offline model ({roles}): a scripted stand-in. Nothing here shows how a model or a person writes; "
    "train on it to try a pipeline, not to get a model."
)


_UNKNOWN = "unknown"
_RIGHTS = (
    "No licence is stated (`license: unknown`): what may be done with this depends on the data that it was made from "
    "and on the terms of the models below. Whoever publishes it says which."
)
_TASKS = ("text-generation",)
_ENCODINGS = {"jsonl": "JSON Lines", "parquet": "Parquet"}
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))


class Card:
    """The card of an export.

    Args:
        rows: The exported rows.
        files: The count of each file.
        splits: The file of each split, if there are splits.
        total: The total count, where the files are a format's own and not consecutive parts.
    """

    def __init__(
        self,
        rows: Rows,
        files: Mapping[str, RowCount],
        splits: Mapping[str, str] | None = None,
        total: RowCount | None = None,
    ) -> None:
        self._rows = rows
        self._files = files
        self._splits = splits or {}
        self._total = total

    def text(self) -> str:
        """Return the card as Markdown; equal runs give equal cards, without time or machine."""
        parts = (
            self._front_matter(),
            self._title(),
            self._held(),
            self._shortcuts(),
            self._made(),
            self._roles(),
            self._prompts(),
        )
        return "\n".join(line for part in parts for line in part)

    @property
    def _counts(self) -> list[RowCount]:
        return [*self._files.values()] if self._total is None else [self._total]

    def _front_matter(self) -> Iterator[str]:
        """Yield the front matter that dataset hubs and `datasets.load_dataset` read."""
        recipe, exporter = self._rows.recipe, self._rows.exporter
        front: dict[str, Any] = {
            "pretty_name": f"{recipe.name}: {self._rows.request.format}",
            "license": self._rows.request.license or _UNKNOWN,
            "language": list(WithGate.of(recipe).languages),
            "task_categories": list(exporter.tasks if exporter else _TASKS),
            "size_categories": [_size(sum(count.rows for count in self._files.values()))],
            "tags": ["synthetic", "dialoom", recipe.name],
        }
        front["configs"] = self._configs() if self._total is None else self._own_configs()
        text = yaml.safe_dump(
            {key: value for key, value in front.items() if value}, sort_keys=False, allow_unicode=True
        )
        yield from ("---", text.rstrip(), "---", "")

    def _configs(self) -> list[dict[str, Any]]:
        splits = self._splits or dict.fromkeys(("train",), next(iter(self._files)))
        files = [{"split": split, "path": name} for split, name in splits.items()]
        return [{"config_name": "default", "data_files": files}]

    def _own_configs(self) -> list[dict[str, Any]]:
        """Return a configuration for each top-level folder or file; several if the shapes of its rows differ."""
        shapes: dict[tuple[str, frozenset[str]], list[str]] = {}
        for name, count in self._files.items():
            top = name.partition("/")[0].partition(".")[0]
            shapes.setdefault((top, frozenset(count.places)), []).append(name)
        tops = Counter(top for top, _ in shapes)
        named: dict[str, list[str]] = {}
        for (top, _), paths in shapes.items():
            name = top if tops[top] == 1 else commonpath(map(dirname, paths)).replace("/", "-")
            again = sum(other == name or other.startswith(f"{name} ") for other in named)
            named[f"{name} {again + 1}" if again else name] = paths
        return [{"config_name": name, "data_files": paths} for name, paths in named.items()]

    def _title(self) -> Iterator[str]:
        recipe, request = self._rows.recipe, self._rows.request
        yield from (f"# {recipe.name}: {request.format}", "", recipe.summary, "")
        yield from (
            f"Format `{request.format}`, as {_ENCODINGS[request.encoding]}: {formats(recipe)[request.format]}.",
            "",
        )
        if request.license is None:
            yield from (_RIGHTS, "")
        if offline := [role for role, each in self._models().items() if is_offline(each.model)]:
            yield from (f"**{_OFFLINE.format(roles=', '.join(offline))}**", "")

    def _held(self) -> Iterator[str]:
        facet = WithFacets.of(self._rows.recipe).split_facet
        header = ["file", "rows", "scenarios", *([f"different {facet}"] if facet else [])]
        lines = [
            [markdown_text(name), count.rows, count.scenarios, *([len(count.groups)] if facet else [])]
            for name, count in self._files.items()
        ]
        if self._total is not None:
            header, lines = header[:2], [line[:2] for line in lines]
        yield from ("## What it holds", "", *_table(header, lines), "")
        if self._rows.split is not None:
            share = self._rows.request.test_share
            test = next(count.rows for name, count in self._files.items() if name == self._splits.get(TEST))
            realised = test / max(1, sum(count.rows for count in self._files.values()))
            yield (
                f"Split by `{facet}` with the run's seed: all rows of one `{facet}` are in one file. "
                f"Asked for was a share of {share}; {realised:.1%} of the rows are for testing."
            )
            yield ""

    def _shortcuts(self) -> Iterator[str]:
        """Yield what separates the replies of a preference dataset without the person, and which models wrote them."""
        table = shortcut_table(self._rows.pairs)
        if table is None:
            return
        yield from markdown_table(table)
        exporter, models = self._rows.exporter, self._rows.run.config.model_names
        if exporter is not None and exporter.pair_roles is not None:
            chosen, rejected = (models[role] for role in exporter.pair_roles)
            yield (
                f"Chosen replies were written by {markdown_code(chosen)}, rejected ones by {markdown_code(rejected)}."
                + (
                    ""
                    if chosen == rejected
                    else " These are different models: their styles alone may tell the replies apart."
                )
            )
            yield ""

    def _made(self) -> Iterator[str]:
        run, request = self._rows.run, self._rows.request
        status = run.status()
        yield from ("## How it was made", "")
        yield f"* with dialoom {__version__}, recipe `{run.config.recipe}`, seed {run.config.seed}"
        if run.config.sample is not None:
            yield f"* a sample of {run.config.sample:,} scenarios, drawn with the seed"
        yield f"* scenarios: {status.total:,} planned, {status.done:,} done, {status.failed:,} failed, " + (
            f"{status.pending:,} pending"
        )
        yield f"* filters: {markdown_code(request.filters_text()) if request.filters_text() else 'none'}"
        if request.only or request.without:
            left_out = sum(count.left_out for count in self._counts)
            yield f"* left out because of faults that the gate found (or did not look for): {left_out:,} dialogues"
            yield f"* {reduced_shares(status.languages, status.gated)}"
        for id_, branch in run.promoted_branches():
            taken = markdown_code(branch.name)
            yield f"* {markdown_code(id_)} comes from the branch {taken}, made by hand in the step debugger"
        if self._rows.judging is not None and self._rows.judging.name != OWN_JUDGEMENTS:
            yield f"* judgements: the set {markdown_code(self._rows.judging.name)}"
        for name, value in self._run_options().items():
            yield f"* option {markdown_code(name)}: {markdown_text(value)}"
        yield ""

    def _run_options(self) -> dict[str, str]:
        """Return the run's options; of a path only the last part, since the rest belongs to the machine."""
        fields = self._rows.recipe.options_type.model_fields
        shown = {}
        for name, value in self._rows.run.config.options.items():
            values = value if isinstance(value, list | tuple) else [] if value is None else [value]
            is_path = name in fields and _is_path(fields[name].annotation)
            shown[name] = ", ".join(Path(each).name if is_path else str(each) for each in values)
        return {name: text for name, text in shown.items() if text}

    def _models(self) -> dict[str, ModelBinding]:
        judges = {} if self._rows.judging is None else self._rows.judging.models
        return {**self._rows.run.config.models, **judges}

    def _roles(self) -> Iterator[str]:
        lines = [
            [
                markdown_text(role),
                markdown_code(each.model),
                "not sent" if each.temperature is None else each.temperature,
                "none" if each.max_reply is None else each.max_reply,
                ", ".join(markdown_code(f"{name}={json.dumps(value)}") for name, value in each.params.items()),
            ]
            for role, each in self._models().items()
        ]
        yield from (*_table(["role", "model", "temperature", "reply limit in tokens", "parameters"], lines), "")

    def _prompts(self) -> Iterator[str]:
        library = self._rows.run.prompts
        hashes = {prompt.id: prompt.hash for prompt in library.values() if prompt.front.role in self._models()}
        if self._rows.judging is not None:
            hashes |= self._rows.judging.prompts
        lines = [[markdown_code(id_), markdown_code(hash_)] for id_, hash_ in sorted(hashes.items())]
        yield from (*_table(["prompt", "SHA-256, first 16 digits"], lines), "")


def _size(rows: int) -> str:
    """Return the hub's size category for a number of rows."""
    return next((name for bound, name in _SIZES if rows < bound), "n>10M")


def _is_path(annotation: Any) -> bool:
    """Return whether an option's type is a path, or contains one."""
    return annotation is Path or any(map(_is_path, get_args(annotation)))


def _table(header: list[str], lines: list[list[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    for line in lines:
        yield f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else str(cell) for cell in line)} |"

"""A report as a value, and as an HTML page."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

from dialoom.graphs import Chart, Table
from dialoom.graphs.reporting.table import CONSTANT
from dialoom.outputs import text_output
from dialoom.runs.errors import RunError
from dialoom.runs.reading.scenarios import every
from dialoom.runs.store import PANEL, RunFile

from .building import build, charts, compare, labels_of
from .drawing import can_draw, draw
from .judges import file_name
from .writing import NO_ROWS, latex, markdown, texts_of, write

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_XML = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_ESTIMATE = re.compile(rf"^(-?[\d.,]+{CONSTANT}?)(?: (\[[^\]]*\]))?(?: (n=[\d,]+))$")
_NUMBER = re.compile(rf"^[-\u2013]?[\d.,]*\d%?{CONSTANT}?(?: \[.*)?(?: n=[\d,]+)?$|^\u2013$")


def page(tables: Sequence[Table], title: str, charts: Sequence[Chart] = (), lead: Sequence[str] = ()) -> str:
    """Return tables and charts as an HTML page; charts are omitted if matplotlib is not installed.

    A chart with a table's name is placed below that table, any other above all of them. All content of tables is
    escaped:
    no mark-up in a message or a name takes effect.

    Args:
        tables: The tables, in order.
        title: The page's title.
        charts: The charts, in order.
        lead: Paragraphs below the title.
    """
    drawn = charts if can_draw() else ()
    names = {table.name for table in tables}
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_style()}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *(f"<p>{escape(paragraph)}</p>" for paragraph in lead),
            *_contents(tables),
            *(line for chart in drawn if chart.name not in names for line in _figure(chart)),
            *(line for table in tables for line in _with_charts(table, drawn)),
            "</body></html>",
            "",
        ]
    )


def _style() -> str:
    return resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")


def _contents(tables: Sequence[Table]) -> Iterator[str]:
    if len(tables) > 3:
        links = "".join(f'<a href="#{escape(table.name)}">{escape(table.title)}</a>' for table in tables)
        yield f'<nav aria-label="Tables">{links}</nav>'


def _figure(chart: Chart) -> Iterator[str]:
    svg = _XML.sub("", draw(chart, ["svg"])["svg"].decode())
    yield f'<figure role="img" aria-label="{escape(chart.title)}">{svg}</figure>'  # its notes are part of the drawing


def _with_charts(table: Table, drawn: Sequence[Chart]) -> Iterator[str]:
    yield from _table(table)
    for chart in drawn:
        if chart.name == table.name:
            yield from _figure(chart)


def _table(table: Table) -> Iterator[str]:
    yield f'<h2 id="{escape(table.name)}">{escape(table.title)}</h2>'
    yield from (f'<p class="warning">{escape(warning)}</p>' for warning in table.headnotes)
    yield from _body(table) if table.rows else [f"<p>{NO_ROWS}</p>"]
    yield from _notes(table.footnotes)


def _body(table: Table) -> Iterator[str]:
    rows = list(texts_of(table))
    classes = [_class(texts) for texts in zip(*rows, strict=True)]
    yield '<div class="wide"><table><thead><tr>'
    heads = zip(classes, table.columns, strict=True)
    yield "".join(f'<th scope="col"{class_}>{escape(column)}</th>' for class_, column in heads)
    yield "</tr></thead><tbody>"
    for texts in rows:
        cells = (f"<td{class_}>{_cell(text)}</td>" for class_, text in zip(classes, texts, strict=True))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _cell(text: str) -> str:
    """Return a cell's HTML; an estimate's interval and n can wrap below its mean."""
    found = _ESTIMATE.match(text)
    if found is None:
        return escape(text)
    return " ".join([escape(found[1]), *(f"<small>{escape(part)}</small>" for part in found.groups()[1:] if part)])


def _class(texts: Sequence[str]) -> str:
    """Return the class attribute of a column: one of numbers is right-aligned."""
    return ' class="n"' if all(map(_NUMBER.match, texts)) else ""


def _notes(notes: Sequence[str]) -> Iterator[str]:
    for note in notes:
        yield f'<p class="note">{escape(note)}</p>'


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """Tables and charts of one run or several.

    Attributes:
        title: The runs' progress, and the number of matching scenarios if the report is filtered.
        tables: The recipe's tables.
        charts: The recipe's charts; drawing needs the extra `plots`.
        labels: For several runs, their labels in the column `run`.
    """

    title: str
    tables: Sequence[Table]
    charts: Sequence[Chart]
    labels: Sequence[str] = ()

    @classmethod
    def of(
        cls, runs: Sequence[RunFile], judging: str | None = None, names: Sequence[str] = (), where: str | None = None
    ) -> Report:
        """Build the report of one run, or of several side by side.

        Args:
            runs: Runs of one recipe.
            judging: One set of judgements; by default all of one run, the oldest of each of several.
            names: Only these tables (and charts of these names). A name without a set's suffix selects the tables of
                all sets of judgements.
            where: Only scenarios matching this expression.

        Raises:
            RunError: If the runs are not of one recipe, one is named twice, or a table does not exist.
            StoreError: If a run has no such set.
        """
        tables = compare(runs, judging, where) if len(runs) > 1 else build(runs[0], judging, where)
        known = [table.name for table in tables]
        suffixes = {PANEL, *(file_name(each.name) for run in runs for each in run.judgement_sets())}
        wanted = {found for name in names for found in _of_name(name, known, suffixes)}
        if unknown := [name for name in names if not _of_name(name, known, suffixes)]:
            raise RunError(f"tables {unknown[0]!r}: there are {', '.join(known) or 'none yet'}", setting="tables")
        return cls(
            "; ".join(_title(run, judging, where) for run in runs),
            [table for table in tables if not names or table.name in wanted],
            [chart for chart in charts(runs, judging, where) if not names or chart.name in names],
            labels_of(runs, judging) if len(runs) > 1 else (),
        )

    def __getitem__(self, name: str) -> Table:
        """Return a table by its name."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(f"{name!r}; there are {', '.join(table.name for table in self.tables) or 'none'}")

    def __repr__(self) -> str:
        return f"<Report of {self.title}: {', '.join(table.name for table in self.tables) or 'no tables'}>"

    def __str__(self) -> str:
        return markdown(self.tables, self.title)

    def _repr_markdown_(self) -> str:
        return str(self)

    def page(self) -> str:
        """Return the report as one self-contained HTML page, with its charts if matplotlib is installed."""
        return page(self.tables, self.title, self.charts)

    def latex(self) -> str:
        """Return the tables as LaTeX; a document that includes them needs the package `booktabs`."""
        return latex(self.tables)

    def write(self, folder: str | Path, *, has_charts: bool = True) -> list[Path]:
        """Write `report.md`, `report.html`, a CSV file per table, a PNG and an SVG file per chart; return the paths.

        Args:
            folder: The target folder; created if necessary.
            has_charts: Whether to draw the charts, which needs matplotlib.

        Raises:
            RunError: If the folder cannot be written.
            ModuleNotFoundError: If there are charts and matplotlib is not installed.
        """
        charts = self.charts if has_charts else ()
        first, *others = write(self.tables, Path(folder), self.title, charts)
        alone = first.with_suffix(".html")
        with text_output(alone) as file:
            file.write(page(self.tables, self.title, charts))
        return [first, alone, *others]


def _title(run: RunFile, judging: str | None, where: str | None) -> str:
    """Return a run's progress, and the number of its finished scenarios matching an expression."""
    status = run.status()
    title = f"{run.path.name}: {status.done:,} of {status.total:,} scenarios done"
    if where is None:
        return title
    fitting = sum(episode.state != "pending" for _, episode in every(run, judging, where))
    return f"{title}, {fitting:,} fit"


def _of_name(name: str, known: Sequence[str], suffixes: Collection[str]) -> list[str]:
    """Return the tables of a name: the one that has it, or those with the suffix of a set of judgements."""
    return [name] if name in known else [each for each in known if each in {f"{name}-{end}" for end in suffixes}]

"""A report as a value and as files: an HTML page, Markdown with images, a CSV file per table, and LaTeX."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from html import escape
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from dialoom.errors import Advice
from dialoom.graphs import Chart, Estimate, Table
from dialoom.graphs.tables.table import CONSTANT_MARK, DOUBTFUL_MARK, Cell
from dialoom.outputs import OutputError, binary_output, make_file_name, make_folder, text_output
from dialoom.runs.errors import RunError
from dialoom.runs.reading.scenarios import iter_scenarios
from dialoom.runs.store import PANEL, RunFile
from dialoom.text import escape_csv_cell, escape_latex, escape_markdown

from .building import build_charts, build_tables, common_recipe, compare_runs, select_judgement_sets
from .drawing import IMAGE_KINDS, can_draw, draw
from .judges import file_safe_name
from .labelled_runs import collect_run_notes, label_runs

_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_XML_PROLOG = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_MARKS = f"{CONSTANT_MARK}?{DOUBTFUL_MARK}?"
_ESTIMATE = re.compile(rf"^(-?[\d.,]+{_MARKS})(?: (\[[^\]]*\]))?(?: (n=[\d,]+))$")
_NUMBER = re.compile(rf"^[-\u2013]?[\d.,]*\d%?{_MARKS}(?: \[.*)?(?: n=[\d,]+)?$|^\u2013$")


def render_page(
    tables: Sequence[Table], title: str, charts: Sequence[Chart] = (), introduction: Sequence[str] = ()
) -> str:
    """Return tables and charts as an HTML page; charts are omitted if matplotlib is not installed.

    A chart with a table's name is placed below that table; other charts are placed above all tables. All content is
    escaped, so that mark-up in a message or a name has no effect.

    Args:
        tables: The tables, in order.
        title: The page's title.
        charts: The charts, in order.
        introduction: Paragraphs below the title.
    """
    drawn = charts if can_draw() else ()
    names = {table.name for table in tables}
    links = (f'<a href="#{escape(table.name)}">{escape(table.title)}</a>' for table in tables)
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(_SECURITY_POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{style}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *(f"<p>{escape(paragraph)}</p>" for paragraph in introduction),
            *([f'<nav aria-label="Tables">{"".join(links)}</nav>'] if len(tables) > 3 else []),
            *(_render_figure(chart) for chart in drawn if chart.name not in names),
            *(
                line
                for table in tables
                for line in _render_table(table, [each for each in drawn if each.name == table.name])
            ),
            "</body></html>",
            "",
        ]
    )


def _render_figure(chart: Chart) -> str:
    svg = _XML_PROLOG.sub("", draw(chart, ["svg"])["svg"].decode())
    return f'<figure role="img" aria-label="{escape(chart.title)}">{svg}</figure>'  # the drawing includes the notes


def _render_table(table: Table, charts: Sequence[Chart]) -> Iterator[str]:
    yield f'<h2 id="{escape(table.name)}">{escape(table.title)}</h2>'
    yield from (f'<p class="warning">{escape(warning)}</p>' for warning in table.headnotes)
    yield from _render_rows(table) if table.rows else [f"<p>{EMPTY_TABLE}</p>"]
    yield from (f'<p class="note">{escape(note)}</p>' for note in table.footnotes)
    yield from map(_render_figure, charts)


def _render_rows(table: Table) -> Iterator[str]:
    rows = list(format_rows(table))
    # Columns of numbers are right-aligned.
    classes = [' class="n"' if all(map(_NUMBER.match, texts)) else "" for texts in zip(*rows, strict=True)]
    yield '<div class="wide"><table><thead><tr>'
    heads = zip(classes, table.columns, strict=True)
    yield "".join(f'<th scope="col"{class_}>{escape(column)}</th>' for class_, column in heads)
    yield "</tr></thead><tbody>"
    for texts in rows:
        cells = (f"<td{class_}>{_render_cell(text)}</td>" for class_, text in zip(classes, texts, strict=True))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _render_cell(text: str) -> str:
    """Return a cell's HTML, in which an estimate's interval and n may wrap below its mean."""
    found = _ESTIMATE.match(text)
    if found is None:
        return escape(text)
    return " ".join([escape(found[1]), *(f"<small>{escape(part)}</small>" for part in found.groups()[1:] if part)])


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """Tables and charts of one run or several.

    Example:
        >>> report = dialoom.open_run("run.db").report()
        >>> files = report.write("report", has_charts=False)  # HTML, Markdown, LaTeX and CSV

    Attributes:
        title: The runs' progress, and the number of matching scenarios if the report is filtered.
        tables: The recipe's tables.
        charts: The recipe's charts; drawing needs the extra `plots`.
        labels: The labels of several runs, as in the column `run`.
        notes: Notes on the runs as a whole, such as on parameters that were not sent as configured.
    """

    title: str
    tables: Sequence[Table]
    charts: Sequence[Chart]
    labels: Sequence[str] = ()
    notes: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        runs: Sequence[RunFile],
        judging: str | None = None,
        names: Sequence[str] = (),
        where: str | None = None,
        leading: Sequence[Table] = (),
        allow_different_users: bool = False,
    ) -> Report:
        """Build the report of one run, or of several side by side.

        Args:
            runs: Runs of one recipe.
            judging: One set of judgements; by default all sets of a single run, or the oldest set of each of several
                runs.
            names: Only tables and charts with these names. A name without a set's suffix selects the tables of all sets
                of judgements.
            where: Only scenarios matching this expression.
            leading: Tables that precede the recipe's.
            allow_different_users: Whether differences are computed between runs whose simulated users differ.

        Raises:
            RunError: If the runs are not of the same recipe, a run is given twice, or a table does not exist.
            StoreError: If a run has no such set.
        """
        several, recipe = len(runs) > 1, common_recipe(runs)
        reported = label_runs(runs, recipe, judging) if several else select_judgement_sets(runs[0], recipe, judging)
        if several:
            tables = [*leading, *compare_runs(reported, recipe, where, allow_different_users)]
        else:
            tables = [*leading, *build_tables(reported, recipe, where, has_agreement=judging is None)]
        known = [table.name for table in tables]
        suffixes = {PANEL, *(file_safe_name(each.name) for run in runs for each in run.judgement_sets())}
        # A name selects the table itself, or its variants for several sets.
        matches = {
            name: [name] if name in known else [each for each in known if each in {f"{name}-{end}" for end in suffixes}]
            for name in names
        }
        selected = {*itertools.chain.from_iterable(matches.values())}
        if names and not known:
            places = " and ".join(str(run.path) for run in runs)
            raise RunError(
                f"{places} {'have' if several else 'has'} no finished scenarios yet, so there is no table {names[0]!r}",
                advice=Advice("resume", "resume the run", {"path": runs[0].path}),
            )
        if unknown := [name for name, found in matches.items() if not found]:
            hint = "".join(f"; did you mean {each}?" for each in get_close_matches(unknown[0], known, 1))
            raise RunError(f"tables must be among {', '.join(known)}, got {unknown[0]!r}{hint}", setting="tables")
        return cls(
            "; ".join(_title(run, judging, where) for run in runs),
            [table for table in tables if not names or table.name in selected],
            [chart for chart in build_charts(reported, recipe, where, several) if not names or chart.name in names],
            [each.label for each in reported] if several else (),
            collect_run_notes(reported),
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
        return render_markdown(self.tables, self.title, notes=self.notes)

    _repr_markdown_ = __str__

    def page(self) -> str:
        """Return the report as one self-contained HTML page, with its charts if matplotlib is installed."""
        return render_page(self.tables, self.title, self.charts, self.notes)

    def latex(self) -> str:
        """Return the tables as LaTeX, for inclusion in a document that uses the package `booktabs`."""
        paragraphs = (line for note in self.notes for line in (escape_latex(note), ""))
        return "\n".join([*paragraphs, *(line for table in self.tables for line in _latex_table(table))])

    def write(self, folder: str | Path, *, has_charts: bool = True) -> list[Path]:
        """Write `report.md`, `.html` and `.tex`, a CSV file per table, and PNG, SVG and PDF per chart.

        Returns the paths.

        Args:
            folder: The target folder; created if necessary. Files of an earlier report are replaced.
            has_charts: Whether to draw the charts, which needs matplotlib.

        Raises:
            OutputError: If the folder cannot be written, or contains a file that is not one of this report.
            ModuleNotFoundError: If there are charts and matplotlib is not installed.
        """
        folder, charts = Path(folder), self.charts if has_charts else ()
        written_names = {
            "report.md",
            "report.html",
            "report.tex",
            *(make_file_name(f"{table.name}.csv") for table in self.tables),
        }
        written_names |= {
            make_file_name(f"{name}.{kind}") for name, _ in _name_charts(self.charts) for kind in IMAGE_KINDS
        }
        existing = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if others := sorted(name for name in existing - written_names if not name.startswith(".")):
            raise OutputError(f"{folder} contains {others[0]}, which is not a file of this report; give another folder")
        pages = {
            "report.md": render_markdown(self.tables, self.title, charts, self.notes),
            "report.html": render_page(self.tables, self.title, charts, self.notes),
            "report.tex": self.latex(),
        }
        return [*write_texts(pages, folder), *_write_tables(self.tables, folder), *write_charts(charts, folder)]


def write_texts(texts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write texts to a folder, which is created if necessary, by the files' names; return their paths."""
    make_folder(folder)
    for name, text in texts.items():
        with text_output(folder / name) as file:
            file.write(text)
    return [folder / name for name in texts]


def _title(run: RunFile, judging: str | None, where: str | None) -> str:
    """Return a run's progress, and the number of its finished scenarios matching an expression."""
    status = run.status()
    title = f"{run.path.name}: {status.done:,} of {status.total:,} {run.config.units} done"
    if where is None:
        return title
    matching = sum(episode.state != "pending" for _, episode in iter_scenarios(run, judging, where))
    return f"{title}, {matching:,} selected"


_MINUS = re.compile(r"-(?=\d)")

EMPTY_TABLE = "nothing"
"""The text in place of a table without rows."""


def format_cell(cell: Cell, column: str, decimals: int | None = None) -> str:
    """Format a cell; an estimate is formatted as its mean, with a mark if it is constant, its interval and n.

    Args:
        cell: The cell's value.
        column: The column's name; a column whose name ends in `%` contains fractions.
        decimals: Number of decimals; by default 2, and 1 for percentages.
    """
    factor, usual = (100, 1) if column.endswith("%") else (1, 2)
    places = usual if decimals is None else decimals
    if cell is None:
        return "–"
    if isinstance(cell, Estimate):
        ends = [f"{factor * end:z.{places}f}" for end in (cell.low, cell.high) if end is not None]
        interval = f" [{', '.join(ends)}]" if ends else ""
        marks = f"{CONSTANT_MARK if cell.is_constant else ''}{DOUBTFUL_MARK if cell.is_doubtful else ''}"
        return f"{factor * cell.mean:z.{places}f}{marks}{interval} n={cell.n:,}"
    if isinstance(cell, float):
        return f"{factor * cell:z.{places}f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def format_rows(table: Table) -> Iterator[list[str]]:
    """Yield a table's rows as formatted text."""
    for row in table.rows:
        yield [format_cell(cell, column, table.decimals.get(column)) for cell, column in table.shown(row)]


def render_markdown(
    tables: Sequence[Table], title: str, charts: Sequence[Chart] = (), notes: Sequence[str] = ()
) -> str:
    """Return notes, charts and tables as one Markdown page, which refers to charts as PNG files beside it."""
    lines = itertools.chain(*itertools.starmap(_markdown_chart, _name_charts(charts)), *map(markdown_table, tables))
    paragraphs = (line for note in notes for line in (escape_markdown(note), ""))
    return "\n".join([f"# {escape_markdown(title)}", "", *paragraphs, *lines])


def _write_tables(tables: Sequence[Table], folder: Path) -> Iterator[Path]:
    for table in tables:
        path = folder / make_file_name(f"{table.name}.csv")
        with text_output(path, newline="") as file:
            csv.writer(file).writerows([*map(escape_csv_cell, row)] for row in _csv_rows(table))
        yield path


def write_charts(charts: Sequence[Chart], folder: Path) -> Iterator[Path]:
    """Write a PNG, an SVG and a PDF file per chart, and yield their paths; charts with the same name are numbered."""
    for name, chart in _name_charts(charts):
        for kind, content in draw(chart).items():
            path = folder / make_file_name(f"{name}.{kind}")
            with binary_output(path) as file:
                file.write(content)
            yield path


def _name_charts(charts: Sequence[Chart]) -> Iterator[tuple[str, Chart]]:
    """Yield each chart with its file name."""
    named: Counter[str] = Counter()
    for chart in charts:
        named[chart.name] += 1
        yield chart.name if named[chart.name] == 1 else f"{chart.name}-{named[chart.name]}", chart


def _markdown_chart(name: str, chart: Chart) -> Iterator[str]:
    yield from (f"![{escape_markdown(chart.title)}]({quote(make_file_name(f'{name}.png'))})", "")
    for note in chart.notes:
        yield from (escape_markdown(note), "")


def markdown_table(table: Table) -> Iterator[str]:
    """Yield the lines of a table under a heading of the second level, with its warnings and notes."""
    yield from (f"## {escape_markdown(table.title)}", "")
    for warning in table.headnotes:
        yield from (f"**{escape_markdown(warning)}**", "")
    rows = (map(escape_markdown, texts) for texts in format_rows(table))
    yield from markdown_rows(map(escape_markdown, table.columns), rows) if table.rows else [EMPTY_TABLE]
    yield ""
    for note in table.footnotes:
        yield from (escape_markdown(note), "")


def markdown_rows(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield a table's lines, given its cells as Markdown."""
    head = [*columns]
    yield f"| {' | '.join(head)} |"
    yield "|" + " --- |" * len(head)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _latex_table(table: Table) -> Iterator[str]:
    is_text = [any(isinstance(row[place], str) for row in table.rows) for place in range(len(table.columns))]
    yield from ("\\begin{table}", "\\centering", f"\\caption{{{escape_latex(table.title)}}}")
    yield from (f"\\label{{tab:{make_file_name(table.name)}}}", "\\footnotesize")
    yield f"\\begin{{tabular}}{{{''.join('l' if each else 'r' for each in is_text)}}}"
    yield from ("\\toprule", " & ".join(map(escape_latex, table.columns)) + " \\\\", "\\midrule")
    for texts in format_rows(table):
        escaped = zip(map(escape_latex, texts), is_text, strict=True)
        yield " & ".join(text if each else _MINUS.sub("$-$", text) for text, each in escaped) + " \\\\"
    yield from ("\\bottomrule", "\\end{tabular}")
    yield from (f"\n{escape_latex(line)}" for line in (*table.headnotes, *table.footnotes))
    yield from ("\\end{table}", "")


def _csv_rows(table: Table) -> Iterator[list[str | int | float | None]]:
    """Yield a header and the rows; columns whose name ends in `%` as percentages.

    A column of estimates becomes four columns: mean, ends of the interval and n. For judges' scores, a fifth column
    states whether all scores are equal; if a judge fails a check, a sixth column marks the figures concerned.
    """
    parts = [_csv_suffixes([row[index] for row in table.rows]) for index in range(len(table.columns))]
    yield [
        f"{column} {part}".strip() for column, of_column in zip(table.columns, parts, strict=True) for part in of_column
    ]
    for row in table.rows:
        cells: list[str | int | float | None] = []
        for (cell, column), of_column in zip(table.shown(row), parts, strict=True):
            factor = 100 if column.endswith("%") else 1
            if isinstance(cell, Estimate):
                figures = (None if each is None else factor * each for each in (cell.mean, cell.low, cell.high))
                cells += [*figures, cell.n, cell.is_constant, cell.is_doubtful][: len(of_column)]
            else:
                cells += [factor * cell if isinstance(cell, float) else cell, *[None] * (len(of_column) - 1)]
        yield cells


def _csv_suffixes(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the suffixes of the CSV columns into which a table's column is split."""
    estimates = [cell for cell in cells if isinstance(cell, Estimate)]
    if not estimates:
        return ("",)
    judged = ["constant"] if any(cell.is_constant is not None for cell in estimates) else []
    return ("", "low", "high", "n", *judged, *(["doubtful"] if any(cell.is_doubtful for cell in estimates) else []))

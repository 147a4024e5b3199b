"""A report as one self-contained HTML page: it loads nothing from a network, and has no scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources

from dialoom.graphs import Chart, Table
from dialoom.graphs.reporting.table import CONSTANT

from .drawing import can_draw, draw
from .writing import NO_ROWS, texts_of

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

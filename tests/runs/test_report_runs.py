"""Charts, and reports written with them."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from dialoom.cli.reporting import print_tables
from dialoom.graphs import Chart, Estimate, FittedLine, Series, Table
from dialoom.graphs.tables.table import ChartKind, build_charts
from dialoom.runs.report import Report, draw, format_cell, render_markdown
from dialoom.runs.report.report import render_page


def chart(*labels: str) -> Chart:
    """Return a chart of levels with intervals and a fitted line for each label."""
    return Chart(
        name="levels",
        title="Levels by round",
        x_label="round",
        y_label="level, 1 to 5",
        y_range=(1, 5),
        notes=["Bands: intervals.", "A warning. " * 30],
        series=[
            Series(
                label=label,
                x=[1, 2, 3, 4],
                y=[2.0, None, 3.0 + 0.1 * number, 5.0],
                low=[1.5, None, 2.5, 4.5],
                high=[2.5, None, 3.5, 5.0],
                line=FittedLine(1.0, 0.9, "slope 0.9"),
            )
            for number, label in enumerate(labels)
        ],
    )


def test_equal_charts_are_equal_bytes() -> None:
    first, again = draw(chart("model-a", "model-b")), draw(chart("model-a", "model-b"))
    assert first == again
    assert set(first) == {"png", "svg", "pdf"}
    assert first["png"].startswith(b"\x89PNG")
    assert first["pdf"].startswith(b"%PDF") and b"CreationDate" not in first["pdf"]
    assert b"Matplotlib" not in first["png"] and b"<dc:date>" not in first["svg"]
    assert first != draw(chart("model-a", "model-c"))


def test_chart_shows_all_labels() -> None:
    labels = ["model-a", "_underscored", "$5 or $6", "100 % {x}"]
    svg = draw(chart(*labels))["svg"].decode()
    said = re.findall(r"<!-- (.*?) -->", svg)
    for label in labels:
        assert f"{label}   slope 0.9" in said
    assert {"Levels by round", "round", "level, 1 to 5", "Bands: intervals."} <= set(said)
    assert " ".join(text for text in said if "A warning." in text).count("A warning.") == 30, "wrapped, not cut"


def test_chart_grows_with_its_legend() -> None:
    few, many = (_size(draw(chart(*(f"model {n}" for n in range(count))))["png"]) for count in (1, 20))
    assert few[0] == many[0]
    assert few[1] < many[1]


@pytest.mark.parametrize(
    "series",
    [
        [],
        [Series("no points", [], []), Series("none known", [1, 2], [None, None])],
        [Series("one point", [1], [3.0], [2.0], [4.0]), Series("many", range(60), [float(n) for n in range(60)])],
    ],
)
def test_odd_series_are_drawn(series: list[Series]) -> None:
    assert draw(Chart("odd", "Odd", "x", "y", series))["png"]


@pytest.mark.parametrize("kind", ["points", "bars", "stacked"])
def test_points_and_bars_are_labelled_with_names(kind: ChartKind) -> None:
    made = chart("model-a", "model-b")
    made.kind, made.names = kind, ["alone", "$5 or $6", "in company", "last"]
    drawn = draw(made)
    assert set(made.names) <= set(re.findall(r"<!-- (.*?) -->", drawn["svg"].decode()))


def test_report_is_written_with_its_charts(tmp_path: Path) -> None:
    table = Table("levels", "Levels", ["model", "IR"], [["a|b", Estimate(4, 0.25449, 0.2, 0.3)]], ["A note."])
    table.decimals = {"IR": 3}
    paths = Report("My run", [table], [chart("model-a")]).write(tmp_path / "out")
    assert [path.name for path in paths] == [
        "report.md",
        "report.html",
        "report.tex",
        "levels.csv",
        "levels.png",
        "levels.svg",
        "levels.pdf",
    ]
    assert "\\toprule" in paths[2].read_text()
    written = paths[0].read_text()
    assert written == render_markdown([table], "My run", [chart("model-a")])
    assert written.startswith("# My run\n\n![Levels by round](levels.png)\n\nBands: intervals.\n")
    assert "| a\\|b | 0.254 [0.200, 0.300] n=4 |" in written
    assert paths[3].read_text().splitlines()[1] == "a|b,0.25449,0.2,0.3,4"


def test_table_without_rows_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("faults", "What is wrong", ["role", "fault"], [], ["Looked at: 4."])
    print_tables([table])
    shown = [render_page([table], "My run"), render_markdown([table], "My run"), capsys.readouterr().out]
    assert all(
        "nothing" in each and "Looked at: 4." in each and "fault" not in each.split("What is wrong")[-1]
        for each in shown
    )


def test_figures_have_as_many_decimals_as_asked_for() -> None:
    assert format_cell(0.12345, "IR") == "0.12"
    assert format_cell(-0.001, "kappa") == "0.00", "a value that rounds to zero has no sign"
    assert format_cell(0.12345, "IR", 3) == "0.123"
    assert format_cell(0.12345, "TCR %") == "12.3"
    assert format_cell(0.12345, "TCR %", 0) == "12"
    assert format_cell(Estimate(1234, 0.5, 0.25, 0.75), "TCR %") == "50.0 [25.0, 75.0] n=1,234"
    assert format_cell(None, "IR", 3) == "–"


def _size(png: bytes) -> tuple[int, int]:
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_charted_columns_are_drawn_by_scale_and_over_turns() -> None:
    table = Table("scores", "Scores", ["setting", "kind", "TCR %", "P", "tone", "P turn 1", "P turn 2"])
    table.charted, table.scales = ["TCR %", "P", "tone"], {"P": (1, 4), "tone": (1, 4)}
    share, tone = Estimate(4, 0.25, 0.1, 0.4), Estimate(4, 2.0, 1.5, 2.5)
    table.rows = [["base", "single", share, tone, None, None, None], ["base", "multi", None, 3.0, tone, tone, tone]]
    shares, scores = build_charts(table)
    assert (shares.y_range, [*shares.names]) == ((0, 100), ["single", "multi"])
    (series,) = shares.series
    assert (series.label, [*series.y], [*series.low]) == ("base", [25.0, None], [10.0, None])
    assert (scores.y_range, [*scores.names]) == ((1, 4), ["base single", "base multi"])
    assert {each.label: [*each.y] for each in scores.series} == {"P": [2.0, 3.0], "tone": [None, 2.0]}
    table.columns = ["setting", "kind", "TCR %", "level", "tone", "P turn 1", "P turn 2"]
    (lines,) = build_charts(table, ["P"])
    assert (lines.kind, [[*each.y] for each in lines.series]) == ("lines", [[None, None], [2.0, 2.0]])
    assert set(draw(lines)) == set(draw(shares)) == {"png", "svg", "pdf"}

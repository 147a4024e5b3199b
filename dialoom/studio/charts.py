"""A report's charts as options of Apache ECharts; hovering shows a value, its interval and its count.

Texts are drawn on the canvas (`richText`) and never put into the page as HTML. The options contain no functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dialoom.graphs import Chart, Estimate, Series, Table
from dialoom.runs.report import format_cell
from dialoom.text import format_number

_COLOURS = ("#2a8c82", "#d0743c", "#5b7fc7", "#b8589a", "#8a9a3b", "#c2a01e", "#7a7d84")
"""Colours that are readable on light and dark backgrounds; lightness and symbols distinguish them for any colour
vision."""
_SYMBOLS = ("circle", "rect", "triangle", "diamond", "roundRect", "pin", "arrow")
_GREY = "#85888f"
_FAINT = "rgba(133, 136, 143, 0.25)"
_ROW_HEIGHT = 26
"""Height of a row of a small chart, in pixels."""

_MAX_LABELLED_VALUES = 10
"""The maximum number of values of a scale for which an axis labels every value."""


def build_options(chart: Chart) -> dict[str, Any]:
    """Return a chart as ECharts options."""
    is_named = bool(chart.names)
    return {
        "animation": False,
        "color": [*_COLOURS],
        "aria": {"enabled": True},
        "textStyle": {"fontFamily": "system-ui, sans-serif", "color": _GREY},
        "grid": {"left": 56, "right": 16, "top": 16, "bottom": 72},
        "legend": {"bottom": 0, "type": "scroll", "textStyle": {"color": _GREY}, "icon": "roundRect"},
        "tooltip": {"trigger": "item", "renderMode": "richText", "confine": True},
        "xAxis": {
            "type": "category" if is_named else "value",
            **(
                {"data": [*chart.names]}
                if is_named
                else {"min": "dataMin", "max": "dataMax", **_build_tick_options(chart.series)}
            ),
            "name": chart.x_label,
            **_AXIS,
        },
        "yAxis": {
            "type": "value",
            "name": chart.y_label,
            **_build_range_options(chart.y_range),
            **_AXIS,
            "nameGap": 40,
        },
        "series": [part for number, series in enumerate(chart.series) for part in _build_series(chart, series, number)],
    }


_AXIS: dict[str, Any] = {
    "nameLocation": "middle",
    "nameGap": 30,
    "nameTextStyle": {"color": _GREY},
    "axisLabel": {"color": _GREY, "hideOverlap": True},
    "axisLine": {"lineStyle": {"color": _GREY}},
    "splitLine": {"lineStyle": {"color": _FAINT}},
}


def _build_tick_options(series: Sequence[Series]) -> dict[str, Any]:
    """Return axis settings: whole-number labels for whole numbers."""
    return {"minInterval": 1} if all(float(x).is_integer() for each in series for x in each.x) else {}


def _build_range_options(scale: tuple[float, float] | None) -> dict[str, Any]:
    """Return an axis from one end of a scale to the other; if the scale has few values, each is labelled."""
    if scale is None:
        return {}
    low, high = scale
    has_few_values = all(float(end).is_integer() for end in scale) and 1 < high - low <= _MAX_LABELLED_VALUES
    return {"min": low, "max": high, **({"interval": 1} if has_few_values else {})}


def _build_series(chart: Chart, series: Series, number: int) -> list[dict[str, Any]]:
    """Return the parts of a series: its points, its intervals, and the fitted line."""
    colour = _COLOURS[number % len(_COLOURS)]
    is_bar = chart.kind in ("bars", "stacked")
    main: dict[str, Any] = {
        "name": series.label,
        "type": "bar" if is_bar else "scatter" if chart.kind == "points" else "line",
        "itemStyle": {"color": colour},
        "symbol": _SYMBOLS[number % len(_SYMBOLS)],
        "symbolSize": 8,
        "data": [_build_point(chart, series, index) for index in range(len(series.x))],
    }
    if chart.kind == "stacked":
        main["stack"] = "all"
    if is_bar:
        main["barMaxWidth"] = 36
    return [main, *_build_interval_lines(series, colour, is_bar), *_build_fitted_line(series, colour)]


def _build_point(chart: Chart, series: Series, index: int) -> dict[str, Any]:
    x, y = series.x[index], series.y[index]
    x_text = chart.names[int(x)] if chart.names else f"{x:g}"
    interval = (series.low[index], series.high[index]) if series.low and series.high else (None, None)
    lines = [f"{series.label}, {x_text}", _format_value(y, *interval)]
    if y is not None and series.n:
        lines.append(f"n = {series.n[index]:,}")
    return {"value": [x_text if chart.names else x, y], "tooltip": {"formatter": _escape("\n".join(lines))}}


def _build_interval_lines(series: Series, colour: str, is_bar: bool) -> list[dict[str, Any]]:
    """Return lines from the lower to the upper ends of intervals; none for bars, because bars share positions."""
    if is_bar or not (series.low and series.high):
        return []
    intervals = [
        [{"coord": [x, low]}, {"coord": [x, high]}]
        for x, low, high in zip(series.x, series.low, series.high, strict=True)
        if low is not None and high is not None
    ]
    lines = {"symbol": "none", "silent": True, "lineStyle": {"color": colour, "type": "solid", "opacity": 0.45}}
    padding = _build_padding([point["coord"] for pair in intervals for point in pair])
    return [{"type": "line", "data": [], "markLine": {**lines, "data": intervals}}, padding]


def _build_padding(points: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return an invisible series that extends the axes to the ends of intervals."""
    return {"type": "scatter", "symbolSize": 0, "silent": True, "data": [*points], "tooltip": {"show": False}}


def _build_fitted_line(series: Series, colour: str) -> list[dict[str, Any]]:
    if series.line is None or not series.x:
        return []
    return [
        {
            "name": f"{series.label}: {series.line.label}",
            "type": "line",
            "symbol": "none",
            "silent": True,
            "lineStyle": {"color": colour, "type": "dashed", "width": 1},
            "data": [[x, series.line.intercept + series.line.slope * x] for x in [min(series.x), max(series.x)]],
        }
    ]


def build_small_chart(table: Table, column: int, keys: Sequence[str]) -> dict[str, Any]:
    """Return a chart of one column of estimates: a point and its interval for each row.

    Args:
        table: The table.
        column: The index of the column.
        keys: The name of each row.
    """
    name = table.columns[column]
    scale = table.scales.get(name)
    factor = 100 if name.endswith("%") else 1
    points, intervals = [], []
    for key, row in zip(keys, table.rows, strict=True):
        cell, title = list(table.shown(row))[column]
        if not isinstance(cell, Estimate):
            continue
        low, high = cell.low, cell.high
        shown = [key, f"{name}: {format_cell(cell, title, table.decimals.get(name))}"]
        points.append({"value": [factor * cell.mean, key], "tooltip": {"formatter": _escape("\n".join(shown))}})
        if low is not None and high is not None:
            intervals.append([{"coord": [factor * low, key]}, {"coord": [factor * high, key]}])
    lines = {"symbol": "none", "silent": True, "lineStyle": {"color": _COLOURS[0], "type": "solid", "width": 2}}
    return {
        "animation": False,
        "aria": {"enabled": True},
        "textStyle": {"fontFamily": "system-ui, sans-serif", "color": _GREY},
        "grid": {"left": 160, "right": 20, "top": 4, "bottom": 26},
        "tooltip": {"trigger": "item", "renderMode": "richText", "confine": True},
        "xAxis": {
            "type": "value",
            "splitNumber": 3,
            **_AXIS,
            **(
                {"min": 0, "max": 100, "interval": 25}
                if factor == 100
                else _build_range_options(scale) or {"scale": True}
            ),
        },
        "yAxis": {
            "type": "category",
            "data": [*dict.fromkeys(keys)],
            "inverse": True,
            "axisTick": {"show": False},
            "axisLine": {"show": False},
            "axisLabel": {"color": _GREY, "width": 140, "overflow": "truncate", "margin": 10},
        },
        "series": [
            {
                "type": "scatter",
                "symbolSize": 9,
                "itemStyle": {"color": _COLOURS[0]},
                "data": points,
                "markLine": {**lines, "data": intervals},
            },
            _build_padding([point["coord"] for pair in intervals for point in pair]),
        ],
    }


def compute_height(rows: int) -> int:
    """Return the height of a small chart in pixels."""
    return 44 + _ROW_HEIGHT * max(rows, 1)


def _format_value(y: float | None, low: float | None, high: float | None) -> str:
    if y is None:
        return "none"
    return (
        format_number(y)
        if low is None or high is None
        else f"{format_number(y)} [{format_number(low)}, {format_number(high)}]"
    )


def _escape(text: str) -> str:
    """Replace the characters of a text that the library would read as a placeholder or a style."""
    return text.replace("{", "(").replace("}", ")").replace("|", "/")

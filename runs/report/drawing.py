"""Charts as PNG, SVG and PDF, drawn with matplotlib: an optional dependency whose import is deferred."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dialoom.graphs import Chart, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSTALL_COMMAND = "pip install 'dialoom[plots]'"

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, distinguishable with any colour vision; without their yellow, which is pale on white."""
_MARKERS = "os^Dv"
"""Markers of series.

Their number and the number of colours have no common factor, so that all combinations of the two occur before one is
repeated.
"""

_STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.labelcolor": "#222222",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "pdf.fonttype": 42,  # keep text searchable and editable in PDF programs
    "svg.hashsalt": "dialoom",  # derive ids in the file from its content, so that they are not random
}
_GREY = "#555555"
_MAX_TICKS = 20
_TICK_LABEL_SHARE = 0.04
"""The share of the axis that a tick label needs."""
_BAR_GROUP_WIDTH = 0.7
"""The total width of the bars at one position of the axis; positions are 1 apart."""
_MIN_POSITIONS = 4
"""Minimum number of positions on the axis, so that a single bar does not fill the plot."""
_MAX_NAME_CHARACTERS = 20
"""Maximum number of characters per line in the name of an axis position."""
_CHARACTER_INCHES, _NAME_LINE_INCHES = 0.08, 0.3
"""The mean width of a character, and the height of names that are written horizontally, in inches."""

# The dimensions of a page and of its parts, in inches.
_WIDTH, _PLOT_HEIGHT = 8.0, 4.2
_LEFT, _RIGHT, _TOP = 0.75, 0.25, 0.55
_AXIS_LABELS, _LEGEND_LINE, _GAP, _NOTE_LINE, _BOTTOM = 0.65, 0.21, 0.06, 0.17, 0.15
_MAX_NOTE_CHARACTERS = 118
"""Maximum number of characters per line in a note."""


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    try:
        import_module("matplotlib")
    except ModuleNotFoundError:
        return False
    return True


IMAGE_KINDS = ("png", "svg", "pdf")
"""The kinds of image files."""


def draw(chart: Chart, kinds: Sequence[str] = IMAGE_KINDS) -> dict[str, bytes]:
    """Return the contents of image files of a chart, by kind (`png`, `svg`, `pdf`); equal charts give equal bytes.

    Raises:
        ModuleNotFoundError: If matplotlib is not installed.
    """
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    canvases = {"png": FigureCanvasAgg, "svg": FigureCanvasSVG, "pdf": FigureCanvasPdf}
    metadata: dict[str, dict[str, None]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    images: dict[str, bytes] = {}
    with matplotlib.style.context(["default", _STYLE]):  # independent of the user's own style
        for kind in kinds:
            file = io.BytesIO()
            figure = _draw_figure(chart)
            canvases[kind](figure)
            figure.savefig(file, format=kind, dpi=160, metadata=metadata[kind])
            images[kind] = file.getvalue()
    return images


def _draw_figure(chart: Chart) -> Figure:
    """Draw a chart; its page has, from the top: title, plot, its labels, legend, notes."""
    from matplotlib.figure import Figure

    notes = [line for note in chart.notes for line in textwrap.wrap(note, _MAX_NOTE_CHARACTERS)]
    labels = _AXIS_LABELS + _extra_name_height(chart)
    below = labels + len(chart.series) * _LEGEND_LINE + _GAP + len(notes) * _NOTE_LINE + _BOTTOM
    page_height = _TOP + _PLOT_HEIGHT + below
    figure, left = Figure(figsize=(_WIDTH, page_height)), _LEFT / _WIDTH
    axes = figure.add_axes((left, below / page_height, 1 - (_LEFT + _RIGHT) / _WIDTH, _PLOT_HEIGHT / page_height))
    if chart.kind == "stacked":
        handles = _draw_stacked_bars(axes, chart.series)
    else:
        plot = _draw_bars if chart.kind == "bars" else _draw_points
        handles = [plot(axes, chart, number) for number in range(len(chart.series))]
    _format_axes(axes, chart)
    _draw_legend(axes, chart, handles, labels)
    for number, note in enumerate(notes, start=1):
        height = (_BOTTOM + (len(notes) - number) * _NOTE_LINE) / page_height
        figure.text(left, height, note, fontsize=8, color=_GREY, va="bottom", parse_math=False)
    return figure


def _extra_name_height(chart: Chart) -> float:
    """Return the additional height for names that are written vertically to avoid overlaps; 0 if they need not be."""
    longest = max((len(line) for name in chart.names for line in textwrap.wrap(name, _MAX_NAME_CHARACTERS)), default=0)
    needed = longest * _CHARACTER_INCHES * max(len(chart.names), _MIN_POSITIONS)
    return 0.0 if needed <= _WIDTH - _LEFT - _RIGHT else max(0.0, longest * _CHARACTER_INCHES - _NAME_LINE_INCHES)


def _draw_bars(axes: Axes, chart: Chart, number: int) -> Any:
    """Draw the bars of one of several series, which stand side by side, with their intervals."""
    series, width = chart.series[number], _BAR_GROUP_WIDTH / len(chart.series)
    y = _mark_missing(series.y)
    places = [place - _BAR_GROUP_WIDTH / 2 + (number + 0.5) * width for place in series.x]
    bars = axes.bar(places, y, 0.92 * width, color=_COLOURS[number % len(_COLOURS)], hatch=_hatch(number), linewidth=0)
    if series.low and series.high:
        for place, height, low, high in zip(
            places, y, _mark_missing(series.low), _mark_missing(series.high), strict=True
        ):
            if not any(map(math.isnan, (low, high))):
                # By rounding, a mean of 1 may be above its interval.
                errors = [[max(0.0, height - low)], [max(0.0, high - height)]]
                axes.errorbar(place, height, yerr=errors, fmt="none", ecolor="#333333", capsize=2.5)
    return bars


def _draw_stacked_bars(axes: Axes, all_series: Sequence[Series]) -> list[Any]:
    """Draw stacked bars, the first series lowest."""
    heights: dict[float, float] = {}
    handles = []
    for number, series in enumerate(all_series):
        y = [value or 0.0 for value in series.y]
        bottom = [heights.get(place, 0.0) for place in series.x]
        colour = _COLOURS[number % len(_COLOURS)]
        handles.append(axes.bar(series.x, y, _BAR_GROUP_WIDTH, bottom, color=colour, hatch=_hatch(number), linewidth=0))
        heights |= {place: low + value for place, low, value in zip(series.x, bottom, y, strict=True)}
    return handles


def _hatch(number: int) -> str:
    """Return the hatch that distinguishes bars once the colours repeat."""
    return ("", "//", "..", "xx")[number // len(_COLOURS) % 4]


def _draw_points(axes: Axes, chart: Chart, number: int) -> Any:
    """Draw the band, fitted line and points of one series; return its legend handle."""
    series, colour = chart.series[number], _COLOURS[number % len(_COLOURS)]
    if series.low and series.high:
        axes.fill_between(
            series.x, _mark_missing(series.low), _mark_missing(series.high), color=colour, alpha=0.13, linewidth=0
        )
    if series.line is not None and series.x:
        ends = [min(series.x), max(series.x)]
        heights = [series.line.intercept + series.line.slope * end for end in ends]
        axes.plot(ends, heights, color=colour, linewidth=1.2, linestyle=(0, (5, 4)), alpha=0.9, zorder=2)
    (points,) = axes.plot(
        series.x,
        _mark_missing(series.y),
        color=colour,
        linewidth=0 if chart.kind == "points" else 1.8,
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=5.5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        clip_on=False,
        zorder=3,
    )
    return points


def _mark_missing(values: Sequence[float | None]) -> list[float]:
    """Replace missing values by NaN, which makes a gap in the line."""
    return [float("nan") if value is None else value for value in values]


def _format_axes(axes: Axes, chart: Chart) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(chart.title, loc="left", fontsize=13, fontweight="bold", pad=12, parse_math=False)
    axes.set_xlabel(chart.x_label, parse_math=False)
    axes.set_ylabel(chart.y_label, parse_math=False)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    if chart.y_range is not None:
        axes.set_ylim(*chart.y_range)
    places = sorted({place for series in chart.series for place in series.x}, reverse=True)
    if chart.names:
        axes.set_xticks(range(len(chart.names)), [textwrap.fill(name, _MAX_NAME_CHARACTERS) for name in chart.names])
        axes.tick_params(axis="x", length=0, labelrotation=90 if _extra_name_height(chart) else 0)
        middle, half = (len(chart.names) - 1) / 2, max(len(chart.names), _MIN_POSITIONS) / 2
        axes.set_xlim(middle - half, middle + half)
        for text in axes.get_xticklabels():
            text.set_parse_math(False)
    elif chart.kind != "points" and len(places) <= _MAX_TICKS:
        # The labels of ticks must not overlap; they are chosen from the right, so that the greatest is included.
        chosen: list[float] = []
        for place in places:
            if not chosen or chosen[-1] - place >= (places[0] - places[-1]) * _TICK_LABEL_SHARE:
                chosen.append(place)
        axes.set_xticks(chosen[::-1])
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=all(float(place).is_integer() for place in places)))


def _draw_legend(axes: Axes, chart: Chart, handles: list[Any], labels: float) -> None:
    """Draw the legend below the axis, with a line for each series."""
    if not handles:
        return
    anchor = (0.0, -labels / _PLOT_HEIGHT + 0.02)
    # The labels are set afterwards, as matplotlib omits labels that begin with an underscore.
    legend = axes.legend(
        handles,
        ["label"] * len(handles),
        loc="upper left",
        bbox_to_anchor=anchor,
        frameon=False,
        borderaxespad=0,
        borderpad=0,
        labelspacing=0.45,
    )
    for text, series in zip(legend.get_texts(), chart.series, strict=True):
        label = series.line.label if series.line else ""
        text.set_parse_math(False)
        text.set_text(f"{series.label}   {label}" if label else series.label)

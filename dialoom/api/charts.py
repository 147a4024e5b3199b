"""Charts of data frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialoom.graphs import Chart, Estimate, Series, Table, Tally
from dialoom.graphs.tables.table import Cell, build_charts
from dialoom.outputs import binary_output
from dialoom.runs.errors import RunError
from dialoom.runs.report import INSTALL_COMMAND, can_draw
from dialoom.runs.report.drawing import IMAGE_KINDS, draw
from dialoom.settings import PathLike

if TYPE_CHECKING:
    import pandas

_Estimates = Mapping[tuple[Any, ...], Mapping[str, Estimate | None]]


def chart(
    frame: pandas.DataFrame,
    values: str | Sequence[str],
    path: PathLike,
    *,
    by: str | Sequence[str] = (),
    over: str | None = None,
    title: str = "",
) -> Path:
    """Draw the means of a data frame's columns with their 95 % intervals; needs the extra `plots`.

    For the intervals, rows with the same `id` (a scenario's turns, judges or trials) count as one unit. Empty cells are
    ignored.

    Example:
        >>> frame = dialoom.open_run("run.db").frame()
        >>> dialoom.chart(frame, "personalization.assistant", "scores.svg", by="setting").name
        'scores.svg'

    Args:
        frame: The frame, such as `Run.frame` returns.
        values: The column of numbers or verdicts, or several such columns.
        path: The file: `.png`, `.svg` or `.pdf`.
        by: Columns to group the rows by.
        over: A column of numbers for the horizontal axis. With it, lines are drawn instead of bars.
        title: The title; by default the columns' names.

    Returns:
        The file.

    Raises:
        RunError: If matplotlib is not installed, a column is missing or holds no numbers, or the file has another
            suffix.
        OutputError: If the file cannot be written.
    """
    target = Path(path)
    suffix = target.suffix[1:].lower()
    if suffix not in IMAGE_KINDS:
        raise RunError(f"path must end in .png, .svg or .pdf, got {str(path)!r}", setting="path")
    if not can_draw():
        raise RunError(f"matplotlib is not installed: {INSTALL_COMMAND}")
    names, groups = ([each] if isinstance(each, str) else [*each] for each in (values, by))
    if over is not None and over in groups:
        raise RunError(f"over: {over!r} is also in by; give it only once", setting="over")
    estimates = _estimate_means(frame, names, [*groups, *([] if over is None else [over])])
    heading = title or ", ".join(names) + (f" by {', '.join(groups)}" if groups else "")
    figure = (
        _build_bar_chart(estimates, names, groups, heading)
        if over is None
        else _build_line_chart(estimates, names, over, heading)
    )
    with binary_output(target) as file:
        file.write(draw(figure, [suffix])[suffix])
    return target


def _estimate_means(frame: pandas.DataFrame, names: Sequence[str], groups: Sequence[str]) -> _Estimates:
    """Return the estimated mean of each column for each group, with groups in the order of the frame's rows."""
    if missing := [each for each in (*names, *groups) if each not in frame.columns]:
        raise RunError(f"the frame has no column {missing[0]!r}; it has {', '.join(map(str, frame.columns))}")
    units: list[Hashable] = [*frame["id"]] if "id" in frame.columns else [None] * len(frame)
    repeated = {unit for unit in units if unit is not None} if len({*units}) < len(units) else set()
    keys = [*zip(*(frame[each] for each in groups), strict=True)] if groups else [()] * len(frame)
    cells: dict[tuple[Any, ...], dict[str, list[tuple[float, Hashable]]]] = defaultdict(lambda: defaultdict(list))
    for name in names:
        for key, unit, value in zip(keys, units, frame[name], strict=True):
            if value is None or value != value or any(part is None or part != part for part in key):  # NaN
                continue
            try:
                cells[key][name].append((float(value), unit if unit in repeated else None))
            except (TypeError, ValueError) as error:
                raise RunError(f"column {name!r} must hold numbers or verdicts, got {value!r}") from error
    if not cells:
        raise RunError(f"there is nothing to draw: no values for {', '.join(names)}")
    return {key: {name: _estimate_mean(by_name[name]) for name in names} for key, by_name in cells.items()}


def _estimate_mean(cells: Sequence[tuple[float, Hashable]]) -> Estimate | None:
    """Return the estimated mean of values, each paired with its unit; if all are 0 or 1, they count as verdicts."""
    tally = Tally()
    are_verdicts = all(value in (0, 1) for value, _ in cells)
    for value, unit in cells:
        tally.add(bool(value) if are_verdicts else value, unit, None if unit is None else str(unit))
    return tally.estimate()


def _build_bar_chart(estimates: _Estimates, names: Sequence[str], groups: Sequence[str], title: str) -> Chart:
    rows: list[Sequence[Cell]] = [
        [*map(str, key), *(by_name[name] for name in names)] for key, by_name in estimates.items()
    ]
    return build_charts(Table("chart", title, [*groups, *names], rows, charted=names))[0]


def _build_line_chart(estimates: _Estimates, names: Sequence[str], over: str, title: str) -> Chart:
    """Return a chart with a line for each column and group. The last part of each key in `found` is the x value."""
    lines: dict[str, dict[float, Estimate | None]] = defaultdict(dict)
    for (*key, x), by_name in estimates.items():
        if not isinstance(x, int | float) and not hasattr(x, "__float__"):
            raise RunError(f"column {over!r} must hold numbers, got {x!r}", setting="over")
        for name in names:
            label = " ".join([*map(str, key), *([name] if len(names) > 1 or not key else [])])
            lines[label][float(x)] = by_name[name]
    figure = Chart("chart", title, over, names[0] if len(names) == 1 else "mean")
    figure.series += [Series.of(label, sorted(line), [line[x] for x in sorted(line)]) for label, line in lines.items()]
    return figure

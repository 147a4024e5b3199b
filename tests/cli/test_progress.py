"""What is seen while a run is under way: on a narrow terminal, too, what matters stays."""

from __future__ import annotations

import io

import pytest

from dialoom.cli.console import HarmlessConsole
from dialoom.cli.progress import ProgressDisplay, Standing
from dialoom.roles.gateway.limits import LimitState
from dialoom.runs.store import Usage

USAGE = Usage(calls=9000, input_tokens=1_200_000, output_tokens=34_000, cost=1.5)
LIMITS = {"openai/gpt-4o-mini": LimitState(limit=64, in_flight=16, waiting=0, throttled=3, paused=12.0)}
STANDING = Standing(120, 7, 4800, 11, 60.0, USAGE, LIMITS)


def _drawn(width: int, *notices: str) -> list[str]:
    """The lines of a terminal of that width."""
    console = HarmlessConsole(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    display = ProgressDisplay("playing", STANDING.total, console, lambda: notices)
    display.show(STANDING.finished, STANDING.figures())
    with console.capture() as captured:
        console.print(display.get_renderable())
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_rate_troubles_and_time_left_stay_on_every_terminal(width: int) -> None:
    """One line; tokens, cost and calls in flight are there where there is room."""
    (line,) = _drawn(width)
    assert len(line) <= width
    for part in ("120/4800", "2.0/s", "7 failed", "11 unparsed", "0:39:00 left"):
        assert part in line
    assert ("$1.50" in line, "1,234k tokens" in line) == (width >= 80, width >= 120)
    assert ("openai/gpt-4o-mini 16/64 in flight" in line) == (width == 200)


def test_what_the_work_waits_for_stands_below_the_line() -> None:
    """Each in one line, cut where the terminal ends."""
    lines = _drawn(50, "waiting for openai.com", "a call to openai/gpt-4o-mini has been under way for 4m10s")
    assert lines[1] == "  waiting for openai.com"
    assert lines[2].startswith("  a call to openai/gpt-4o-mini has")
    assert len(lines) == 3
    assert len(lines[2]) == 50


def test_no_time_left_is_told_before_anything_is_finished() -> None:
    """A rate of nothing leads nowhere."""
    assert "-:--:-- left" in Standing(0, 0, 10, 0, 5.0, Usage(), {}).figures()

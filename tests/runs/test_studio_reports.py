"""Reports that the studio computes in the background: shared, told of, cancelled and cached."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from dialoom import Report, Run, open_run
from dialoom.studio.watching import AbandonedError, Computation, Reports
from tests.conftest import MadeOnce
from tests.runs.stepping.played import play


class Browser:
    """A viewer that goes away after so many questions; it is asked at each scenario that is read."""

    def __init__(self, stays: int = 1_000_000) -> None:
        self.asked = 0
        self._stays = stays
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    @property
    def is_deleted(self) -> bool:
        """Whether it is gone; the reader waits here for as long as the test wants."""
        if threading.current_thread() is not threading.main_thread():
            self.may_go_on.wait()
        self.asked += 1
        return self.asked > self._stays


@pytest.fixture
def run(made_once: MadeOnce) -> Run:
    """A run with several finished scenarios."""
    return open_run(play(made_once, "aloe-eval"))


async def test_a_report_is_computed_once_for_all_viewers_and_kept(run: Run) -> None:
    """The second who asks joins the first; who asks afterwards gets the report at once."""
    reports, browser = Reports(), Browser()
    browser.may_go_on.clear()
    first = await reports.find([run], None, None)
    assert isinstance(first, Computation)
    first.join(browser)
    second = await reports.find([run], None, None)
    browser.may_go_on.set()
    assert second is first
    found = await first.result()
    assert first.read >= len(run) and str(found) == str(run.report())
    await asyncio.sleep(0)
    assert isinstance(await reports.find([run], None, None), Report)


async def test_a_report_that_nobody_waits_for_is_abandoned(run: Run) -> None:
    """Reading ends with the next scenario; who asks then begins anew."""
    reports, browser = Reports(), Browser(stays=1)
    computation = await reports.find([run], None, None)
    assert isinstance(computation, Computation)
    computation.join(browser)
    with pytest.raises(AbandonedError):
        await computation.result()
    assert computation.read == 2
    another = await reports.find([run], None, None)
    assert isinstance(another, Computation) and another is not computation
    another.join(Browser())
    assert isinstance(await another.result(), Report)


async def test_a_run_that_has_changed_is_reported_anew(run: Run) -> None:
    """The state of the file is part of the question, and so are judgements and condition."""
    reports = Reports()
    for asked in range(2):
        computation = await reports.find([run], None, None)
        assert isinstance(computation, Computation), asked
        computation.join(Browser())
        await computation.result()
        await asyncio.sleep(0)
        _touch(run.path)
    assert isinstance(await reports.find([run], None, "state == 'done'"), Computation)


def _touch(path: Path) -> None:
    path.touch()

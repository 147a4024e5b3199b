"""The plugin for pytest: saved cases (`*.case.json`) are tests, and a fixture plays a small study."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dialoom import Run

LIVE, REQUIRE, ALLOW = "dialoom_live", "dialoom_require", "dialoom_allow"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the command-line options and settings for saved cases."""
    parser.addini(LIVE, "Roles that reply again in saved cases (*.case.json); by default none", "args")
    parser.addini(
        REQUIRE, "Requirements on the scores of saved cases, one per line, such as: resolved >= 100%", "linelist"
    )
    parser.addini(ALLOW, "Conditions to accept, which otherwise fail a requirement: offline, missing", "args")


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.Collector | None:
    """Collect a saved case."""
    return _CaseFile.from_parent(parent, path=file_path) if file_path.name.endswith(".case.json") else None


class _CaseFile(pytest.File):
    """A saved case, as a file that pytest collects."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the one test of the file."""
        yield _CaseItem.from_parent(self, name="replay")


class _CaseItem(pytest.Item):
    """A test that a replayed case has its recorded result, or meets the requirements."""

    def runtest(self) -> None:
        """Play the case.

        Raises:
            AssertionError: If the result differs from the recorded one, or a requirement is not met.
        """
        from dialoom.api.expecting import check_replay

        live, required, allowed = (self.config.getini(name) for name in (LIVE, REQUIRE, ALLOW))
        check_replay(self.path, live, required, allowed, self.config.rootpath)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the message of a failed case or of a dialoom error, or the traceback of any other error."""
        is_expected = isinstance(excinfo.value, AssertionError) or _is_dialoom_error(excinfo.value)
        return str(excinfo.value) if is_expected else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the file and the name for pytest's report."""
        return self.path, None, self.path.name


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Show a dialoom error at the test's line, without dialoom's own lines, unless full tracebacks are requested."""
    error = None if call.excinfo is None else call.excinfo.value
    if error is not None and _is_dialoom_error(error) and not item.config.getoption("fulltrace"):
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            if str(traceback.tb_next.tb_frame.f_globals.get("__name__")).partition(".")[0] == "dialoom":
                traceback.tb_next = None
                error.__cause__, error.__suppress_context__ = None, True
            traceback = traceback.tb_next


def _is_dialoom_error(error: BaseException) -> bool:
    """Return whether an error is one of those that dialoom raises on purpose."""
    errors = sys.modules.get("dialoom.errors")  # not imported before dialoom is used
    return errors is not None and isinstance(error, errors.DialoomError)


@pytest.fixture
def dialoom_run(tmp_path: Path) -> Callable[..., Run]:
    """Return a function that plays a recipe or a study in a temporary folder: `dialoom_run("support.toml", model=...)`.

    Its arguments are those of `dialoom.play`, without the path; it returns the run.
    """

    def play(recipe: Any, **settings: Any) -> Run:
        import dialoom

        return dialoom.play(recipe, path=tmp_path / f"{len(list(tmp_path.glob('*.db')))}.db", **settings)

    return play

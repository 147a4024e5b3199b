"""The work of `dialoom scorecard`: the API's operation under a progress display, and its result."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialoom import ascorecard, open_scorecard
from dialoom.graphs.suites import DEFAULT_SUITE, shipped_suites
from dialoom.inputs import read_text
from dialoom.runs.errors import RunError
from dialoom.runs.report import HOW_TO_INSTALL, can_draw
from dialoom.runs.scorecard import PROVENANCE_TABLES, Scorecard

from .errors import EXIT_DONE, EXIT_SOME_FAILED, EXIT_STOPPED
from .playing import carried_out
from .settings import judge_settings, named_models
from .tables import print_tables
from .terminal import say
from .watcher import Watcher


def make_scorecard(folder: Path, suite: str | None, is_full: bool, retry_failed: bool, flags: Mapping[str, Any]) -> int:
    """Play the rest of a scorecard and print its figures; return the exit code.

    Args:
        folder: Where it is kept.
        suite: A name or a file; by default the shipped one.
        is_full: Whether all of the suite is played.
        retry_failed: Try failed scenarios again.
        flags: The values of the other flags.
    """
    settings = judge_settings(flags)
    every, settings["models"] = named_models(settings)
    again = f"dialoom {shlex.join(sys.argv[1:])}"
    watcher = Watcher(
        settings, again=lambda _: again, retry=lambda _: f"{again} --retry-failed", log_format=flags["log_format"]
    )
    work = ascorecard(
        folder,
        suite=suite or DEFAULT_SUITE,
        size="full" if is_full else "quick",
        model=every[-1] if every else None,
        retry_failed=retry_failed,
        **settings,
    )
    card = carried_out(work, watcher)
    _show(card)
    _say_written(card, folder)
    if card.pending:
        return watcher.exit_code() or EXIT_STOPPED
    return EXIT_SOME_FAILED if card.failed else EXIT_DONE


def compare_scorecards(folders: list[Path], out: Path | None, is_trusted: bool) -> None:
    """Print scorecards side by side, or write the page of all of them."""
    card = open_scorecard(*folders, trust=is_trusted)
    if out is None:
        _show(card)
    else:
        if any(out.resolve() == folder.resolve() for folder in folders) and len(folders) > 1:
            raise RunError(f"-o {out}: that is one of the scorecards; give another folder for the page of all")
        card.write(out)
        _say_written(card, out)


def print_suite(suite: str | None) -> None:
    """Print a suite's file as it is."""
    named = suite or DEFAULT_SUITE
    say(read_text(shipped_suites().get(named, Path(named))), nl=False)


def _show(card: Scorecard) -> None:
    """Print the results; how they were made is on the scorecard's page, which has more room."""
    say(card.report.title)
    print_tables(table for table in card.report.tables if table.name not in PROVENANCE_TABLES)


def _say_written(card: Scorecard, folder: Path) -> None:
    say(f"the page: {folder / 'index.html'}")
    if card.report.charts and not can_draw():
        say(f"no charts: they are drawn with matplotlib, which is not installed: {HOW_TO_INSTALL}")

"""The work of `dialoom scorecard`: the API's operation under a progress display, and its result."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from dialoom import ascorecard, open_scorecard
from dialoom.api.operation_settings import JudgeSettings
from dialoom.inputs import read_text
from dialoom.runs.errors import RunError
from dialoom.runs.report import INSTALL_COMMAND, can_draw
from dialoom.runs.scorecard import DEFAULT_SUITE, PROVENANCE_TABLES, Scorecard, shipped_suites

from .errors import EXIT_DONE, EXIT_SOME_FAILED, EXIT_STOPPED
from .playing import run_with_display
from .reporting import print_tables
from .setting_flags import JudgeCommand, get_single_model, split_models
from .terminal import echo
from .watcher import prepare_watcher


def make_scorecard(folder: Path, suite: str | None, is_full: bool, retry_failed: bool, command: JudgeCommand) -> int:
    """Play what is missing in a scorecard and print its figures; return the exit code.

    Args:
        folder: The scorecard's folder.
        suite: The name or the file of a suite; by default the shipped one.
        is_full: Whether the full suite is played.
        retry_failed: Whether failed scenarios are tried again.
        command: The players, and how calls are made.
    """
    default_models, by_role = split_models(command)
    command_line = f"dialoom {shlex.join(sys.argv[1:])}"
    settings, watcher = prepare_watcher(
        JudgeSettings, {**command, "models": by_role}, format_resume=lambda _: command_line
    )
    work = ascorecard(
        folder,
        suite=suite or DEFAULT_SUITE,
        size="full" if is_full else "quick",
        model=get_single_model(default_models),
        retry_failed=retry_failed,
        **settings,
    )
    card = run_with_display(work, watcher)
    _print_results(card)
    _print_written(card, folder)
    if card.pending:
        return watcher.exit_code() or EXIT_STOPPED
    return EXIT_SOME_FAILED if card.failed else EXIT_DONE


def compare_scorecards(folders: list[Path], out: Path | None, allow_different_users: bool, is_trusted: bool) -> None:
    """Print scorecards side by side, or write a page of all of them."""
    card = open_scorecard(*folders, allow_different_users=allow_different_users, trust=is_trusted)
    if out is None:
        _print_results(card)
        return
    if len(folders) > 1 and any(out.resolve() == folder.resolve() for folder in folders):
        raise RunError(f"-o {out} is one of the scorecards; give another folder for the combined page")
    card.write(out)
    _print_written(card, out)


def print_suite(suite: str | None) -> None:
    """Print a suite's file unchanged."""
    name = suite or DEFAULT_SUITE
    echo(read_text(shipped_suites().get(name, Path(name))), nl=False)


def _print_results(card: Scorecard) -> None:
    """Print the results. The scorecard's page, which has more room, also describes how they were made."""
    echo(card.report.title)
    print_tables(table for table in card.report.tables if table.name not in PROVENANCE_TABLES)


def _print_written(card: Scorecard, folder: Path) -> None:
    echo(f"the page is {folder / 'index.html'}")
    if card.report.charts and not can_draw():
        echo(f"no charts were drawn, because matplotlib is not installed: {INSTALL_COMMAND}")

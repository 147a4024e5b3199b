"""`dialoom scorecard`: a suite's systems played by assistants, or finished scorecards side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def scorecard(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Scorecards that were made, to be shown side by side.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="The folder: runs, and the page.")
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="All of the suite, or little of it. [default: quick]", show_default=False),
    ] = False,
    suite: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE.yaml", help="A shipped suite, or one of your own. [default: personalization]"),
    ] = None,
    show_suite: Annotated[bool, typer.Option("--show-suite", help="Print the suite's file, to be copied.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed scenarios again.")] = False,
    **given: Any,
) -> None:
    """Run all benchmarks of a suite for one assistant or several, on one page; the same command continues it."""
    from .playing import WHO
    from .scoring import compare_scorecards, make_scorecard, print_suite

    if show_suite:
        print_suite(suite)
    elif folders:
        if any(given[name] for name in WHO) or full or suite:
            raise typer.BadParameter("scorecards that were made are shown as they are; leave out what says how to play")
        compare_scorecards(folders, out, bool(given.get("trust")))
    elif out is None:
        raise typer.BadParameter("-o DIR is missing: the folder in which the scorecard is to be kept")
    else:
        raise typer.Exit(make_scorecard(out, suite, full, retry_failed, given))

"""`dialoom scorecard`: a suite's systems played by assistants, or finished scorecards side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from .option_flags import DifferentUsersFlag

if TYPE_CHECKING:
    from .setting_flags import JudgeCommand


def scorecard(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Finished scorecards to show side by side.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="The folder for the runs and the page.")
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick", help="Play the whole suite, or a small part. [default: quick]", show_default=False
        ),
    ] = False,
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.yaml", help="A shipped suite, or the file of your own. [default: personalization]"
        ),
    ] = None,
    show_suite: Annotated[
        bool, typer.Option("--show-suite", help="Print the suite's file, as a template for your own.")
    ] = False,
    allow_different_users: DifferentUsersFlag = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Play failed scenarios again.")] = False,
    **settings: Unpack[JudgeCommand],
) -> None:
    """Run all benchmarks of a suite for one or several assistants, on one page; the same command continues the work."""
    from dialoom.settings import PlayerSettings, select_settings

    from .scoring import compare_scorecards, make_scorecard, print_suite

    if show_suite:
        print_suite(suite)
    elif folders:
        if any(select_settings(PlayerSettings, settings).values()) or full or suite:
            raise typer.BadParameter("options for playing do not apply to existing scorecards; leave them out")
        compare_scorecards(folders, out, allow_different_users, settings["trust"])
    elif allow_different_users:
        raise typer.BadParameter("--allow-different-users needs several scorecards: DIR DIR")
    elif out is None:
        raise typer.BadParameter("-o DIR is missing: give the folder for the scorecard")
    else:
        raise typer.Exit(make_scorecard(out, suite, full, retry_failed, settings))

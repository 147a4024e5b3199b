"""`dialoom export`: the options of every export, and those of the formats of the run's recipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .completion import formats as known_formats
from .completion import judgings
from .errors import OF_LOOKING
from .flags import TRUSTING, WHERE, Flags, flags_of, trust, with_options
from .terminal import say

if TYPE_CHECKING:
    from dialoom.graphs import Recipe

_COMMON: Flags = {
    "run": (
        Annotated[Path, typer.Argument(metavar="RUN", help="The run's file.", show_default=False)],
        ...,
    ),
    "out": (
        Annotated[
            str,
            typer.Option(
                "-o",
                "--out",
                metavar="FILE",
                help="A file, or - for standard output; a folder for formats of files, and with --test-share.",
            ),
        ],
        ...,
    ),
    "format": (
        Annotated[
            str,
            typer.Option(
                "--format",
                metavar="FORMAT",
                help="dialogues, sharegpt, sft (of dialogues), or one of the recipe's own.",
                autocompletion=known_formats,
            ),
        ],
        "dialogues",
    ),
    "encoding": (
        Annotated[
            Literal["jsonl", "parquet"],
            typer.Option("--as", help="How rows are written; parquet needs 'pip install dialoom[parquet]'."),
        ],
        "jsonl",
    ),
    "test_share": (
        Annotated[
            float | None,
            typer.Option(
                "--test-share",
                metavar="SHARE",
                help="Make two files, train and test, e.g. 0.1: that share of the personas (or users) is tested on.",
                show_default=False,
            ),
        ],
        None,
    ),
    "judging": (
        Annotated[
            str | None,
            typer.Option(
                "--judging",
                metavar="NAME",
                help="A set of judgements; by default the run's own.",
                autocompletion=judgings,
            ),
        ],
        None,
    ),
    "license": (
        Annotated[
            str | None,
            typer.Option(
                "--license",
                metavar="ID",
                help="What the card states, e.g. cc-by-nc-4.0; without it, that the licence is unknown.",
            ),
        ],
        None,
    ),
    "card": (
        Annotated[bool, typer.Option("--card", help="Describe what was written, and put the figures into its card.")],
        False,
    ),
    "where": (Annotated[str | None, WHERE], None),
    "only": (
        Annotated[
            Literal["sound", "faulty"] | None,
            typer.Option("--only", help="Only dialogues in which the gate found no fault, or only the others."),
        ],
        None,
    ),
    "without": (
        Annotated[
            list[str] | None,
            typer.Option(metavar="KIND", help="Leave out dialogues with a fault of this kind, e.g. echo. Repeatable."),
        ],
        None,
    ),
    "include": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="facets|scores",
                help="What rows have besides their format's columns and their scenario's id. Repeatable.",
            ),
        ],
        None,
    ),
    **TRUSTING,
}


def register(app: typer.Typer, arguments: list[str]) -> None:
    """Add `export` to the commands; its recipe is that of the run named in the arguments."""
    wanted = arguments[:1] == ["export"]
    recipe = _recipe(arguments[1:]) if wanted else None
    # If the run cannot be read, that is the error to report, not an unknown flag.
    settings = {"ignore_unknown_options": True, "allow_extra_args": True} if wanted and recipe is None else {}
    flags: Flags = dict(_COMMON)
    text = "Write a run's finished scenarios in plan order, for other programs."
    if recipe is not None:
        from dialoom.runs.export import formats

        text += "\n\nFormats of this run: " + "; ".join(f"{name} ({what})" for name, what in formats(recipe).items())
        flags = {**_format_flags(recipe), **_COMMON}
    app.command("export", help=text, epilog=OF_LOOKING, context_settings=settings)(with_options(_export, flags))


def _recipe(arguments: list[str]) -> Recipe | None:
    """Return the recipe of the first argument that is a run; `None` if none is."""
    from dialoom.api.run import RunReader
    from dialoom.errors import DialoomError
    from dialoom.inputs import is_sqlite

    is_trusted = "--trust" in arguments  # the command itself reports what it trusts
    for argument in arguments:
        if is_sqlite(Path(argument)):
            try:
                return RunReader(argument, trust=is_trusted).recipe
            except DialoomError:
                return None  # the command itself reports the error
    return None


def _format_flags(recipe: Recipe) -> Flags:
    """Return the options of all formats; whether the chosen format has them is checked on execution."""
    flags: Flags = {}
    from dialoom.graphs.training_rows import exporters  # slow to import, and most commands need none

    for exporter in exporters(recipe).values():
        if exporter.options is not None:
            flags = {**flags_of(exporter.options), **flags}
    return flags


def _export(**values: Any) -> None:
    """Write the run's finished scenarios and say how many."""
    from dialoom.api.run import RunReader
    from dialoom.graphs.capabilities import WithFacets
    from dialoom.shown import counted

    path, target, is_trusted = values.pop("run"), values.pop("out"), values.pop("trust")
    names = ("format", "judging", "encoding", "test_share", "where", "license", "only", "card")
    common = {name: values.pop(name) for name in names}
    common["without"], common["include"] = values.pop("without") or (), values.pop("include") or ()
    given = {name: value for name, value in values.items() if value is not None and value != []}
    out, is_piped = Path(target), target == "-"
    to = target if not is_piped else "/dev/stdout" if common["card"] else sys.stdout
    with RunReader(path, trust=trust(is_trusted)) as run:
        counts = run.export(path=to, options=given, **common)
        status, branches, facet = run.status(), run.promoted_branches, WithFacets.of(run.recipe).split_facet
    is_folder_of_files = out.is_dir() and len(counts) == 1
    what = "files" if is_folder_of_files else "rows" if common["encoding"] == "parquet" else "lines"
    parts = ", ".join(f"{part} {count:,}" for part, count in counts.items()) if len(counts) > 1 else ""
    rest = f" (pending: {counted(status.pending, 'scenarios')})" if status.pending else ""
    say(
        f"{counted(sum(counts.values()), what)} written to {'standard output' if is_piped else out}"
        + (f": {parts}" if parts else "")
        + rest,
        err=is_piped,
    )
    if len(counts) > 1:
        say(_realised(counts, common["test_share"], facet or ""), err=is_piped)
    for id_, branch in branches:
        say(f"{id_}: from the branch {branch.name!r}, made step by step", err=is_piped)


def _realised(counts: Mapping[str, int], share: float, facet: str) -> str:
    """Return the realised test share: the rows of one person stay together, so it seldom equals the requested share."""
    realised = counts["test"] / sum(counts.values())
    return f"test share {realised:.1%} of the rows ({share:.1%} was asked for; all rows of one {facet} are on one side)"

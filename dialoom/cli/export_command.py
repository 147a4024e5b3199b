"""`dialoom export`: its options, and the options of the formats of the run's recipe."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .completion import complete_export_formats
from .errors import READ_EPILOG
from .option_flags import Flags, JudgingFlag, RunArgument, TrustFlag, WhereFlag, build_flags, build_trust, with_flags
from .terminal import echo, echo_lines

if TYPE_CHECKING:
    from dialoom.graphs import Recipe


def register(app: typer.Typer, arguments: list[str]) -> None:
    """Add `export` to the commands; its recipe is the recipe of the run in the arguments."""
    is_export = arguments[:1] == ["export"]
    recipe = _find_recipe(arguments[1:]) if is_export else None
    # If the run cannot be read, that error should be reported instead of an unknown flag.
    settings = {"ignore_unknown_options": True, "allow_extra_args": True} if is_export and recipe is None else {}
    flags: Flags = {}
    text = "Write a run's finished scenarios in plan order, for other programs."
    if recipe is not None:
        from dialoom.graphs.training_rows import build_exporters  # slow to import, and most commands need none
        from dialoom.runs.export import formats

        text += "\n\nFormats of this run: " + "; ".join(
            f"{name} ({description})" for name, description in formats(recipe).items()
        )
        # The options of all formats; the command checks later whether its format has the given options.
        for exporter in build_exporters(recipe).values():
            if exporter.options is not None:
                flags = {**build_flags(exporter.options), **flags}
    app.command("export", help=text, epilog=READ_EPILOG, context_settings=settings)(with_flags(_export, flags))


def _find_recipe(arguments: list[str]) -> Recipe | None:
    """Return the recipe of the first argument that is a run; `None` if no argument is."""
    from dialoom.api.run import RunReader
    from dialoom.errors import DialoomError
    from dialoom.inputs import is_sqlite

    for argument in arguments:
        if is_sqlite(Path(argument)):
            try:
                return RunReader(argument, trust="--trust" in arguments).recipe
            except DialoomError:
                return None  # the command itself reports the error, and what it trusts
    return None


def _export(
    run: RunArgument,
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="A file, which is replaced if it exists, or - for standard output. With --test-share, and for formats "
            "that write several files: a folder; its existing files are never changed.",
        ),
    ],
    format: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="dialogues, sharegpt, sft (of dialogues), or one of the recipe's own formats.",
            autocompletion=complete_export_formats,
        ),
    ] = "dialogues",
    encoding: Annotated[
        Literal["jsonl", "parquet"] | None,
        typer.Option(
            "--as",
            help="How rows are written; by default parquet if the file ends in .parquet, otherwise jsonl. Parquet "
            "needs 'pip install dialoom[parquet]'.",
            show_default=False,
        ),
    ] = None,
    test_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Write two files, train and test, with this share of the personas (or users), e.g. 0.1, in test.",
            show_default=False,
        ),
    ] = None,
    judging: JudgingFlag = None,
    license: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The licence that the card states, e.g. cc-by-nc-4.0. [default: unknown]"),
    ] = None,
    card: Annotated[bool, typer.Option("--card", help="Add statistics of the written rows to the card.")] = False,
    where: WhereFlag = None,
    only: Annotated[
        Literal["sound", "faulty"] | None,
        typer.Option(help="Only dialogues in which the gate found no fault, or only those with faults."),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Leave out dialogues with a fault of this kind, e.g. echo. Repeatable."),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(
            metavar="facets|scores",
            help="Additional columns of rows, besides those of the format and the scenario's id. Repeatable.",
        ),
    ] = None,
    trust: TrustFlag = False,
    **format_options: Any,
) -> None:
    """Write the run's finished scenarios and print their number."""
    from dialoom.api.run import RunReader
    from dialoom.graphs.capabilities import WithFacets
    from dialoom.text import pluralize

    options = {name: value for name, value in format_options.items() if value is not None and value != []}
    path, is_piped = Path(out), out == "-"
    destination = out if not is_piped else "/dev/stdout" if card else sys.stdout
    with RunReader(run, trust=build_trust(trust)) as reader:
        status = reader.status()  # before, because what is finished during the export is not in it
        counts = reader.export(
            path=destination,
            options=options,
            format=format,
            judging=judging,
            encoding=encoding,
            test_share=test_share,
            where=where,
            license=license,
            only=only,
            card=card,
            without=without or (),
            include=include or (),
        )
        branches = reader.promoted_branches
        facet = WithFacets.of(reader.recipe).split_facet
    unit = "rows" if "parquet" in (encoding, path.suffix[1:]) else "lines"
    if path.is_dir() and len(counts) == 1:
        unit = "files"
    parts = ", ".join(f"{part} {count:,}" for part, count in counts.items()) if len(counts) > 1 else ""
    echo(
        f"{pluralize(sum(counts.values()), unit)} written to {'standard output' if is_piped else path}"
        + (f": {parts}" if parts else "")
        + (f" (pending: {pluralize(status.pending, 'scenarios')})" if status.pending else ""),
        err=is_piped,
    )
    echo_lines(counts.notices, err=True)
    if test_share is not None and len(counts) > 1:
        echo(_format_realised_share(counts, test_share, facet or ""), err=is_piped)
    for id_, branch in branches:
        echo(f"{id_}: taken from the branch {branch.name!r}, which was made in the step debugger", err=is_piped)


def _format_realised_share(counts: Mapping[str, int], share: float, facet: str) -> str:
    """Return the actual test share, which can differ from the requested one, as a person's rows stay together."""
    realised = counts["test"] / sum(counts.values())
    note = f"{share:.1%} was requested; all rows with the same {facet} are in the same file"
    return f"test share {realised:.1%} of the rows ({note})"

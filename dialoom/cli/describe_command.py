"""The `dialoom describe` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .flags import WHERE
from .trusting import TrustFlag


def describe(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="WHAT",
            help="A run, a file or folder of rows (JSON Lines, JSON, Parquet), or a release's folder.",
            show_default=False,
        ),
    ],
    against: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Look for copies of its dialogues here as well: test data. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Write tables, charts and one HTML page instead."),
    ] = None,
    card: Annotated[bool, typer.Option("--card", help="Put the figures into the exported folder's card.")] = False,
    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Look for texts that mean nearly the same, too: lexical or st:MODEL (a name or a folder).",
        ),
    ] = None,
    alike: Annotated[
        float | None, typer.Option(metavar="COSINE", help="From which on they do, 0 to 1. [default: 0.9]")
    ] = None,
    where: Annotated[str | None, WHERE] = None,
    trust: TrustFlag = False,
) -> None:
    """Describe a dataset: lengths, endings, variety, copies, personal data, coverage, faults; or in a release."""
    from dialoom.runs.describe import SimilarTexts, add_to_card, describe_path

    from .reporting import write_report
    from .tables import print_tables
    from .terminal import say
    from .trusting import trust as trusting

    wanted = SimilarTexts.wanted(embedder, alike)
    found = describe_path(path, against or [], where=where, trust=trusting(trust), alike=wanted)
    if card:
        say(str(add_to_card(path, found)))
    if out is not None:
        write_report(found, out)
    if card or out is not None:
        return
    say(found.title)
    print_tables(found.tables)

"""`describe` and `push`: statistics of a dataset, and the upload of an exported one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .option_flags import TrustFlag, WhereFlag, build_trust
from .terminal import echo


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
        typer.Option(metavar="FILE", help="Also search this file for copies of the dialogues. Repeatable."),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also measure how far the users are from those of the real conversations in this file of rows or run.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="DIR",
            help="Write tables, charts and an HTML page into this folder, instead of printing the tables.",
        ),
    ] = None,
    card: Annotated[
        bool, typer.Option("--card", help="Add the statistics to the card of the exported folder.")
    ] = False,
    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Also find texts of similar meaning, with this embedder: lexical or st:MODEL (a name or a folder).",
        ),
    ] = None,
    alike: Annotated[
        float | None,
        typer.Option(metavar="COSINE", help="Minimum similarity for --embedder, from 0 to 1. [default: 0.9]"),
    ] = None,
    where: WhereFlag = None,
    trust: TrustFlag = False,
) -> None:
    """Describe a dataset (lengths, endings, variety, copies, personal data, coverage, faults) or a release."""
    from dialoom.runs.describe import add_to_card, describe_path

    from .reporting import print_tables, write_report

    report = describe_path(
        path, against or [], where=where, trust=build_trust(trust), embedder=embedder, alike=alike, like=like
    )
    if card:
        echo(str(add_to_card(path, report)))
    if out is not None:
        write_report(report, out)
    if card or out is not None:
        return
    echo(report.title)
    print_tables(report.tables)


def push(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="An exported folder with its card.", show_default=False)
    ],
    repository: Annotated[
        str, typer.Argument(metavar="OWNER/NAME", help="The dataset's name on the hub.", show_default=False)
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Upload the files; without it, they are only listed.")] = False,
    public: Annotated[bool, typer.Option("--public", help="Make a new repository public instead of private.")] = False,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="The hub's address. [default: HF_ENDPOINT, or Hugging Face's]")
    ] = None,
) -> None:
    """Upload an exported folder to a dataset hub: only its card and the files that the card lists."""
    from dialoom.runs.export.pushing import push_dataset
    from dialoom.text import pluralize

    upload = push_dataset(folder, repository, is_sent=yes, is_public=public, endpoint=endpoint)
    for file in upload.files:
        echo(f"{file}  {(folder / file).stat().st_size:,} bytes")
    summary = f"{pluralize(len(upload.files), 'files')}, {upload.bytes:,} bytes, licence {upload.licence}"
    if upload.url is None:
        visibility = "public" if public else "private"
        echo(f"{summary}: nothing was sent; --yes sends them to {repository} ({visibility}, if it is new)")
    else:
        echo(f"{summary}: sent to {upload.url}")

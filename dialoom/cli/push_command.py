"""The `dialoom push` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def push(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="An exported folder with its card.", show_default=False)
    ],
    repository: Annotated[
        str, typer.Argument(metavar="OWNER/NAME", help="The dataset's name there.", show_default=False)
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Send it. Without it, only say what would be sent.")] = False,
    public: Annotated[bool, typer.Option("--public", help="Make the repository one that all can see.")] = False,
    endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="The hub. [default: HF_ENDPOINT, or Hugging Face's]")
    ] = None,
) -> None:
    """Upload an exported folder to a dataset hub: its card and the files that the card names, nothing else."""
    from dialoom.runs.export.pushing import pushed
    from dialoom.shown import counted

    from .terminal import say

    done = pushed(folder, repository, is_sent=yes, is_public=public, endpoint=endpoint)
    for file in done.files:
        say(f"{file}  {(folder / file).stat().st_size:,} bytes")
    said = f"{counted(len(done.files), 'files')}, {done.bytes:,} bytes, licence {done.licence}"
    if done.url is None:
        seen = "public" if public else "private"
        say(f"{said}: nothing was sent; --yes sends it to {repository} ({seen}, if it is made)")
    else:
        say(f"{said}: sent to {done.url}")

"""`dialoom studio`: view runs in a browser."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from .option_flags import TrustFlag
from .terminal import echo


def studio(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="The run's file. Several runs can be given.", show_default=False)
    ],
    host: Annotated[str, typer.Option(help="The address on which the studio listens.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(help="The port to listen on [default: 8790, or a free one]", min=0, max=65535, show_default=False),
    ] = None,
    allow_remote: Annotated[
        bool,
        typer.Option(
            "--allow-remote",
            help="Allow a --host that other machines can reach. The connection is not encrypted: anyone on the "
            "network can read all texts and the token, and then use the studio as you can.",
        ),
    ] = False,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser, if there is one.")] = True,
    trust: TrustFlag = False,
) -> None:
    """View runs in a browser (progress, scenarios, conversations, reports), and step through conversations.

    The command prints a URL that works in one browser only. Nothing is fetched from the network. Ctrl-C ends the
    studio.
    """
    import webbrowser

    from dialoom.studio.server import serve

    addresses: list[str] = []

    def print_address(address: str) -> None:
        addresses.append(address)
        if len(addresses) > 1:
            echo(f"this address has been used; for another browser: {address}")
            return
        echo(f"the studio is at {address}\nthe address works for one browser; Ctrl-C ends the studio")
        if browser:
            with suppress(webbrowser.Error):  # if there is no browser, the printed address suffices
                webbrowser.open(address)

    with suppress(KeyboardInterrupt):
        serve(runs, host=host, port=port, allow_remote=allow_remote, trust=trust, on_address=print_address)

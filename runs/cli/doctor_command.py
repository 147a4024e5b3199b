"""`dialoom doctor`: whether everything is in place, before a run finds out that it is not."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .terminal import say, say_json


def doctor(
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL", help="Send three tiny requests to this model. Repeatable; without it, none is sent."
        ),
    ] = None,
    api_base: Annotated[str | None, typer.Option(metavar="URL", help="Where these models are served.")] = None,
    env_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="NAME=VALUE lines with keys, beside the environment's.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Look whether Python, packages, keys and models are as a run needs them; exits with 1 if something is not."""
    from dialoom.roles.gateway.keys import load_env_file
    from dialoom.runs.doctor import State, examine

    if env_file is not None:
        load_env_file(env_file)
    checks = examine(model or (), api_base)
    is_well = all(check.state is not State.FAILED for check in checks)
    if json_:
        say_json({"ok": is_well, "checks": [asdict(check) for check in checks]})
    else:
        width = max(len(f"{check.about} {check.name}") for check in checks)
        for check in checks:
            say(f"{check.state:<7}  {f'{check.about} {check.name}':<{width}}  {check.detail}")
        say("everything is in place" if is_well else "something is not as it should be: see 'failed' above")
    raise typer.Exit(0 if is_well else 1)

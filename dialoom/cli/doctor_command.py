"""`dialoom doctor`: checks of the environment before a run depends on it."""

from __future__ import annotations

from dataclasses import asdict, replace
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
    temperature: Annotated[
        str | None, typer.Option(metavar="T|none", help="Sampling temperature, as in a run. [default: 0]")
    ] = None,
    max_reply: Annotated[
        str | None, typer.Option(metavar="N|none", help="The most tokens of their replies, as in a run.")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A parameter, as in a run. Repeatable.")
    ] = None,
    structured: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="How they are held to the form of a reply, as in a run. [default: auto]"),
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="S", help="Seconds that a try may take. [default: 600]")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE", help="Compare this recipe's largest request with what the models' servers say they read."
        ),
    ] = None,
    env_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="NAME=VALUE lines with keys, beside the environment's.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Look whether Python, packages, keys and models are as a run needs them; exits with 1 if something is not."""
    from dialoom.roles.binding import checked_structured, checked_temperature
    from dialoom.roles.gateway.provider_keys import load_env_file
    from dialoom.runs.doctor import State, Told, examine
    from dialoom.runs.errors import RunError

    from .parameters import parameters, reply_limits, temperatures, timeouts

    if env_file is not None:
        load_env_file(env_file)
    limits, seconds, params = reply_limits(_alone(max_reply)), timeouts(_alone(timeout)), parameters(param)
    if roles := [role for role in params if role]:
        raise RunError(f"params: {roles[0]} is a role, and a doctor knows none; give KEY=VALUE", setting="params")
    warmth = checked_temperature((temperatures(_alone(temperature)) or {"": 0.0})[""])
    told = Told(api_base, warmth, (limits or {}).get(""), params.get("", {}), (seconds or {}).get(""))
    told = replace(told, structured=checked_structured(structured))
    checks = examine(model or (), told, recipe)
    is_well = all(check.state is not State.FAILED for check in checks)
    if json_:
        say_json({"ok": is_well, "checks": [asdict(check) for check in checks]})
    else:
        width = max(len(f"{check.about} {check.name}") for check in checks)
        for check in checks:
            say(f"{check.state:<7}  {f'{check.about} {check.name}':<{width}}  {check.detail}")
        say("everything is in place" if is_well else "something is not as it should be: see 'failed' above")
    raise typer.Exit(0 if is_well else 1)


def _alone(text: str | None) -> dict[str, str]:
    """Return a value for every model, under the empty name."""
    return {} if text is None else {"": text}

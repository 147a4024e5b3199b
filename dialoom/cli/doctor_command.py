"""`dialoom doctor`: checks of the environment before a run depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from .option_flags import JsonFlag
from .terminal import echo, echo_json, echo_lines

if TYPE_CHECKING:
    from dialoom.cli.doctor import Check

    from .setting_flags import DoctorCommand


def doctor(
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL", help="Send three tiny requests to this model. Repeatable; without it, none is sent."
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE", help="Compare this recipe's largest request with the context windows that servers report."
        ),
    ] = None,
    strict_params: Annotated[
        bool,
        typer.Option(
            "--strict-params", help="Report a failure for models to which a parameter would not be sent as configured."
        ),
    ] = False,
    json: JsonFlag = False,
    **settings: Unpack[DoctorCommand],
) -> None:
    """Check Python, packages, keys and models before a run; exit with 1 if a check fails."""
    from dialoom.cli.doctor import EXTRAS_BY_PURPOSE, State, run_checks
    from dialoom.settings import PlayerSettings, select_settings

    checks = run_checks(
        model or (), recipe, settings["timeout"], strict_params, **select_settings(PlayerSettings, settings)
    )
    is_ok = all(check.state is not State.FAILED for check in checks)
    if json:
        echo_json({"ok": is_ok, "checks": [asdict(check) for check in checks]})
    else:
        missing = {check.name for check in checks if check.about == "extra" and check.state is State.MISSING}
        _print_checks([check for check in checks if check.about != "extra" or check.name not in missing])
        echo("all required checks passed" if is_ok else "some checks failed: see 'failed' above")
        missing_by_purpose = {
            purpose: [name for name in names if name in missing] for purpose, names in EXTRAS_BY_PURPOSE.items()
        }
        if missing:
            echo("optional, not installed; some commands need them (pip install 'dialoom[NAME]'):")
        echo_lines(f"  {purpose}: {', '.join(names)}" for purpose, names in missing_by_purpose.items() if names)
    raise typer.Exit(0 if is_ok else 1)


def _print_checks(checks: Sequence[Check]) -> None:
    """Print a line for each check."""
    width = max(len(f"{check.about} {check.name}") for check in checks)
    echo_lines(f"{check.state:<7}  {f'{check.about} {check.name}':<{width}}  {check.detail}" for check in checks)

"""`dialoom step RUN SCENARIO`, and `dialoom step RECIPE ...` with the options of `dialoom run RECIPE`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dialoom.runs.configuration.recipes import is_recipe, is_study, load_recipe

from .command_list import PanelCommand
from .errors import OF_REPLAYING, OF_STEPPING
from .flags import WHERE, Flags, flags_of, with_options
from .run_command import run_flags
from .terminal import say
from .trusting import TrustFlag

_HELP = (
    "Go through one conversation step by step: look, edit, rewind, fork, compare. "
    "SCENARIO is as in 'dialoom show'. With the name of a recipe in place of RUN, a new run is made (options as of "
    "'dialoom run') and its first scenario stepped through. 'help' at its prompt lists the commands; see "
    "docs/debugging.md."
)
_SCRIPTED: Flags = {
    "script": (
        Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="Commands, one a line, in place of a person; without it, from a pipe."),
        ],
        None,
    ),
    "json": (Annotated[bool, typer.Option("--json", help="Answer each command with a line of JSON.")], False),
}
_RUN: Flags = {
    "run": (Annotated[Path, typer.Argument(metavar="RUN", help="The run's file.", show_default=False)], ...),
    "scenario": (
        Annotated[
            str | None,
            typer.Argument(
                metavar="SCENARIO", help="Its id, the beginning of it, or its number. [default: 1]", show_default=False
            ),
        ],
        None,
    ),
    "where": (Annotated[str | None, WHERE], None),
    "branch": (Annotated[str, typer.Option(metavar="NAME", help="The branch to stand on.")], "main"),
    **_SCRIPTED,
}
_NOT_HERE = ("concurrency", "fail_on_error", "patience", "workers", "ray", "log_format")
"""Settings that make no difference to a conversation played step by step."""


def register(app: typer.Typer, arguments: list[str]) -> None:
    """Add `step` to the commands; only the recipe that the arguments name is imported."""
    spec = _recipe(arguments)
    command = _run_command("step" in arguments[:1]) if spec is None else _recipe_command(spec)
    app.command("step", help=_HELP, epilog=OF_STEPPING, cls=PanelCommand)(command)


def register_replay(app: typer.Typer, _arguments: list[str]) -> None:
    """Add `replay` to the commands."""
    app.command(epilog=OF_REPLAYING)(replay)


def replay(
    case: Annotated[Path, typer.Argument(metavar="FILE", help="What 'save' in 'dialoom step' has written.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    trust: TrustFlag = False,
) -> None:
    """Play a saved case from its recorded replies, offline, and check that the same path comes out."""
    from .stepping.stepping import replay_case

    raise typer.Exit(replay_case(case, json, trust))


def _recipe(arguments: list[str]) -> str | None:
    """Return the recipe that follows `step`, if it is one."""
    if "step" not in arguments[:1]:
        return None
    wanted = next((argument for argument in arguments[1:] if not argument.startswith("-")), None)
    if wanted is None or (Path(wanted).is_file() and not is_study(wanted)):
        return None
    return wanted if is_recipe(wanted) else None


def _run_command(is_wanted: bool) -> Any:
    """Return the command that opens a run; its generated flags only if it is wanted, as making them takes time."""

    def command(**values: Any) -> None:
        from .stepping.stepping import first_where, step_run

        path, scenario, branch = values.pop("run"), values.pop("scenario"), values.pop("branch")
        script, is_json, where = values.pop("script"), values.pop("json"), values.pop("where")
        if scenario is not None and where is not None:
            raise typer.BadParameter("--where finds the scenario; leave out SCENARIO")
        found = scenario or ("1" if where is None else first_where(path, where, values["trust"]))
        raise typer.Exit(step_run(path, found, branch, script, is_json, values))

    if not is_wanted:
        return with_options(command, _RUN)
    from dialoom.settings import ProcessSettings

    from .settings import SessionSettings, flags_for

    return with_options(command, {**_RUN, **flags_for(ProcessSettings, SessionSettings, without=_NOT_HERE)})


def _recipe_command(spec: str) -> Any:
    from dialoom.errors import DialoomError

    try:
        recipe = load_recipe(spec)
    except DialoomError as error:
        say(f"dialoom: {error}", err=True)
        raise SystemExit(2) from error
    common = {name: flag for name, flag in run_flags().items() if name != "dry_run"}

    def command(**values: Any) -> None:
        from .settings import naming_the_file
        from .stepping.stepping import step_recipe

        values.pop("recipe")
        script, is_json = values.pop("script"), values.pop("json")
        flags = {name: values.pop(name) for name in common}
        options = {name: value for name, value in values.items() if value is not None and value != []}
        with naming_the_file(recipe, options, flags):
            code = step_recipe(spec, recipe, options, flags, script, is_json)
        raise typer.Exit(code)

    which: Flags = {"recipe": (Annotated[str, typer.Argument(metavar="RECIPE", help=recipe.summary)], ...)}
    return with_options(command, {**which, **_SCRIPTED, **flags_of(recipe.options_type, recipe.name), **common})

"""`dialoom step RUN SCENARIO`, and `dialoom step RECIPE ...` with the options of `dialoom run RECIPE`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from dialoom.runs.configuration.recipes import is_recipe, is_study, load_recipe

from .command_list import PanelCommand
from .errors import REPLAY_EPILOG, STEP_EPILOG
from .option_flags import (
    JsonFlag,
    RunArgument,
    TrustFlag,
    WhereFlag,
    find_recipe_argument,
    parse_role_models,
    placeholder_command,
)

if TYPE_CHECKING:
    from .setting_flags import CallCommand, RunCommand

_HELP = (
    "Step through one conversation: inspect, edit, rewind, fork, compare. "
    "SCENARIO is given as for 'dialoom show'. If a recipe is given in place of RUN, a new run is planned (with the "
    "options of 'dialoom run') and its first scenario is stepped through. 'help' at its prompt lists the commands; see "
    "docs/debugging.md."
)
ScriptFlag = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file of debugger commands, one per line; without it, commands come from the terminal or a pipe.",
    ),
]
StepJsonFlag = Annotated[bool, typer.Option("--json", help="Answer each command with a line of JSON.")]
_EXCLUDED_SETTINGS = ("concurrency", "fail_on_error", "patience", "workers", "ray", "log_format")
"""Settings that have no effect when a conversation is played step by step."""


def register_step(app: typer.Typer, arguments: list[str]) -> None:
    """Add `step` to the commands; only the recipe in the arguments is imported."""
    spec = _find_recipe(arguments)
    if "step" not in arguments[:1]:
        command: Callable[..., None] = placeholder_command
    else:
        from .setting_flags import with_settings

        command = with_settings(_step, without=_EXCLUDED_SETTINGS) if spec is None else _create_recipe_command(spec)
    app.command("step", help=_HELP, epilog=STEP_EPILOG, cls=PanelCommand)(command)


def register_replay(app: typer.Typer, _arguments: list[str]) -> None:
    """Add `replay` to the commands."""
    app.command(epilog=REPLAY_EPILOG)(replay)


def replay(
    case: Annotated[Path, typer.Argument(metavar="FILE", help="A case saved with 'save' in 'dialoom step'.")],
    requirements: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="REQUIREMENT",
            help="With --live: requirements such as 'resolved >= 100%', which replace the comparison with the "
            "recorded judgements; see 'dialoom require'.",
        ),
    ] = None,
    live: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE", help="A role that replies again; the replies of all other roles are replayed. Repeatable."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=MODEL",
            help="A model for a live role, in place of the recorded one. Repeatable.",
            show_default=False,
        ),
    ] = None,
    prompts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR|small",
            help="Prompts of live roles that replace the recipe's own; see 'dialoom run'. Repeatable.",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT[,WHAT]",
            help="Conditions to accept, which otherwise fail a requirement; see 'dialoom require'. Repeatable.",
        ),
    ] = None,
    env_file: Annotated[
        Path | None, typer.Option("--env-file", metavar="FILE", help="A file of keys, one NAME=VALUE per line.")
    ] = None,
    json: JsonFlag = False,
    trust: TrustFlag = False,
) -> None:
    """Play a saved case with the current code: with its recorded replies, or with new replies of live roles."""
    from .stepping.stepping import replay_case

    arguments = {"live": live or [], "models": parse_role_models(model or []), "prompts": prompts}
    raise typer.Exit(replay_case(case, requirements or [], allow or [], env_file, json, trust, **arguments))


def _find_recipe(arguments: list[str]) -> str | None:
    """Return the recipe that follows `step`; `None` if no recipe follows."""
    first = find_recipe_argument(arguments, "step")
    if first is None or (Path(first).is_file() and not is_study(first)):
        return None
    return first if is_recipe(first) else None


def _step(
    run: RunArgument,
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO",
            help="The scenario's id, a prefix of it, or its number. [default: 1]",
            show_default=False,
        ),
    ] = None,
    where: WhereFlag = None,
    branch: Annotated[str, typer.Option(metavar="NAME", help="The branch to start on.")] = "main",
    script: ScriptFlag = None,
    json: StepJsonFlag = False,
    **settings: Unpack[CallCommand],
) -> None:
    from .stepping.stepping import find_first_scenario, step_run

    if scenario is not None and where is not None:
        raise typer.BadParameter("--where selects the scenario; leave out SCENARIO")
    selected = scenario or ("1" if where is None else find_first_scenario(run, where, settings["trust"]))
    raise typer.Exit(step_run(run, selected, branch, script, json, settings))


def _create_recipe_command(spec: str) -> Callable[..., None]:
    from .setting_flags import with_settings

    def step(
        recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="The recipe of the new run.")],  # noqa: ARG001
        script: ScriptFlag = None,
        json: StepJsonFlag = False,
        **settings: Unpack[RunCommand],
    ) -> None:
        from .stepping.stepping import step_recipe

        raise typer.Exit(step_recipe(spec, script, json, settings))

    return with_settings(step, load_recipe(spec), without=("trust", "dry_run"))

"""`dialoom run RECIPE`: a command with the options of every run and those of the recipe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import typer

from dialoom.errors import RunError
from dialoom.runs.configuration.recipes import is_recipe, load_recipe, recipe_names

from .command_list import PanelCommand, RecipeList
from .completion import get_completed_words
from .errors import PLAY_EPILOG
from .option_flags import find_recipe_argument, placeholder_command

if TYPE_CHECKING:
    from dialoom.graphs import Recipe

    from .setting_flags import RunCommand


def register(app: typer.Typer, arguments: list[str]) -> None:
    """Add `run` to the commands; only the recipe in the arguments is imported."""
    runs = typer.Typer(
        help="Make a run: plan it, play every scenario, record every step. The recipe is one of those below, your own "
        "(path/to/file.py:NAME), or a study (STUDY.toml). 'dialoom run RECIPE --help' lists its options.",
        epilog=PLAY_EPILOG,
        cls=RecipeList,
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    requested = find_recipe_argument(arguments, "run")
    names = recipe_names()
    if requested is not None and requested.endswith(".py"):
        raise RunError(f"recipe {requested!r} is a file; name the recipe in it: {requested}:NAME")
    if requested is not None and (is_recipe(requested) or Path(requested).is_file()):
        recipe = load_recipe(requested)
        runs.command(requested, help=recipe.summary, epilog=PLAY_EPILOG, cls=PanelCommand)(
            _create_command(requested, recipe)
        )
        names = [name for name in names if name != requested]
    is_listed = requested is None and arguments[:1] == ["run"] and get_completed_words() is None
    for name in names:
        runs.command(name, help=_get_summary(name) if is_listed else "")(placeholder_command)
    app.add_typer(runs, name="run")


def _get_summary(name: str) -> str:
    """Return a recipe's summary; for an installed recipe that cannot be imported, the error."""
    try:
        return load_recipe(name).summary
    except Exception as error:  # a broken package should not prevent the list of other recipes
        return f"(cannot be loaded: {error})"


def _create_command(spec: str, recipe: Recipe) -> Callable[..., None]:
    from .setting_flags import with_settings

    def run(**settings: Unpack[RunCommand]) -> None:
        from .playing import start_run

        raise typer.Exit(start_run(spec, recipe, settings))

    return with_settings(run, recipe, without=("trust",))

"""`dialoom run RECIPE`: a command with the options of every run and those of the recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialoom.runs.recipes import is_recipe, load_recipe, recipe_names

from .call_flags import CALLING, SAMPLING
from .command_list import RecipeList
from .completion import words_so_far
from .errors import EXIT_USAGE, OF_PLAYING
from .flags import flags_of, with_options
from .terminal import say

if TYPE_CHECKING:
    from dialoom.graphs import Recipe

COMMON: dict[str, tuple[Any, Any]] = {
    "out": (
        Annotated[Path | None, typer.Option("-o", "--out", metavar="RUN", help="The run's file, made anew. Required.")],
        None,
    ),
    "folder": (
        Annotated[
            Path | None,
            typer.Option(
                metavar="DIR",
                help="When all is done, write the folder that the run is made for: a source, pairs, people or drafts. "
                "For recipes that make one.",
            ),
        ],
        None,
    ),
    "model": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="[ROLE=]MODEL",
                help="Who plays: offline/attentive, any LiteLLM model, python:module:function, graph:file.py:name. "
                "For every role, or ROLE=MODEL for one. Repeatable. [default: offline/attentive]",
            ),
        ],
        None,
    ),
    "temperature": (
        Annotated[
            list[str] | None,
            typer.Option(metavar="[ROLE=]T|none", help="Sampling temperature; none sends none. Repeatable."),
        ],
        None,
    ),
    **SAMPLING,
    "seed": (Annotated[int | None, typer.Option(help="Of every random draw. [default: 0]", show_default=False)], None),
    "sample": (
        Annotated[
            int | None,
            typer.Option(
                metavar="N", help="Draw so many scenarios with the seed, spread evenly over people, settings and so on."
            ),
        ],
        None,
    ),
    "on_user_fault": (
        Annotated[
            str | None,
            typer.Option(
                metavar="flag|'retry N'",
                help="What is done about a faulty line of the simulated user's: keep it as data, or ask for "
                "the line again, up to N times, before the other side sees it. [default: flag]",
                show_default=False,
            ),
        ],
        None,
    ),
    "concurrency": (
        Annotated[
            int | None, typer.Option(min=1, help="Dialogues under way at once. [default: 16]", show_default=False)
        ],
        None,
    ),
    "prompts": (
        Annotated[
            Path | None, typer.Option(metavar="DIR", help="Your prompts: files that replace those with the same ids.")
        ],
        None,
    ),
    "config": (
        Annotated[Path | None, typer.Option(metavar="FILE", help="YAML with any of these options; flags win.")],
        None,
    ),
    "api_base": (
        Annotated[
            list[str] | None,
            typer.Option(metavar="[ROLE=]URL", help="Where a role's model is served. Repeatable."),
        ],
        None,
    ),
    "dry_run": (
        Annotated[
            bool,
            typer.Option("--dry-run", help="Estimate calls, tokens and cost per role; send nothing and write nothing."),
        ],
        False,
    ),
    **CALLING,
}


def register(app: typer.Typer, arguments: list[str]) -> None:
    """Add `run` to the commands; only the recipe that the arguments name is imported."""
    runs = typer.Typer(
        help="Make a run: plan it, play every scenario, keep every step. The recipe is one of those below, or one of "
        "your own: path/to/file.py:NAME, or a study: STUDY.toml. 'dialoom run RECIPE --help' lists its options.",
        epilog=OF_PLAYING,
        cls=RecipeList,
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    wanted = _wanted(arguments)
    names = recipe_names()
    if wanted is not None and wanted.endswith(".py"):
        say(f"dialoom: recipe {wanted!r} is a file; name the recipe in it: {wanted}:NAME", err=True)
        raise SystemExit(EXIT_USAGE)
    if wanted is not None and is_recipe(wanted):
        _add(runs, wanted)
        names = [name for name in names if name != wanted]
    is_listed = wanted is None and arguments[:1] == ["run"] and words_so_far() is None
    for name in names:
        runs.command(name, help=_summary(name) if is_listed else "")(_placeholder)
    app.add_typer(runs, name="run")


def _wanted(arguments: list[str]) -> str | None:
    """Return the recipe that follows `run`."""
    if "run" not in arguments[:1]:
        return None
    return next((argument for argument in arguments[1:] if not argument.startswith("-")), None)


def _placeholder() -> None:
    """Stands for a recipe that these arguments do not name."""


def _summary(name: str) -> str:
    """Return a recipe's summary; for an installed recipe that cannot be imported, the error."""
    try:
        return load_recipe(name).summary
    except Exception as error:  # somebody else's package: the other recipes are listed all the same
        return f"(cannot be loaded: {error})"


def _add(runs: typer.Typer, spec: str) -> None:
    from dialoom.errors import DialoomError

    try:
        recipe = load_recipe(spec)
    except DialoomError as error:
        say(f"dialoom: {error}", err=True)
        raise SystemExit(EXIT_USAGE) from error
    runs.command(spec, help=recipe.summary, epilog=OF_PLAYING)(_command(spec, recipe))


def _command(spec: str, recipe: Recipe) -> Any:
    """Return the function from whose signature Typer makes options."""

    def command(**values: Any) -> None:
        from .playing import start_run

        common = {name: values.pop(name) for name in COMMON}
        given = {name: value for name, value in values.items() if value is not None and value != []}
        raise typer.Exit(start_run(spec, recipe, given, **common))

    return with_options(command, {**flags_of(recipe.options_type), **COMMON})

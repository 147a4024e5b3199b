"""`dialoom new recipe`: a folder with a working recipe, its test and a README, as a starting point."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from .errors import OF_LOOKING

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def register(app: typer.Typer, _arguments: list[str]) -> None:
    """Add `new` to the commands."""
    new = typer.Typer(no_args_is_help=True, rich_markup_mode=None, epilog=OF_LOOKING)
    new.command("recipe", epilog=OF_LOOKING)(recipe)
    app.add_typer(new, name="new", help="Make a folder with a recipe that works, to be changed into your own.")


def recipe(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Lower-case words with hyphens, e.g. web-shop.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="The folder. [default: NAME]", show_default=False)
    ] = None,
) -> None:
    """Make a folder with a recipe, a test that plays it offline, and a README."""
    from dialoom.outputs import make_folder, text_output
    from dialoom.runs.errors import RunError

    from .terminal import say

    if not _NAME.fullmatch(name):
        raise RunError(f"name {name!r} must be lower-case words with hyphens between them, e.g. web-shop")
    folder = out or Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder} exists already; give another folder with -o")
    module = name.replace("-", "_")
    words = {"@NAME@": name, "@MODULE@": module, "@CLASS@": name.title().replace("-", "")}
    make_folder(folder)
    for template, target in (("recipe.py", f"{module}.py"), ("test.py", f"test_{module}.py"), ("README.md", None)):
        text = resources.files(__package__).joinpath("templates", f"{template}.txt").read_text(encoding="utf-8")
        for placeholder, word in words.items():
            text = text.replace(placeholder, word)
        with text_output(folder / (target or template)) as file:
            file.write(text)
        say(str(folder / (target or template)))

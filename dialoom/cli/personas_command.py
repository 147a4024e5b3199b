"""`dialoom personas`: the options of its commands; `pools.py` does their work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from .command_list import PanelCommand
from .errors import POOL_EPILOG, READ_EPILOG
from .option_flags import JsonFlag, placeholder_command

if TYPE_CHECKING:
    from .setting_flags import RunCommand

_BUILD_HELP = (
    "Have a model write profiles or personalities, in rounds, and keep those that differ from all earlier ones."
)

_EXCLUDED_SETTINGS = (
    "out",
    "folder",
    "dry_run",
    "config",
    "sample",
    "on_user_fault",
    "concurrency",
    "workers",
    "ray",
    "replay_only",
    "trust",
)
"""Settings without effect on a run of one scenario whose calls are made one after another."""


def register(app: typer.Typer, arguments: list[str]) -> None:
    """Add `personas` to the commands; the recipe of `build` is imported only if `build` is in the arguments."""
    personas = typer.Typer(
        help="Build pools of profiles and personalities, and combine them into personas.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    personas.command("build", help=_BUILD_HELP, epilog=POOL_EPILOG, cls=PanelCommand)(
        _create_build_command() if arguments[:2] == ["personas", "build"] else placeholder_command
    )
    for command in (combine, check):
        personas.command(epilog=READ_EPILOG)(command)
    personas.command("import", epilog=READ_EPILOG)(import_)
    app.add_typer(personas, name="personas")


def _create_build_command() -> Callable[..., None]:
    from dialoom.runs.configuration.recipes import load_recipe

    from .setting_flags import with_settings

    recipe = load_recipe("persona-pool")

    def build(
        pool: Annotated[
            Path,
            typer.Option(
                "-o",
                "--out",
                metavar="POOL",
                help="The pool, a JSONL file. The run that makes it is stored beside it (.run.db); the same command "
                "continues this run.",
            ),
        ],
        **settings: Unpack[RunCommand],
    ) -> None:
        from .pools import build_pool

        raise typer.Exit(build_pool(recipe, settings, pool))

    return with_settings(build, recipe, without=_EXCLUDED_SETTINGS)


def combine(
    profiles: Annotated[Path, typer.Argument(metavar="PROFILES", help="A pool of profiles.", show_default=False)],
    personalities: Annotated[
        Path, typer.Argument(metavar="PERSONALITIES", help="A pool of personalities.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="PERSONAS", help="The personas, a JSONL file.")],
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, help="The number of personas; at most the number of pairs.")
    ],
    seed: Annotated[int, typer.Option(help="The seed for drawing the pairs.")] = 0,
) -> None:
    """Draw personas from two pools: random pairs of a profile and a personality, without repetition."""
    from .pools import combine_pools

    combine_pools(profiles, personalities, count, seed, out)


def check(
    pool: Annotated[Path, typer.Argument(metavar="POOL", help="A pool's JSONL file.", show_default=False)],
    embedder: Annotated[
        str, typer.Option(help="How the similarity of texts is measured: lexical or st:MODEL.")
    ] = "lexical",
    threshold: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Show the pairs with a similarity above this value.")
    ] = 0.6,
    nearest: Annotated[int, typer.Option(min=0, help="Show this many pairs of nearest neighbours.")] = 5,
    json: JsonFlag = False,
) -> None:
    """Describe a pool: the number of texts by round, duplicates, and the most similar texts."""
    from .pools import check_pool

    check_pool(pool, embedder, threshold, nearest, json)


def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="profile.jsonl or personality.jsonl of ALOE's release.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="POOL", help="The pool, a JSONL file.")],
) -> None:
    """Make a pool from a file of ALOE's release (one JSON text per line), and list the repairs."""
    from .pools import import_pool

    import_pool(file, out)

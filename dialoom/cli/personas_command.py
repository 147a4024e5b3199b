"""`dialoom personas`: the options of its commands; their work is in `pool_building.py` and `pool_files.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .command_list import PanelCommand
from .errors import OF_LOOKING, OF_POOLS
from .flags import Flags, flags_of, with_options

_RECIPE = "persona-pool"

_BUILD: Flags = {
    "out": (
        Annotated[
            Path,
            typer.Option(
                "-o",
                "--out",
                metavar="POOL",
                help="The pool, a JSONL file. Its run is kept beside it (.run.db); the same command goes on with it.",
            ),
        ],
        ...,
    ),
}

_NOT_HERE = ("sample", "on_user_fault", "concurrency", "workers", "ray", "replay_only", "trust")
"""Settings that make no difference to a run of one scenario whose calls are made one after another."""

Pool = Annotated[Path, typer.Argument(metavar="POOL", help="A pool's JSONL file.", show_default=False)]


def register(app: typer.Typer, arguments: list[str]) -> None:
    """Add `personas` to the commands; the recipe of `build` is imported only if the arguments name it."""
    personas = typer.Typer(
        help="Build pools of profiles and personalities, and combine them into personas.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    options = _pool_options() if arguments[:2] == ["personas", "build"] else {}
    personas.command("build", epilog=OF_POOLS, cls=PanelCommand)(with_options(_build, {**_BUILD, **options}))
    for command in (combine, check):
        personas.command(epilog=OF_LOOKING)(command)
    personas.command("import", epilog=OF_LOOKING)(import_)
    app.add_typer(personas, name="personas")


def _pool_options() -> Flags:
    from dialoom.runs.configuration.recipes import load_recipe
    from dialoom.settings import ProcessSettings, RunSettings

    from .settings import SessionSettings, flags_for

    flags = flags_for(RunSettings, ProcessSettings, SessionSettings, without=_NOT_HERE)
    return {**flags_of(load_recipe(_RECIPE).options_type, _RECIPE), **flags}


def _build(**values: Any) -> None:
    """Have a model write profiles or personalities, round for round, and keep those that are unlike all before."""
    from dialoom.runs.configuration.recipes import load_recipe
    from dialoom.settings import ProcessSettings

    from .pools import build_pool

    recipe = load_recipe(_RECIPE)
    out = values.pop("out")
    own = recipe.options_type.model_fields.keys() - ProcessSettings.__annotations__.keys()  # 'patience' is both
    options = {name: values.pop(name) for name in own}
    given = {name: value for name, value in options.items() if value is not None}
    raise typer.Exit(build_pool(_RECIPE, recipe, given, values, out))


def combine(
    profiles: Annotated[Path, typer.Argument(metavar="PROFILES", help="A pool of profiles.", show_default=False)],
    personalities: Annotated[
        Path, typer.Argument(metavar="PERSONALITIES", help="A pool of personalities.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="PERSONAS", help="The personas, a JSONL file.")],
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many; at most as many as there are pairs.")],
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
) -> None:
    """Draw personas from two pools: random pairs of a profile and a personality, no pair twice."""
    from .pools import combine_pools

    combine_pools(profiles, personalities, count, seed, out)


def check(
    pool: Pool,
    embedder: Annotated[str, typer.Option(help="What tells how similar texts are: lexical or st:MODEL.")] = "lexical",
    threshold: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Show the pairs that are more similar than this.")
    ] = 0.6,
    nearest: Annotated[int, typer.Option(min=0, help="Show this many pairs of nearest neighbours.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Look at a pool: how many texts of which rounds, what stands there twice, and which are most alike."""
    from .pools import check_pool

    check_pool(pool, embedder, threshold, nearest, json)


def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="profile.jsonl or personality.jsonl of the release.", show_default=False),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="POOL", help="The pool, a JSONL file.")],
) -> None:
    """Make a pool of an ALOE release's file, one JSON text a line, and list the repairs."""
    from .pools import import_pool

    import_pool(file, out)

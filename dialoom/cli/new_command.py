"""`dialoom new`: a folder with a working recipe or study, as a starting point."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from itertools import islice
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack, cast

import typer

from dialoom.errors import RunError

from .command_list import PanelCommand
from .errors import PLAY_EPILOG, READ_EPILOG
from .new_folder import check_folder_is_new, fill_template
from .option_flags import placeholder_command
from .terminal import echo

if TYPE_CHECKING:
    from .setting_flags import RunCommand

_GOAL_COLUMNS = ("goal", "task", "problem", "question", "request")
_ID_COLUMNS = ("id", "person_id", "user_id", "name", "email")
_MAX_INSPECTED_ROWS = 1000
"""The maximum number of rows read to detect a file's columns."""

_NAME_PATTERN = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


_STUDY_HELP = (
    "Make a folder with a study that runs offline, with example people, your own, or those of recorded conversations."
)

_EXCLUDED_SETTINGS = (
    "out",
    "folder",
    "config",
    "sample",
    "trials",
    "on_user_fault",
    "workers",
    "ray",
    "replay_only",
    "trust",
    "cache",
    "otel",
    "synchronous",
    "stateful",
    "takes_tools",
    "session",
)
"""Settings of a run that make no sense when people are inferred from conversations."""


def register(app: typer.Typer, arguments: list[str]) -> None:
    """Add `new` to the commands; the recipe that `study` uses is imported only if `study` is in the arguments."""
    new = typer.Typer(no_args_is_help=True, rich_markup_mode=None, epilog=READ_EPILOG)
    new.command("recipe", epilog=READ_EPILOG)(recipe)
    new.command("study", help=_STUDY_HELP, epilog=PLAY_EPILOG, cls=PanelCommand)(
        _build_study_command() if arguments[:2] == ["new", "study"] else placeholder_command
    )
    app.add_typer(
        new, name="new", help="Make a folder with a working recipe or study as a starting point for your own."
    )


def recipe(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The recipe's name: lower-case words with hyphens, e.g. web-shop.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="The folder. [default: NAME]", show_default=False)
    ] = None,
) -> None:
    """Make a folder with a recipe, a test that plays it offline, and a README."""
    if not _NAME_PATTERN.fullmatch(name):
        raise RunError(f"name {name!r} must be lower-case words with hyphens between them, e.g. web-shop")
    module = name.replace("-", "_")
    words = {"@NAME@": name, "@MODULE@": module, "@CLASS@": name.title().replace("-", "")}
    templates = {"recipe.py": f"{module}.py", "test.py": f"test_{module}.py", "README.md": "README.md"}
    _write_files(out or Path(name), templates, words)


def _build_study_command() -> Callable[..., None]:
    from dialoom.runs.configuration.recipes import load_recipe

    from .setting_flags import with_settings

    recipe = load_recipe("transcript-people")

    def study(
        target: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.", show_default=False)],
        people: Annotated[
            Path | None,
            typer.Option(
                "--from",
                metavar="FILE",
                help="A file of your people: CSV, JSON Lines, JSON, Parquet or YAML. The study uses its columns.",
                show_default=False,
            ),
        ] = None,
        **settings: Unpack[RunCommand],
    ) -> None:
        name = re.sub(r"[^a-z0-9]+", "-", target.absolute().name.lower()).strip("-")
        name = name if name[:1].isalpha() else f"study-{name}"
        options = cast("dict[str, Path]", settings["options"])
        if "talks" not in options:
            if settings["models"] or settings["model"]:
                raise RunError("--model needs --from-transcripts; give the conversations, too")
            _write_study(target, name, people)
            return
        from .transcripts import seed_study

        if people is not None:
            raise RunError("give --from or --from-transcripts, not both")
        raise typer.Exit(seed_study(recipe, settings, options["talks"], target, name))

    return with_settings(study, recipe, without=_EXCLUDED_SETTINGS)


def _write_study(folder: Path, name: str, people: Path | None) -> None:
    """Write a study of example people, or of the people in a file, and print what was found and the next command."""
    templates = {"study.toml": "study.toml", "study-README.md": "README.md"}
    templates |= {"people.csv": "people.csv"} if people is None else {}
    people_table, goal = ('file = "people.csv"', "") if people is None else _inspect_people(people, folder)
    tasks = (
        "# Each person has one conversation: the goal is a column of the people. [tasks] would give them several."
        if goal
        else '[tasks]            # each person gets each task\nrows = ["return a kettle", "change an address"]'
    )
    words = {"@NAME@": name, "@PEOPLE@": people_table, "@TASKS@": tasks, "@GOAL@": goal or "{{ task.goal }}"}
    _write_files(folder, templates, words)
    echo(f"next: {shlex.join(['dialoom', 'run', str(folder / 'study.toml'), '-o', f'{name}.db'])}")


def _inspect_people(people: Path, folder: Path) -> tuple[str, str]:
    """Return the lines of `[people]` for a file, and the template of the goal if a column contains goals.

    Raises:
        DataError: If the file cannot be read or has no rows.
    """
    from dialoom.inputs import DataError
    from dialoom.personas.rows import read_rows

    rows = [row for _, row in islice(read_rows(people, "description"), _MAX_INSPECTED_ROWS)]
    if not rows:
        raise DataError(people, "contains no rows; give at least one person (one per row)")
    columns = [column for column in rows[0] if all(column in row for row in rows)]
    goal = next((column for column in columns if column.lower() in _GOAL_COLUMNS), "")
    id_columns = [column for column in columns if column.lower() in _ID_COLUMNS]
    id_ = next((column for column in id_columns if len({str(row[column]) for row in rows}) == len(rows)), "")
    portrait = [each for each in columns if each != goal and (each not in id_columns or each.lower() == "name")]
    count = f"{len(rows):,} people" if len(rows) < _MAX_INSPECTED_ROWS else f"at least {len(rows):,} people"
    roles = f"id: {id_ or 'none'}; goal: " + (goal or "none, so the study's tasks are used")
    echo(f"{people}: {count}; columns: {', '.join(columns)}; {roles}; portrait: {', '.join(portrait) or 'none'}")
    lines = [f"file = {json.dumps(relpath(people, folder), ensure_ascii=False)}"]
    if id_ not in ("", "id", "name"):
        lines.append(f"id = {json.dumps(id_, ensure_ascii=False)}")
    lines.append(f"portrait = {json.dumps(portrait, ensure_ascii=False)}")
    return "\n".join(lines), f"{{{{ person.{goal} }}}}" if goal else ""


def _write_files(folder: Path, templates: Mapping[str, str], words: Mapping[str, str]) -> None:
    """Write files from templates into a new folder, and print the files' paths.

    Args:
        folder: The folder; it must be missing or empty.
        templates: The name of each file, by the name of its template.
        words: The texts that replace the placeholders, by placeholder.

    Raises:
        RunError: If the folder is not empty.
    """
    from dialoom.outputs import make_folder, text_output

    check_folder_is_new(folder)
    make_folder(folder)
    for template, target in templates.items():
        with text_output(folder / target) as file:
            file.write(fill_template(template, words))
        echo(folder / target)

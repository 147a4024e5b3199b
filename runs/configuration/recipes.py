"""Lookup of recipes by entry point (`dialoom.recipes`), `path/to/file.py:NAME` or a study's file, or as objects."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialoom.errors import Advice, RunError, first_problem

from .recipe_checks import check_recipe

if TYPE_CHECKING:
    from pydantic import BaseModel

    from dialoom.graphs import Recipe, RecipeOptions

ENTRY_POINT_GROUP = "dialoom.recipes"
OBJECT_PREFIX = "object:"
"""Prefix of the name of a recipe that was passed as an object and is known only to the process that received it."""

_UNLISTED_RECIPES = {"transcript-people": "dialoom.graphs.transcript_people:RECIPE"}
"""Recipes that are played by commands of their own, and are therefore not listed."""

_RELATIVE_IMPORT = re.compile(r"^[ \t]*from[ \t]+\.", re.MULTILINE)


def recipe_names() -> list[str]:
    """Return the names of the registered recipes, without importing them."""
    return sorted(_find_entry_points())


def is_file_spec(spec: str) -> bool:
    """Return whether a name refers to a recipe in a file."""
    path, colon, name = spec.rpartition(":")
    return bool(colon) and path.endswith(".py") and name.isidentifier()


def is_study(spec: str) -> bool:
    """Return whether a name refers to a study's file."""
    return spec.endswith(".toml")


def is_recipe(spec: str) -> bool:
    """Return whether a name refers to a registered recipe, a recipe in a file, or a study's file."""
    return is_study(spec) or is_file_spec(spec) or spec in _find_entry_points()


def is_relative_file(spec: str) -> bool:
    """Return whether a name refers to a recipe in a file with a relative path."""
    return is_file_spec(spec) and not Path(spec.rpartition(":")[0]).expanduser().is_absolute()


def find_in_folders(spec: str, folders: Sequence[Path]) -> str | None:
    """Return a recipe's name with its file looked up in several folders, in order; `None` if no folder has the file."""
    if not is_relative_file(spec):
        return spec
    return next((f"{folder}/{spec}" for folder in folders if (folder / spec.rpartition(":")[0]).is_file()), None)


def load_recipe(
    spec: str, run: Path | None = None, folders: Sequence[Path] = (), study: Mapping[str, Any] | None = None
) -> Recipe:
    """Return a recipe by its registered name, by `path/to/file.py:NAME`, or by a study's file.

    Args:
        spec: The name, as given or as stored in a run's file.
        run: The run's file, if the recipe of a run is loaded.
        folders: The folders in which a relative path is looked up, in order; by default the working folder.
        study: The study as stored in a run's file, so that the study's file is not read again.

    Raises:
        RunError: If nothing is found under the name, or it is not a recipe.
        DataError: If a study's file is invalid.
    """
    if study is not None or is_study(spec):
        return _load_study(spec, folders, study)
    if spec.startswith(OBJECT_PREFIX):
        raise RunError(
            f"recipe {spec.removeprefix(OBJECT_PREFIX)!r} was passed as an object and cannot be loaded from a file",
            setting="recipe",
            advice=Advice("open_in_python", "pass the object again, as recipe=...", {"path": run or "run.db"}),
        )
    found = find_in_folders(spec, folders) if folders else spec
    if found is None:
        looked = ", ".join(dict.fromkeys(map(str, folders)))
        raise RunError(
            f"recipe {spec!r}: there is no such file in any of {looked}; put it into one of them, or change to the "
            "folder that has it",
            setting="recipe",
        )
    return check_recipe(_load_from_file(found) if is_file_spec(spec) else _load_registered(spec), spec)


def find_recipe(recipe: str | Recipe | type[Recipe]) -> tuple[str, Recipe]:
    """Return the name that a run's file stores for a recipe, and the recipe.

    Args:
        recipe: A name, `path/to/file.py:NAME`, a recipe or its class.

    Raises:
        RunError: If nothing is found under the name, or it is not a recipe.
    """
    from dialoom.graphs.transcript import Transcripts

    if isinstance(recipe, str):
        return recipe, load_recipe(recipe)
    found = check_recipe(recipe, repr(recipe))
    if isinstance(found, Transcripts):
        return found.name, found
    if found.name in {**_find_entry_points(), **_UNLISTED_RECIPES} and type(load_recipe(found.name)) is type(found):
        return found.name, found
    return _file_spec(found) or OBJECT_PREFIX + found.name, found


def check_same_recipe(stored: str, given: Recipe) -> None:
    """Check that a run is resumed with the recipe with which it was created.

    Args:
        stored: The name of the recipe with which the run was created.
        given: The recipe that is given now.

    Raises:
        RunError: If the two recipes differ.
    """
    if given.name != stored:
        raise RunError(f"recipe: this run was created with {stored!r}, but {given.name!r} was given", setting="recipe")


def option_names(recipe: Recipe) -> dict[str, str]:
    """Return the names and aliases by which a recipe's options can be given, each with its field's name."""
    fields = recipe.options_type.model_fields
    return {field.alias or name: name for name, field in fields.items()} | {name: name for name in fields}


def parse_options(recipe: Recipe, given: Mapping[str, Any] | BaseModel | None) -> RecipeOptions:
    """Return a recipe's options from plain values by name or alias; options that are not given have their defaults.

    Raises:
        RunError, SettingError: If an option is invalid; the message states its name and value.
    """
    from pydantic import BaseModel, ValidationError

    from dialoom.settings import build_setting_error, check_truth

    if isinstance(given, BaseModel):
        if not isinstance(given, recipe.options_type):
            raise RunError(
                f"options {type(given).__name__}: {recipe.name} takes {recipe.options_type.__name__}", setting="options"
            )
        return given
    fields = recipe.options_type.model_fields
    names = option_names(recipe)
    values = dict(given or {})
    for key, value in values.items():
        if key not in names:
            known = ", ".join(field.alias or name for name, field in fields.items())
            raise RunError(f"options: {recipe.name} has no option {key!r}; its options are {known}", setting="options")
        if isinstance(value, str) and str(fields[names[key]].annotation).startswith("tuple"):
            values[key] = [value]
    check_truth(recipe.options_type, values)
    try:
        return recipe.options_type.model_validate(values)
    except ValidationError as error:
        problem = first_problem(error)
        name = names.get(problem.place.partition(".")[0])
        shown = problem.message
        if name is None:
            first = names.get(shown.partition(" ")[0])  # a message about several options begins with the name of one
            raise RunError(shown if first is not None else f"options: {shown}", setting=first or "options") from error
        if error.errors()[0]["type"] == "value_error":  # the message comes from the option's own validator
            raise RunError(f"{name} {problem.value!r}: {shown}", setting=name) from error
        raise build_setting_error({**error.errors()[0], "loc": (name,)}) from error


def _load_study(spec: str, folders: Sequence[Path], study: Mapping[str, Any] | None) -> Recipe:
    from dialoom.graphs.simulation import build_simulation
    from dialoom.graphs.study import Study, read_study
    from dialoom.graphs.transcript import build_transcripts
    from dialoom.graphs.transcript_rows import TRANSCRIPT

    if study is not None:
        create = build_transcripts if spec == TRANSCRIPT else build_simulation
        return create(Study.model_validate(study), tuple(map(str, folders)))
    recipe = build_simulation(read_study(Path(spec)))
    for function in recipe.file_functions:
        function.load()
    return recipe


def _file_spec(recipe: Recipe) -> str | None:
    """Return `path/to/file.py:NAME` for a recipe that any process can import from a file; `None` for any other."""
    module = sys.modules.get(type(recipe).__module__)
    source = Path(getattr(module, "__file__", None) or "")
    if module is None or module.__name__ == "__main__" or source.suffix != ".py" or not source.is_file():
        return None
    name = next((name for name, value in vars(module).items() if value is recipe), None)
    if name is None and not vars(recipe):  # without attributes of its own, it equals a new instance
        name = type(recipe).__name__ if vars(module).get(type(recipe).__name__) is type(recipe) else None
    if name is None or _RELATIVE_IMPORT.search(source.read_text(encoding="utf-8")):  # the file is part of a package
        return None
    path, here = source.resolve(), Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{name}"


def _find_entry_points() -> dict[str, EntryPoint]:
    """Return the entry points of installed packages by name; of several with one name, the one that is imported."""
    found: dict[str, EntryPoint] = {}
    for folder in reversed(sys.path):
        with suppress(OSError):  # the folder may not exist
            found |= _read_entry_points(folder, Path(folder).stat().st_mtime_ns)
    return found


@lru_cache(maxsize=64)
def _read_entry_points(folder: str, _changed: int) -> dict[str, EntryPoint]:
    """Return a folder's entry points, cached until the folder changes: finding them reads a file of each package."""
    points = (point for package in distributions(path=[folder]) for point in package.entry_points)
    return {point.name: point for point in points if point.group == ENTRY_POINT_GROUP}


def _load_registered(name: str) -> Any:
    from dialoom.personas.rows import build_study_advice

    if name in _UNLISTED_RECIPES:
        return EntryPoint(name, _UNLISTED_RECIPES[name], ENTRY_POINT_GROUP).load()
    points = _find_entry_points()
    if name not in points:
        raise RunError(
            f"unknown recipe {name!r}; the registered recipes are {', '.join(sorted(points)) or 'none'}, or give "
            "path/to/file.py:NAME or STUDY.toml",
            setting="recipe",
            advice=build_study_advice(Path(name)),
        )
    return points[name].load()


def _load_from_file(spec: str) -> Any:
    from dialoom.roles import BindingError
    from dialoom.roles.players import load_file

    path, _, name = spec.rpartition(":")
    try:
        module = load_file(Path(path), spec)
    except BindingError as error:
        raise RunError(f"recipe {error}", setting="recipe") from error
    if not hasattr(module, name):
        raise RunError(f"recipe {spec!r}: {path} has no {name!r}", setting="recipe")
    return getattr(module, name)

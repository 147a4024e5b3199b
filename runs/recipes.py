"""Finding recipes: by entry point (`dialoom.recipes`), or by `path/to/file.py:NAME`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dialoom.graphs import Recipe

GROUP = "dialoom.recipes"


def recipe_names() -> list[str]:
    """The registered recipes, without importing them."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def is_file_spec(spec: str) -> bool:
    """Whether a recipe is named by its file."""
    path, colon, name = spec.rpartition(":")
    return bool(colon) and path.endswith(".py") and name.isidentifier()


def load_recipe(spec: str) -> Recipe:
    """The recipe of a name or of `path/to/file.py:NAME`.

    Raises:
        RunError: If there is none, or it is no recipe.
    """
    from dialoom.graphs import Recipe

    from .errors import RunError

    found = _from_file(spec) if is_file_spec(spec) else _registered(spec)
    recipe = found() if isinstance(found, type) and issubclass(found, Recipe) else found
    if not isinstance(recipe, Recipe):
        raise RunError(f"recipe {spec!r} is {type(recipe).__name__}; an instance of dialoom.graphs.Recipe is needed")
    return recipe


def _registered(name: str) -> Any:
    from .errors import RunError

    points: dict[str, EntryPoint] = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        known = ", ".join(sorted(points)) or "none"
        raise RunError(f"unknown recipe {name!r}; there are {known}, or give path/to/file.py:NAME")
    return points[name].load()


def _from_file(spec: str) -> Any:
    from dialoom.roles import BindingError
    from dialoom.roles.gateway.callables import load_file

    from .errors import RunError

    path, _, name = spec.rpartition(":")
    try:
        module = load_file(Path(path), spec)
    except BindingError as error:
        raise RunError(f"recipe {error}") from error
    if not hasattr(module, name):
        raise RunError(f"recipe {spec!r}: {path} has no {name!r}")
    return getattr(module, name)

"""Option types shared by several recipes: paths, embedders, axes of a table, and chosen names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from pydantic import AfterValidator

from dialoom.personas import located_embedder

from .recipe import RecipeError

T = TypeVar("T")

_MOST = 12
"""The most names that an error lists."""


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _each_once(values: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))


def _from(lowest: int) -> AfterValidator:
    def check(value: int) -> int:
        if value < lowest:
            raise ValueError(f"give numbers from {lowest}")
        return value

    return AfterValidator(check)


def _some(values: tuple[T, ...]) -> tuple[T, ...]:
    if not values:
        raise ValueError("give at least one")
    return values


FromZero: TypeAlias = Annotated[int, _from(0)]
FromOne: TypeAlias = Annotated[int, _from(1)]

AbsolutePath: TypeAlias = Annotated[Path, AfterValidator(_absolute)]
"""A file or folder, made absolute so that the run can be resumed from any working directory."""

EmbedderName: TypeAlias = Annotated[str, AfterValidator(located_embedder)]
"""`lexical`, `st:MODEL` or `litellm:PROVIDER/MODEL`; the path of a model's folder is made absolute."""

Axis: TypeAlias = Annotated[tuple[T, ...], AfterValidator(_each_once)]
"""Values of an axis of a table, e.g. `Axis[int]`: duplicates are removed, the order is kept."""

FilledAxis: TypeAlias = Annotated[tuple[T, ...], AfterValidator(_some), AfterValidator(_each_once)]
"""An axis with at least one value."""


def chosen(option: str, text: str, known: Iterable[str]) -> list[str]:
    """Return the names that an option lists, separated by commas: without duplicates, in order; all names for `all`.

    Args:
        option: The option's name, for the error.
        text: Its value.
        known: The names to choose from.

    Raises:
        RecipeError: If it lists an unknown name, or none.
    """
    there_are = list(known)
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    if wanted == ["all"]:
        return there_are
    for name in wanted or [text]:
        if name not in there_are:
            more = f" and {len(there_are) - _MOST} more" if len(there_are) > _MOST else ""
            some = ", ".join(there_are[:_MOST]) + more
            raise RecipeError(f"{option}: there is no {name!r}; there are {some}", setting=option)
    return list(dict.fromkeys(wanted))

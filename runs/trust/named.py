"""What a run's file or a saved case names that would run or be called on this machine: code, addresses, files.

What an installed package offers by name, models at their providers' own addresses and `offline/...` are none of it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from dialoom.graphs import RecipeOptions
from dialoom.inputs import DataError, read_bytes
from dialoom.roles import ModelBinding
from dialoom.runs.recipes import is_file_spec


@dataclass(frozen=True, slots=True)
class Named:
    """One such thing.

    Attributes:
        text: What would happen, to be read after "names".
        mark: By which it is known again on this machine.
        spec: As the file has it.
        code: The file whose code would run, if it is known.
    """

    text: str
    mark: str
    spec: str
    code: Path | None = None

    def hash(self) -> str | None:
        """The SHA-256 of its code as that is now; `None` if it has none or it cannot be read."""
        try:
            return None if self.code is None else hashlib.sha256(read_bytes(self.code)).hexdigest()
        except DataError:
            return None


def code_hashes(named: Iterable[Named]) -> dict[str, str]:
    """The SHA-256 of each file of code, by how it is named. What such a file imports in its turn is not in it."""
    return {each.spec: found for each in named if (found := each.hash()) is not None}


def recipe_named(spec: str, found: str | None = None) -> list[Named]:
    """The file of a recipe that is named by one.

    Args:
        spec: The recipe's name.
        found: The same with the file's path as it was found; by default it is in the working folder.
    """
    return [_file("recipe", found or spec, spec)] if is_file_spec(spec) else []


def players_named(models: Mapping[str, ModelBinding]) -> list[Named]:
    """The code and the addresses of players."""
    return [named for binding in models.values() for named in player_named(binding.model, binding.api_base)]


def player_named(model: str, api_base: str | None = None) -> list[Named]:
    """The code of a player, or the address at which it is called: its provider's key would go there.

    An address of this machine is one, too: whoever else is on it may listen there. Some names of models are addresses.
    """
    kind, _, spec = model.partition(":")
    if kind == "graph":
        return [_file("player", spec, model)]
    if kind == "python":
        module = spec.rpartition(":")[0]
        code = _module_file(module)
        text = f"the player {model}, which would run {code or module}"
        return [Named(text, f"player {model} {code or ''}", model, code)]
    address = api_base or (model if "://" in model else None)
    if address is None:
        return []
    return [Named(f"the model {model} at {address}, where your key for it would go", f"model {model} {address}", model)]


def loads_named(loads: Iterable[str]) -> list[Named]:
    """Models that would be loaded into this process, which may bring code with them."""
    return [Named(f"the model {each}, which would be loaded here", f"load {each}", each) for each in loads]


def files_named(options: RecipeOptions) -> list[Named]:
    """The files that a recipe's options name, which planning reads and makes requests of."""
    paths = [path for _, value in options for path in _paths(value)]
    return [Named(f"{path}, which planning would read", f"read {path}", str(path)) for path in paths]


def _paths(value: Any) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
    elif isinstance(value, tuple | list):
        yield from (path for each in value for path in _paths(each))


def _file(what: str, spec: str, whole: str) -> Named:
    path, _, name = spec.rpartition(":")
    code = Path(path).expanduser().resolve()
    return Named(f"the {what} {whole}, which would run {code}", f"{what} {code}:{name}", whole, code)


def _module_file(module: str) -> Path | None:
    """Where a module would be imported from; found without importing the packages that it is in."""
    if (known := getattr(sys.modules.get(module), "__file__", None)) is not None:
        return Path(known).resolve()
    places: list[str] | None = [*sys.path, str(Path.cwd())]
    origin = None
    for part in module.split("."):
        try:
            spec = PathFinder.find_spec(part, places)
        except (ImportError, ValueError, OSError):
            return None
        if spec is None:
            return None
        places = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
        origin = spec.origin
    return Path(origin).resolve() if origin is not None and Path(origin).is_file() else None

"""Loading players by name: `python:package.module:name` and `graph:path/to/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

from .errors import BindingError
from .own_players import OwnPlayer, check_player

PYTHON, GRAPH = "python:", "graph:"
"""How the names begin."""


def named_player(model: str) -> OwnPlayer | None:
    """Return the player that a model's name leads to; `None` if it is no such name.

    Raises:
        BindingError: If the module, file or name is unknown, or what is found there cannot play.
    """
    for prefix, load in ((PYTHON, _in_module), (GRAPH, _in_file)):
        spec = model.removeprefix(prefix)
        if spec and spec != model:
            player = load(spec, model)
            check_player(model, player)
            return cast(OwnPlayer, player)
    return None


def load_file(path: Path, wanted_by: str) -> ModuleType:
    """Import a Python file that is in no package.

    Args:
        path: The file.
        wanted_by: The name that leads to it, for messages.

    Raises:
        BindingError: If there is none or it fails.
    """
    if not path.is_file():
        raise BindingError(f"'{wanted_by}': there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(f"dialoom_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BindingError(f"'{wanted_by}': {path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _in_module(spec: str, wanted_by: str) -> object:
    module_name, _, name = spec.rpartition(":")
    if not module_name or not name:
        raise BindingError(f"'{wanted_by}' is not of the form python:package.module:name")
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise BindingError(f"'{wanted_by}': module {module_name!r} cannot be imported: {error}") from error
    return _attribute(module, name, wanted_by)


def _in_file(spec: str, wanted_by: str) -> object:
    path, _, name = spec.rpartition(":")
    if not path or not name:
        raise BindingError(f"'{wanted_by}' is not of the form graph:path/to/file.py:name")
    return _attribute(load_file(Path(path), wanted_by), name, wanted_by)


def _attribute(module: ModuleType, name: str, wanted_by: str) -> object:
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise BindingError(f"'{wanted_by}': {module.__name__} has no {name!r}") from error

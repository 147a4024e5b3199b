"""Runs of many conversations, for any recipe: plan, engine, store, resume, export, report, API and command line.

Names are imported on first use, because the command line lives in this package and must start at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import RunConfig
    from .engine import Engine
    from .errors import Fault, RunError, StoreError, fault_of
    from .recipes import load_recipe, recipe_names
    from .store import RunFile, RunStore

__all__ = [
    "Engine",
    "Fault",
    "RunConfig",
    "RunError",
    "RunFile",
    "RunStore",
    "StoreError",
    "fault_of",
    "load_recipe",
    "recipe_names",
]

_HOMES = {
    "config": ("RunConfig",),
    "engine": ("Engine",),
    "errors": ("Fault", "RunError", "StoreError", "fault_of"),
    "recipes": ("load_recipe", "recipe_names"),
    "store": ("RunFile", "RunStore"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

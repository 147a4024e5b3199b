"""dialoom: conversations between language models in named roles, with every step recorded.

    import dialoom
    run = dialoom.play("personalens", path="run.db", options={"limit": 8})
    print(run.report())

The five folders beside this package at the repository's root (`runs`, `graphs`, `roles`, `prompts`, `personas`) are
linked into it, so they are imported, installed and documented as parts of it: `dialoom.runs`, `dialoom.graphs`, ...
Names are imported when they are first used, so `import dialoom` is fast.
"""

from __future__ import annotations

import re
from importlib import import_module
from os.path import isfile
from typing import Any

from dialoom.importing import pause_garbage_collection

if isfile(f"{__path__[0]}/runs"):  # noqa: PTH113 - pathlib would take longer than the rest of this module
    raise ImportError(
        "dialoom/runs must be a symbolic link, but is a text file, because this checkout was made without links; run "
        "'git config core.symlinks true' and 'git checkout -- dialoom' to create them (on Windows, in Developer Mode)"
    )


def _find_modules() -> dict[str, str]:
    """Return the module of each public name, read from the stub file."""
    with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as stub:  # noqa: PTH123 - as above
        module, modules = "", {}
        for line in stub:
            if match := re.match(r"from (\S+) import", line):
                module = match[1]
            modules |= dict.fromkeys(re.findall(r"(\w+) as \1\b", line), module)
        return modules


_MODULES = _find_modules()
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with pause_garbage_collection():
        value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

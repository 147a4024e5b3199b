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

from dialoom.importing import collection_paused

if isfile(f"{__path__[0]}/runs"):  # noqa: PTH113 - pathlib would take longer than the rest of this module
    raise ImportError(
        "dialoom/runs must be a symbolic link, but is a text file, because this checkout was made without links; run "
        "'git config core.symlinks true' and 'git checkout -- dialoom' to create them (on Windows, in Developer Mode)"
    )


def _homes() -> dict[str, str]:
    """Return the module of each public name, read from the stub file."""
    with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as listed:  # noqa: PTH123 - as above
        home, found = "", {}
        for line in listed:
            if start := re.match(r"from (\S+) import", line):
                home = start[1]
            found |= dict.fromkeys(re.findall(r"(\w+) as \1\b", line), home)
        return found


_HOME = _homes()
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with collection_paused():
        value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

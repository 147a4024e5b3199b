"""The table of modules in docs/design/layout.md, from the first lines of their docstrings; written by cog."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("dialoom", "runs", "graphs", "roles", "prompts", "personas")


def layout() -> str:
    """Return a heading per package and a line per module; links in `dialoom/` are not followed."""
    parts = []
    for package, modules in groupby(_modules(), key=lambda module: module.parent):
        lines = [f"* `{module.name}`: {_summary(module)}" for module in modules]
        parts.append(f"## {package.relative_to(ROOT).as_posix()}\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _modules() -> Iterator[Path]:
    for folder in FOLDERS:
        found = [path for path in (ROOT / folder).rglob("*.py") if path.name != "__init__.py" or _summary(path)]
        yield from sorted(found, key=lambda path: (path.parent, path.name))


def _summary(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")

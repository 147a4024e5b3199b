"""Rules for the source code: imports, names of commands, SQL and examples in the docs, and start-up imports."""

from __future__ import annotations

import ast
import re
import sqlite3
import subprocess
import sys
from functools import lru_cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import importlinter.cli

from tests.conftest import ROOT, Command

PACKAGES = ("runs", "graphs", "roles", "prompts", "personas", "dialoom")
COMMANDS = "run|resume|retry|status|show|step|replay|judge|report|agree|compact|export|personas|doctor"
COMMAND_LINE_TERMS = re.compile(rf"(?<![\w-])--[a-z]|\bdialoom (?:{COMMANDS})\b")


def test_import_rules_hold() -> None:
    graph = grimp.build_graph("dialoom")
    assert graph.direct_import_exists(importer="dialoom.runs", imported="dialoom.graphs", as_packages=True)
    assert importlinter.cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_no_import_cycles() -> None:
    """No module imports itself by way of others, not even inside functions or for types alone."""
    graph = grimp.build_graph("dialoom")
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imported).prepare()  # raises if there is a cycle


def test_only_the_command_line_names_flags_and_commands() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value!r:.100}"
        for path, tree in _modules()
        if not path.is_relative_to(ROOT / "dialoom" / "cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if COMMAND_LINE_TERMS.search(node.value)
    ]
    assert found == []


@lru_cache
def _modules() -> list[tuple[Path, ast.Module]]:
    """Return each module once: links in `dialoom/` are not followed."""
    return [
        (path, ast.parse(path.read_text(encoding="utf-8")))
        for folder in PACKAGES
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]


def test_help_imports_nothing_heavy() -> None:
    heavy = ("litellm", "langgraph", "sqlite_utils", "numpy", "matplotlib")
    script = (
        "import sys\n"
        "from dialoom.cli import main\n"
        "for command in ([], ['step'], ['replay'], ['report']):\n"
        "    sys.argv = ['dialoom', *command, '--help']\n"
        "    try: main()\n"
        "    except SystemExit: pass\n"
        f"    print([m for m in {heavy} + ('pydantic', 'rich.table') * (not command) if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n[]\n") == 4
    assert "{RUN}..." in done.stdout
    assert "personalens" not in done.stderr


def test_queries_in_the_docs_return_rows(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    dialoom("run", "personalens", *players, "--limit", 3, "-o", "r.db")
    text = "".join((ROOT / "docs" / name).read_text() for name in ("store.md", "design/run-store.md"))
    queries = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    assert len(queries) == 9
    with sqlite3.connect(tmp_path / "r.db") as connection:
        for query in queries:
            assert connection.execute(query).fetchall(), query


def test_docs_name_every_table_and_column(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    dialoom("run", "personalens", *players, "--limit", 1, "-o", "r.db")
    text = "".join((ROOT / "docs" / name).read_text() for name in ("store.md", "design/run-store.md"))
    with sqlite3.connect(tmp_path / "r.db") as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall():
            row = re.search(rf"^\| `{table}` \| .*$", text, re.MULTILINE)
            assert row is not None, table
            named = set(re.findall(r"`(\w+)`", row[0]))
            columns = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
            assert columns <= named, (table, columns - named)


def test_assistants_in_the_docs_can_be_played(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    for spec in ("python:docs.examples.assistants:echo", "graph:docs/examples/assistants.py:clerk"):
        name = spec.partition(":")[0]
        cast = [*players[:2], *players[4:], "--model", f"assistant={spec}"]
        dialoom("run", "personalens", *cast, "--limit", 1, "-o", f"{name}.db")
        shown = dialoom("show", f"{name}.db", 1).stdout
        assert ("I have taken care of that." if name == "python" else "the user has spoken 3 times") in shown

"""What the documents show works as it stands there."""

from __future__ import annotations

import ast
import contextlib
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, Command
from .processes import Started


def read(name: str) -> str:
    """A file at the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_checkpointer_works_in_a_graph_of_ones_own(tmp_path: Path) -> None:
    """The program that docs/store.md writes."""
    text = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    with Started(tmp_path, script=example) as process:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
    assert out.startswith("['Ada', 'Hello for the 1. time.', 'Ben', 'Hello for the 3. time.']\nCompacted(before=")


def test_the_examples_of_the_python_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, as one program; where a comment behind an expression is a value, that is what comes out."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    compared = 0
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        for statement in ast.parse(block).body:
            source = ast.get_source_segment(block, statement)
            assert source is not None
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), "docs/python.md", "exec"), names)
                continue
            value = eval(compile(ast.Expression(statement.value), "docs/python.md", "eval"), names)
            line = block.splitlines()[(statement.end_lineno or 1) - 1]
            with contextlib.suppress(SyntaxError, ValueError):
                expected = ast.literal_eval(line.rpartition("  # ")[2].partition(":")[0].strip() or "none")
                assert value == expected, source
                compared += 1
    assert compared >= 6


def test_the_dialogue_of_the_readme_is_the_one_of_the_demo(dialoom: Command) -> None:
    """Line by line, but for what it leaves out and where it breaks lines."""
    shown = re.search(r"\$ dialoom show demo/run\.db (4)\n(.*?)\n\n\$ dialoom report", read("README.md"), re.DOTALL)
    made = re.search(r"dialoom (run .*) -o demo/run\.db$", read("Makefile"), re.MULTILINE)
    assert shown is not None and made is not None
    dialoom(*made[1].split(), "--limit", shown[1], "-o", "run.db")
    came_out = " ".join(dialoom("show", "run.db", shown[1]).stdout.split())
    pieces = [" ".join(piece.split()) for piece in re.split(r"\.\.\.\n|\.\.\.$|\n\n", shown[2])]
    assert len(pieces) > 8
    assert [piece for piece in pieces if piece not in came_out] == []


def test_the_library_example_of_debugging(dialoom: Command, tmp_path: Path) -> None:
    """The session that docs/debugging.md writes, on the dialogue that it steps through."""
    text = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    made = re.search(r"^    dialoom (run .* -o talk\.db)$", text, re.MULTILINE)
    assert made is not None
    dialoom(*made[1].split())
    with Started(tmp_path, script=example) as process:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
    assert "Pair(left=('assistant', 'Thank you for the information." in out
    assert "Your alarm is set for 3:30 PM." in out


def test_the_recipe_of_the_docs_is_played_judged_and_reported(tmp_path: Path, dialoom: Command) -> None:
    """The first program of docs/new-recipe.md, with the pivot of its second, offline and without another line."""
    text = (ROOT / "docs" / "new-recipe.md").read_text(encoding="utf-8")
    recipe, pivots, *_ = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    imported, declared = pivots.split("\n\n", 1)
    place = "\n    def scenarios("
    indented = "".join(f"    {line}\n" for line in declared.splitlines())
    (tmp_path / "support.py").write_text(f"{imported}\n{recipe.replace(place, f'{indented}{place}', 1)}")
    dialoom("run", "support.py:RECIPE", "-o", "support.db")
    shown = dialoom("report", "support.db", "--table", "scores").stdout
    assert "ended by the caller %" in shown and "change an address" in shown
    judged = dialoom("judge", "support.db", "--model", "offline/placeholder", "--name", "again").stdout
    assert "2" in judged

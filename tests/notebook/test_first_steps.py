"""The notebook of the documentation works, and its saved output is current."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from docs.examples.execute import execute_notebook, read_notebook
from tests.conftest import ROOT

NOTEBOOK = ROOT / "docs" / "examples" / "first-steps.ipynb"
_TEXT = ("text/markdown", "text/html", "text/plain")


@pytest.fixture(scope="module")
def fresh() -> Any:
    """Return the notebook as executed now; it raises if a cell fails."""
    return execute_notebook(NOTEBOOK)


def outputs(notebook: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield each output's cell, kind and content."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error"
            if output["output_type"] == "stream":
                yield cell["id"], output["name"], output["text"]
            for kind, content in output.get("data", {}).items():
                yield cell["id"], kind, content


def test_notebook_shows_tables_and_a_chart(fresh: Any) -> None:
    kinds = [kind for _, kind, _ in outputs(fresh)]
    assert kinds.count("image/png") == 1
    assert kinds.count("text/html") >= 2 and kinds.count("text/markdown") >= 2
    assert "stderr" not in kinds
    assert all("<table" in content for _, kind, content in outputs(fresh) if kind == "text/html")
    assert all("| --- |" in content for _, kind, content in outputs(fresh) if kind == "text/markdown")


def test_saved_output_is_current(fresh: Any) -> None:
    texts = [
        sorted(each for each in outputs(notebook) if each[1] in (*_TEXT, "stdout"))
        for notebook in (read_notebook(NOTEBOOK), fresh)
    ]
    assert texts[0] == texts[1] and len(texts[0]) > 8


def test_notebook_contains_nothing_machine_specific() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|Users)/|dialoom-\w{8}\b|\d\d:\d\d:\d\d", text)
    notebook = read_notebook(NOTEBOOK)
    assert all("execution" not in cell["metadata"] for cell in notebook.cells)


def test_links_of_the_notebook_resolve() -> None:
    links = [
        link for cell in read_notebook(NOTEBOOK).cells for link in re.findall(r"\]\((?!http)([^)#]+)", cell["source"])
    ]
    assert len(links) > 4
    assert all((NOTEBOOK.parent / link).is_file() for link in links)

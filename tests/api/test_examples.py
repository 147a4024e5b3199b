"""Every public name has an example in its docstring; the examples that need no key or network are run."""

from __future__ import annotations

import asyncio
import doctest
import inspect
import json
from pathlib import Path
from typing import Any

import pydantic
import pytest

import dialoom

from ..conftest import Command, MadeOnce

NAMES = sorted(set(dialoom.__all__) - {"Event", "__version__"})
"""All public names but an alias and a string, which have no docstring of their own."""


def _played(dialoom: Command, folder: Path) -> None:
    """Play the run that the examples open."""
    dialoom("run", "personalens", "--limit", 4, "-o", "run.db")
    dialoom("step", "run.db", 1, input="save talk.case.json\nquit\n")
    row = {"messages": [{"role": "user", "content": "Where is my order?"}, {"role": "assistant", "content": "Here."}]}
    (folder / "talks.jsonl").write_text(json.dumps(row) + "\n")
    labelled = {**row, "goal": "learn where the order is", "label:anna": {"resolved": "yes"}}
    (folder / "labelled.jsonl").write_text(json.dumps(labelled) + "\n")
    (folder / "judges.toml").write_text(
        '[people]\nrows = [{ name = "anybody" }]\n[[judge]]\nmetric = "resolved"\nrubric = "Reached: {{ task.goal }}"\n'
    )


async def _my_agent(messages: list[dict[str, Any]]) -> str:
    return f"Noted: {messages[-1]['content'][:40]}"


def test_every_public_name_has_an_example() -> None:
    assert [name for name in NAMES if ">>>" not in (inspect.getdoc(getattr(dialoom, name)) or "")] == []


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_docstrings_work(name: str, made_once: MadeOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made_once(_played))
    known = {"dialoom": dialoom, "asyncio": asyncio, "pydantic": pydantic, "Path": Path, "my_agent": _my_agent}
    text = inspect.getdoc(getattr(dialoom, name)) or ""
    test = doctest.DocTestParser().get_doctest(text, known, name, None, None)
    shown: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=shown.append)
    assert result.failed == 0, "".join(shown)

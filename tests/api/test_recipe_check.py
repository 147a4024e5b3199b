"""A recipe that lacks a piece, or has it in another form: told in a sentence, before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Recipe, Scenario

from .counting import counting, speaker


class Called(Scenario):
    """Its `label` is a method."""

    def label(self) -> str:  # type: ignore[override]
        """Not a property."""
        return "called"


def _without(name: str) -> Callable[[type[Recipe]], Any]:
    def without(kind: type[Recipe]) -> Any:
        delattr(kind, name)
        return kind

    return without


def _with(**values: Any) -> Callable[[type[Recipe]], Any]:
    return lambda kind: type("Other", (kind,), values)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (_without("summary"), "Counting needs `summary`"),
        (_without("scenario_type"), "Counting needs `scenario_type`"),
        (lambda kind: type("Bare", (Recipe,), {"initial": kind.initial}), "Bare needs `graph`, `outcome`, `scenarios`"),
        (_with(__init__=lambda _self, _words: None), "Other is not made without arguments; give an instance of it"),
        (_with(roles=("speaker",)), "`roles` of Other is ('speaker',); a temperature by role is needed"),
        (_with(prompts="counting/speaker"), "`prompts` of Other is 'counting/speaker'; a tuple of ids is needed"),
        (_with(scenario_type=dict), "`scenario_type` of Other is <class 'dict'>; a subclass of Scenario is needed"),
        (_with(exporters=dict), "Other defines `exporters` and must inherit WithExports"),
        (_with(scenario_type=Called), "`label` of Called is no property; write @property above it"),
        (
            _with(graph=lambda _self, _options: None),
            "`graph` of Other gives NoneType; a StateGraph that is not compiled",
        ),
        (
            lambda kind: _with(graph=lambda self, options: kind.graph(self, options).compile())(kind),
            "`graph` of Other gives CompiledStateGraph; a StateGraph that is not compiled is needed; leave out `.comp",
        ),
    ],
)
def test_a_piece_that_is_missing_or_wrong(changed: Callable[[type[Recipe]], Any], message: str, tmp_path: Path) -> None:
    """The error names the class and the piece."""
    with pytest.raises(dialoom.DialoomError) as error:
        dialoom.plan(changed(counting(tmp_path)), path=tmp_path / "run.db", models={"speaker": speaker})
    assert error.value.message.startswith(f"recipe: {message}")
    assert error.value.setting == "recipe"
    assert not list(tmp_path.glob("run.db*"))

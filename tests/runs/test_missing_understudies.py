"""A role that no understudy plays is told before anything is made, not by a thousand failures."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialoom

from .door.counting import counting


def test_a_role_that_no_understudy_plays_is_told_at_once(tmp_path: Path) -> None:
    """With its name; nothing is written, and an estimate says why there is none."""
    recipe = counting(tmp_path)
    with pytest.raises(dialoom.DialoomError, match="role 'speaker' is left to offline/attentive") as error:
        dialoom.play(recipe, path=tmp_path / "run.db")
    assert error.value.setting == "models"
    assert not list(tmp_path.glob("*.db*"))
    with pytest.raises(dialoom.DialoomError, match=r"cannot be estimated.*no understudy plays the role 'speaker'"):
        dialoom.estimate(recipe, model="openai/gpt-4o-mini")

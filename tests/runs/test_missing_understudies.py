"""A role that no understudy plays is told before anything is made, not by a thousand failures."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialoom
from dialoom.roles.offline import Draws, MarkedRequest, SilentUnderstudyError, Words, play, understudy

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


@pytest.mark.parametrize(
    ("bank", "told"),
    [
        ('anser = "Yes."', "speaker.toml: there is no bank answer at its top; there are anser"),
        ('answer = ["Yes, {nmae}."]', "speaker.toml: answer wants {nmae}; the slots that are filled: name"),
        ('[answer]\nlong = "Yes."', "speaker.toml: there is no bank answer at its top; there are none"),
    ],
)
def test_an_understudy_without_words_names_its_file_and_what_is_in_it(tmp_path: Path, bank: str, told: str) -> None:
    """A misspelled bank or slot fails the call instead of saying nothing."""
    (tmp_path / "speaker.toml").write_text(bank + "\n")
    words = Words(tmp_path / "speaker.toml")

    @understudy("silence", "mute")
    def speaker(_request: MarkedRequest, draws: Draws) -> str:
        return words.say("answer", draws, {"name": "Ada"})

    with pytest.raises(SilentUnderstudyError) as error:
        play("attentive", [{"role": "user", "content": "Hello"}], "silence/speech", "mute")
    assert told in str(error.value)

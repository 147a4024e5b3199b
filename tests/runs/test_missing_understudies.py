"""A role that no understudy plays is told before anything is made, not by a thousand failures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

import dialoom
from dialoom.roles.offline import Draws, MarkedRequest, SilentUnderstudyError, Words, play, understudy
from tests.api.counting import counting


def test_a_role_that_no_understudy_plays_is_told_at_once(tmp_path: Path) -> None:
    """With its name, where an understudy was asked for; nothing is written."""
    recipe = counting(tmp_path)
    with pytest.raises(dialoom.DialoomError, match="role 'speaker' is left to offline/attentive") as error:
        dialoom.play(recipe, path=tmp_path / "run.db", model="offline/attentive")
    assert error.value.setting == "models"
    assert not list(tmp_path.glob("*.db*"))


def test_a_role_without_an_understudy_is_played_by_the_placeholder(tmp_path: Path) -> None:
    """Twice the same, and named as such; an estimate is made with it."""
    recipe = counting(tmp_path)
    runs = [dialoom.play(recipe, path=tmp_path / f"{number}.db") for number in (1, 2)]
    assert runs[0].config.models["speaker"].model == "offline/placeholder"
    assert runs[0].status().failed == 0
    spoken = [[line.content for each in run.episodes() for line in each.outcome.messages] for run in runs]
    assert spoken[0] == spoken[1] and all(spoken[0])
    assert dialoom.estimate(recipe, model="openai/gpt-4o-mini").total.calls


class Answers(BaseModel):
    """A reply with most kinds of fields, and a rule of its own."""

    chosen: Literal["a", "b"]
    numbers: Annotated[list[int], Field(min_length=2, max_length=4)]
    share: Annotated[float, Field(ge=0, le=1)]
    names: Annotated[tuple[str, ...], Field(min_length=2)]
    nested: dict[str, str] | None

    @field_validator("names")
    @classmethod
    def _differ(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("the names must differ")
        return names


def test_the_placeholder_gives_valid_instances_of_any_reply_type() -> None:
    """Drawn from the request: another seed gives another one."""
    found = {
        play(
            "placeholder",
            [{"role": "user", "content": "<task>Buy tea</task>"}],
            "x/y",
            "judge",
            seed=seed,
            reply_type=Answers,
        ).words
        for seed in range(5)
    }
    assert len(found) > 1
    for text in found:
        Answers.model_validate_json(text)


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

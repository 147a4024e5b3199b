"""A recipe as a name, a file, an object, or a class that is in no file."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.cli.errors import worded
from dialoom.graphs.personalens import RECIPE
from dialoom.roles.players import load_file
from dialoom.runs import recipe_names
from dialoom.runs.recipes import find_recipe
from tests.conftest import ROOT

from .counting import counting, speaker
from .players import Messages, talk, told

EXAMPLE = ROOT / "docs" / "examples" / "twenty_questions" / "recipe.py"


async def keeper(_: Messages) -> str:
    """Gives in at once, whatever is asked."""
    return "You have found it."


@pytest.mark.parametrize("is_class", [True, False])
def test_a_class_that_is_in_no_file_plays_and_is_read(is_class: bool, tmp_path: Path) -> None:
    """The handle that comes back knows the recipe; another one is told of it, or says what is missing."""
    recipe = counting(tmp_path) if is_class else counting(tmp_path)()
    path = tmp_path / "run.db"
    bound = dialoom.Budget(max_calls=3)
    run = dialoom.play(recipe, path=path, models={"speaker": speaker}, budget=bound, concurrency=1)
    assert run.config.recipe == "object:counting"
    assert run.recipe.name == "counting" and [table.name for table in run.report().tables] == ["faults"]
    assert run.scenario(2).facets() == {"number": 1}
    assert [line.content for line in next(run.episodes()).outcome.messages] == ["1", "2"]

    other = dialoom.open_run(path)
    assert other.status().done == 1, "what needs no recipe needs none"
    for needing in (lambda: other.recipe, other.report, lambda: other.scenario(1), other.resume):
        with pytest.raises(
            dialoom.DialoomError, match="recipe 'counting' was given as an object and is in no"
        ) as error:
            needing()
        assert error.value.setting == "recipe"
        assert error.value.message.endswith("is in no file")
        assert worded(error.value).endswith(f"; open the run in Python: dialoom.open_run('{path}', recipe=THE_CLASS)")
    with pytest.raises(dialoom.DialoomError, match=r"; give it again, as recipe=\.\.\."):
        dialoom.resume(path, models={"speaker": speaker})

    again: dict[str, Any] = {"models": {"speaker": speaker}, "budget": dialoom.Budget(max_calls=None)}
    whole = dialoom.open_run(path, counting(tmp_path)).resume(**again)
    assert whole.status().done == 3
    assert talk(whole) == talk(dialoom.play(recipe, path=tmp_path / "whole.db", models={"speaker": speaker}))


def test_a_package_that_is_installed_meanwhile_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a new process, though what was found before is not looked for again; it may stand in another's place."""
    monkeypatch.syspath_prepend(tmp_path)
    os.utime(tmp_path, (0, 0))  # or the folder might not seem to have changed within one tick of the kernel's clock
    assert "lessons" not in recipe_names() and "aloe" in recipe_names()
    information = tmp_path / "lessons-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: lessons\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[dialoom.recipes]\nlessons = lessons:RECIPE\naloe = lessons:RECIPE\n[other]\nnothing = lessons:RECIPE\n"
    )
    (tmp_path / "lessons.py").write_text("RECIPE = 3\n")
    assert "lessons" in recipe_names() and "nothing" not in recipe_names()
    for name in ("lessons", "aloe"):
        with pytest.raises(dialoom.DialoomError, match=f"recipe '{name}' is int"):
            dialoom.play(name, path=tmp_path / "run.db")


def test_another_recipe_than_the_one_that_made_the_run(tmp_path: Path) -> None:
    """Is refused wherever a recipe is given again."""
    path = dialoom.plan(counting(tmp_path), path=tmp_path / "run.db", models={"speaker": speaker}).path
    for action in (dialoom.open_run, dialoom.resume, dialoom.judge, dialoom.retry):
        with pytest.raises(
            dialoom.DialoomError, match=r"^recipe: this run was made by 'counting', 'personalens' was given"
        ) as error:
            action(path, recipe="personalens")
        assert error.value.setting == "recipe"
    assert len(dialoom.open_run(path, recipe=counting(tmp_path))) == 3


def test_a_registered_recipe_given_as_an_object_is_kept_by_its_name(release: Path, tmp_path: Path) -> None:
    """Any process goes on with it."""
    run = dialoom.plan(RECIPE, path=tmp_path / "run.db", **told(release))
    assert run.config.recipe == "personalens"
    assert dialoom.resume(run.path).status().done == 6


def test_a_recipe_of_a_file_is_kept_by_its_path(tmp_path: Path) -> None:
    """Given as `path/to/file.py:NAME`."""
    run = dialoom.play(
        f"{EXAMPLE}:RECIPE",
        path=tmp_path / "run.db",
        model=keeper,
        options={"words": "piano,heron"},
    )
    assert [episode.outcome.ended_by for episode in dialoom.open_run(run.path).episodes()] == ["found"] * 2


@pytest.mark.parametrize("given", ["TwentyQuestions", "RECIPE"])
def test_a_class_or_instance_of_an_imported_file_is_kept_by_its_path(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that any process finds it; the path is relative to the working folder, if it is below it."""
    module = load_file(EXAMPLE, "test")
    monkeypatch.chdir(tmp_path)
    assert find_recipe(getattr(module, given))[0] == f"{EXAMPLE}:{given}"
    monkeypatch.chdir(ROOT / "docs")
    run = dialoom.plan(getattr(module, given), path=tmp_path / "run.db", model=keeper, options={"words": "piano"})
    assert run.config.recipe == f"examples/twenty_questions/recipe.py:{given}"
    assert dialoom.resume(run.path).status().done == 1, "without being told of the recipe"


def test_what_its_file_alone_does_not_give_is_kept_as_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a package with imports of its neighbours, and an instance that holds something."""
    (tmp_path / "parlour").mkdir()
    (tmp_path / "parlour" / "__init__.py").touch()
    (tmp_path / "parlour" / "words.py").write_text("WORD = 'piano'\n")
    (tmp_path / "parlour" / "game.py").write_text(f"from .words import WORD\n{EXAMPLE.read_text()}")
    monkeypatch.syspath_prepend(tmp_path)
    game = importlib.import_module("parlour.game")
    assert find_recipe(game.RECIPE)[0] == "object:twenty-questions"
    own = load_file(EXAMPLE, "test").TwentyQuestions()
    own.patience = 3
    assert find_recipe(own)[0] == "object:twenty-questions"


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("personallens", "unknown recipe 'personallens'; there are aloe"),
        (f"{EXAMPLE}:RECEIPT", "has no 'RECEIPT'"),
        ("nowhere.py:RECIPE", "there is no file"),
        (7, "recipe '7' is int; an instance of"),
        (dict, "is type; an instance of"),
    ],
)
def test_what_is_no_recipe(recipe: Any, message: str, tmp_path: Path) -> None:
    """Is told as such."""
    with pytest.raises(dialoom.DialoomError, match=message) as error:
        dialoom.play(recipe, path=tmp_path / "run.db")
    assert error.value.setting == "recipe"
    assert not list(tmp_path.iterdir())

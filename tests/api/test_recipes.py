"""Recipes and settings given to the Python API, and what is refused with the argument's name."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Recipe, Scenario
from dialoom.cli.errors import format_error
from dialoom.graphs.personalens import RECIPE, PersonaLensOptions
from dialoom.roles.players import load_file
from dialoom.runs.configuration.recipes import find_recipe, recipe_names
from tests.conftest import ROOT

from .counting import counting, speaker
from .players import Messages, outcome_texts, run_settings

EXAMPLE = ROOT / "docs" / "examples" / "twenty_questions" / "recipe.py"


async def keeper(_: Messages) -> str:
    """Give in at once, whatever is asked."""
    return "You have found it."


@pytest.mark.parametrize("is_class", [True, False])
def test_recipe_class_without_a_file_is_played_and_read(is_class: bool, tmp_path: Path) -> None:
    recipe = counting(tmp_path) if is_class else counting(tmp_path)()
    path = tmp_path / "run.db"
    bound = dialoom.Budget(max_calls=3)
    run = dialoom.play(recipe, path=path, models={"speaker": speaker}, budget=bound, concurrency=1)
    assert run.config.recipe == "object:counting"
    assert run.recipe.name == "counting" and [table.name for table in run.report().tables] == ["faults"]
    assert run.scenario(2).facets() == {"number": 1}
    assert [line.content for line in next(run.episodes()).outcome.messages] == ["1", "2"]

    other = dialoom.open_run(path)
    assert other.status().done == 1, "the status needs no recipe"
    for needing in (lambda: other.recipe, other.report, lambda: other.scenario(1), other.resume):
        with pytest.raises(
            dialoom.DialoomError, match="recipe 'counting' was passed as an object and cannot be"
        ) as error:
            needing()
        assert error.value.setting == "recipe"
        assert error.value.message.endswith("cannot be loaded from a file")
        assert format_error(error.value).endswith(
            f"; open the run in Python: dialoom.open_run('{path}', recipe=THE_CLASS)"
        )
    with pytest.raises(dialoom.DialoomError, match=r"; pass the object again, as recipe=\.\.\."):
        dialoom.resume(path, models={"speaker": speaker})

    again: dict[str, Any] = {"models": {"speaker": speaker}, "budget": dialoom.Budget(max_calls=None)}
    whole = dialoom.open_run(path, counting(tmp_path)).resume(**again)
    assert whole.status().done == 3
    assert outcome_texts(whole) == outcome_texts(
        dialoom.play(recipe, path=tmp_path / "whole.db", models={"speaker": speaker})
    )


def test_newly_installed_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    os.utime(tmp_path, (0, 0))  # so that the folder's time changes even within one tick of the kernel's clock
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


def test_recipe_other_than_the_runs_own_is_refused(tmp_path: Path) -> None:
    path = dialoom.plan(counting(tmp_path), path=tmp_path / "run.db", models={"speaker": speaker}).path
    for action in (dialoom.open_run, dialoom.resume, dialoom.judge, dialoom.retry):
        with pytest.raises(
            dialoom.DialoomError, match=r"^recipe: this run was created with 'counting', but 'personalens' was given"
        ) as error:
            action(path, recipe="personalens")
        assert error.value.setting == "recipe"
    assert len(dialoom.open_run(path, recipe=counting(tmp_path))) == 3


def test_registered_recipe_given_as_object_is_stored_by_name(release: Path, tmp_path: Path) -> None:
    run = dialoom.plan(RECIPE, path=tmp_path / "run.db", **run_settings(release))
    assert run.config.recipe == "personalens"
    assert dialoom.resume(run.path).status().done == 6


def test_recipe_of_a_file_is_stored_by_path(tmp_path: Path) -> None:
    run = dialoom.play(f"{EXAMPLE}:RECIPE", path=tmp_path / "run.db", model=keeper, options={"words": "piano,heron"})
    assert [episode.outcome.ended_by for episode in dialoom.open_run(run.path).episodes()] == ["found"] * 2


@pytest.mark.parametrize("given", ["TwentyQuestions", "RECIPE"])
def test_recipe_class_of_an_imported_file_is_stored_by_path(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load_file(EXAMPLE, "test")
    monkeypatch.chdir(tmp_path)
    assert find_recipe(getattr(module, given))[0] == f"{EXAMPLE}:{given}"
    monkeypatch.chdir(ROOT / "docs")
    run = dialoom.plan(getattr(module, given), path=tmp_path / "run.db", model=keeper, options={"words": "piano"})
    assert run.config.recipe == f"examples/twenty_questions/recipe.py:{given}"
    assert dialoom.resume(run.path).status().done == 1, "the recipe is found without an argument"


def test_recipe_that_needs_more_than_its_file_is_stored_as_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        ("personallens", "unknown recipe 'personallens'; the registered recipes are aloe"),
        (f"{EXAMPLE}:RECEIPT", "has no 'RECEIPT'"),
        ("nowhere.py:RECIPE", "there is no file"),
        (7, "recipe '7' is int; it must be an instance of"),
        (dict, "is type; it must be an instance of"),
    ],
)
def test_object_that_is_not_a_recipe_is_refused(recipe: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(dialoom.DialoomError, match=message) as error:
        dialoom.play(recipe, path=tmp_path / "run.db")
    assert error.value.setting == "recipe"
    assert not list(tmp_path.iterdir())


class Called(Scenario):
    """A scenario whose `label` is a method."""

    def label(self) -> str:  # type: ignore[override]
        """Return a label, but not as a property."""
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
        (
            _with(__init__=lambda _self, _words: None),
            "Other cannot be created without arguments; give an instance of it",
        ),
        (
            _with(roles=("speaker",)),
            "`roles` of Other is ('speaker',); it must be a mapping from roles to temperatures",
        ),
        (
            _with(prompts="counting/speaker"),
            "`prompts` of Other is 'counting/speaker'; it must be a tuple of prompt ids",
        ),
        (_with(scenario_type=dict), "`scenario_type` of Other is <class 'dict'>; it must be a subclass of Scenario"),
        (
            _with(scenarios=lambda *_: iter([{"word": "one"}])),
            "`scenarios` of Other yields {'word': 'one'}; it must yield objects of ",
        ),
        (_with(formats={}), "Other defines `formats` and must inherit from WithExports"),
        (_with(scenario_type=Called), "`label` of Called is not a property; write @property above it"),
        (
            _with(graph=lambda _self, _options: None),
            "`graph` of Other returns NoneType; it must return a StateGraph that is not compiled",
        ),
        (
            lambda kind: _with(graph=lambda self, options: kind.graph(self, options).compile())(kind),
            "`graph` of Other returns CompiledStateGraph; it must return a StateGraph that is not compiled; leave out",
        ),
    ],
)
def test_missing_or_wrong_recipe_part_is_named_with_its_class(
    changed: Callable[[type[Recipe]], Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(dialoom.DialoomError) as error:
        dialoom.plan(changed(counting(tmp_path)), path=tmp_path / "run.db", models={"speaker": speaker})
    assert error.value.message.startswith(f"recipe: {message}")
    assert error.value.setting == "recipe"
    assert not list(tmp_path.glob("run.db*"))


@pytest.mark.parametrize(
    ("settings", "setting", "message"),
    [
        ({"modles": {"user": "x"}}, "modles", r"modles is not a setting; did you mean models\?"),
        ({"max_cost": 0.01}, "max_cost", r"part of the budget: budget=dialoom.Budget\(max_cost=...\)"),
        ({"limit": 2}, "limit", "limit is an option of the recipe; give it as options={'limit': ...}"),
        ({"options": {"limits": 3}}, "options", "personalens has no option 'limits'; its options are profiles, users"),
        ({"options": {"limit": 0}}, "limit", "limit must be at least 1, got 0"),
        ({"options": {"limit": "some"}}, "limit", "limit must be a whole number, got 'some'"),
        ({"options": {"setting": ["base", "E"]}}, None, "E"),
        (
            {"options": dialoom.RecipeOptions()},
            "options",
            "options RecipeOptions: personalens takes PersonaLensOptions",
        ),
        ({"options": {"users": "nobody"}}, None, "nobody"),
        (
            {"structured": "sometimes"},
            "structured",
            "structured must be one of auto, .*, got 'sometimes'",
        ),
        ({"seed": "7"}, "seed", "seed must be a whole number, got '7'"),
        ({"seed": True}, "seed", "seed must be a whole number, got True"),
        ({"concurrency": 0}, "concurrency", "concurrency must be at least 1, got 0"),
        ({"budget": 5}, "budget", "budget must be a Budget or its bounds by name, .* got 5"),
        (
            {"budget": {"max_call": 1}},
            "budget",
            "budget can only have the bounds max_calls, .*, got 'max_call'",
        ),
        ({"budget": {"max_calls": -1}}, "max_calls", "max_calls must be at least 0, got -1"),
        ({"rpm": 0}, "rpm", "rpm must be at least 1, got 0"),
        ({"tpm": {"openai/x": 1.5}}, "tpm", "tpm of openai/x must be a whole number, got 1.5"),
        (
            {"fail_on_error": "half"},
            "fail_on_error",
            "fail_on_error must be a number .*, got 'half'",
        ),
        (
            {"model": "openai/secret-one", "budget": dialoom.Budget(max_cost=1)},
            "max_cost",
            "price of openai/secret-one",
        ),
        ({"prompts": "nowhere"}, None, "nowhere"),
    ],
)
def test_wrong_setting_is_refused_without_a_file(
    settings: dict[str, Any], setting: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    for action in (dialoom.play, dialoom.plan):
        with pytest.raises(dialoom.DialoomError, match=message) as error:
            action("personalens", path=tmp_path / "run.db", **settings)
        assert setting is None or error.value.setting == setting
    with pytest.raises(dialoom.DialoomError, match=message):
        dialoom.estimate("personalens", **settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dialoom.Budget(max_calls=-1), "max_calls must be at least 0, got -1"),
        (lambda: dialoom.Budget(max_call=1), "budget can only have the bounds max_calls, .*, got 'max_call'"),  # type: ignore[call-arg]
        (lambda: dialoom.Price(-1, 2), "the input price must be at least 0 US dollars per million tokens, got -1"),
        (lambda: dialoom.Price(1, "2"), "the output price must be at least 0 .*, got '2'"),  # type: ignore[arg-type]
    ],
)
def test_wrong_bound_or_price_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(dialoom.DialoomError, match=message):
        make()


@pytest.mark.parametrize(("bounds", "calls"), [({}, None), ({"max_calls": 1}, 1)])
def test_budget_is_given_by_its_limits(
    bounds: dict[str, int], calls: int | None, release: Path, tmp_path: Path
) -> None:
    run = dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release, budget=bounds))
    assert run.ended is not None
    assert run.ended.is_complete == (calls is None)
    assert calls in (None, run.status().usage.calls)


def test_missing_argument_names_the_called_function() -> None:
    with pytest.raises(TypeError, match=r"^play\(\) missing 1 required keyword-only argument: 'path'$"):
        dialoom.play("personalens")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^aplay\(\) missing"):
        dialoom.aplay("personalens")  # type: ignore[call-arg, unused-coroutine]


def test_setting_for_a_model_that_plays_no_role_is_reported(release: Path, tmp_path: Path) -> None:
    events: list[Any] = []
    user, *_ = played = [f"python:tests.api.players:{role}" for role in ("user", "assistant", "judge")]
    settings = run_settings(
        release, context={"gpt-5-mimi": 8000, user: 90_000}, rpm={"other": 3}, on_event=events.append
    )
    run = dialoom.plan("personalens", path=tmp_path / "run.db", **settings)
    notes = [event.text for event in events if isinstance(event, dialoom.Notice)]
    assert [note for note in notes if "no role" in note] == [
        f"{setting}: no role is played by {name}, so the setting has no effect; the models are {', '.join(played)}"
        for setting, name in (("context", "gpt-5-mimi"), ("rpm", "other"))
    ]
    events.clear()
    dialoom.resume(run.path, context={user: 91_000}, on_event=events.append)
    assert not [event for event in events if isinstance(event, dialoom.Notice)]


def test_wrong_source_is_refused_with_its_file(release: Path, tmp_path: Path) -> None:
    (release / "data" / "profile" / "user8" / "tasks.json").write_text("{")
    with pytest.raises(dialoom.DialoomError, match=r"user8.*tasks\.json"):
        dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release))
    assert not list(tmp_path.glob("run.db*"))


def test_existing_file_is_not_overwritten(release: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    dialoom.play("personalens", path=path, **run_settings(release))
    with pytest.raises(
        dialoom.DialoomError, match=r"exists; continue it with dialoom\.resume\('.*run\.db'\), or give"
    ) as error:
        dialoom.play("personalens", path=path, **run_settings(release))
    assert error.value.advice is not None and error.value.advice.action == "resume_or_new_path"
    path.write_text("a diary")
    with pytest.raises(dialoom.DialoomError, match=r"run\.db exists and is not a run; give another path"):
        dialoom.play("personalens", path=path, **run_settings(release))
    assert path.read_text() == "a diary"
    for action in (dialoom.open_run, dialoom.resume, dialoom.judge, dialoom.retry):
        with pytest.raises(dialoom.DialoomError, match=r"run.db"):
            action(path)
        with pytest.raises(dialoom.DialoomError, match="there is no run file"):
            action(tmp_path / "other.db")


def test_options_by_name_alias_or_object_are_equal(release: Path, tmp_path: Path) -> None:
    given: list[Any] = [
        {"profiles": release, "setting": "I", "limit": 2},
        {"profiles": str(release), "settings": ("I",), "limit": 2},
        PersonaLensOptions(profiles=release, settings=("I",), limit=2),
    ]
    runs = [
        dialoom.plan("personalens", path=tmp_path / f"{number}.db", options=options)
        for number, options in enumerate(given)
    ]
    assert runs[0].config == runs[1].config == runs[2].config
    assert [len(run) for run in runs] == [2, 2, 2]
    assert runs[0].config.options["settings"] == ["I"]

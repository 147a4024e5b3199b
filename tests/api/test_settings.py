"""What is wrong is refused with the name of the argument, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.graphs.personalens.recipe import PersonaLensOptions

from .players import told


@pytest.mark.parametrize(
    ("settings", "setting", "message"),
    [
        ({"modles": {"user": "x"}}, "modles", "there is no such argument; did you mean models?"),
        ({"max_cost": 0.01}, "max_cost", r"part of the budget: budget=dialoom.Budget\(max_cost=...\)"),
        ({"limit": 2}, "limit", "own options go together: options={'limit': ...}"),
        ({"options": {"limits": 3}}, "options", "personalens has no option 'limits'; there are profiles, users"),
        ({"options": {"limit": 0}}, "limit", "limit 0: Input should be greater than or equal to 1"),
        ({"options": {"limit": "some"}}, "limit", "limit 'some': Input should be a valid integer"),
        ({"options": {"setting": ["base", "E"]}}, None, "E"),
        (
            {"options": dialoom.RecipeOptions()},
            "options",
            "options RecipeOptions: personalens takes PersonaLensOptions",
        ),
        ({"options": {"users": "nobody"}}, None, "nobody"),
        ({"structured": "sometimes"}, "structured", "structured 'sometimes': there are auto, schema, json, prompt"),
        ({"seed": "7"}, "seed", "seed '7' is no whole number"),
        ({"seed": True}, "seed", "seed True is no whole number"),
        ({"concurrency": 0}, "concurrency", "concurrency 0 is no whole number from 1"),
        ({"budget": 5}, "budget", "budget must be a Budget or its bounds by name, .* got 5"),
        ({"budget": {"max_call": 1}}, "budget", "max_call 1: .*; a budget has max_calls, max_tokens, max_cost"),
        ({"budget": {"max_calls": -1}}, "budget", "max_calls -1: Input should be greater than or equal to 0"),
        ({"rpm": 0}, "rpm", "rpm 0 is no whole number from 1"),
        ({"tpm": {"openai/x": 1.5}}, "tpm", "tpm 1.5 is no whole number"),
        ({"fail_on_error": "half"}, "fail_on_error", "fail_on_error 'half' is neither"),
        (
            {"model": "openai/secret-one", "budget": dialoom.Budget(max_cost=1)},
            "max_cost",
            "price of openai/secret-one",
        ),
        ({"prompts": "nowhere"}, None, "nowhere"),
    ],
)
def test_a_wrong_setting(settings: dict[str, Any], setting: str | None, message: str, tmp_path: Path) -> None:
    """Of `play`, and of `estimate` and `plan` alike; no file is left."""
    for action in (dialoom.play, dialoom.plan):
        with pytest.raises(dialoom.DialoomError, match=message) as error:
            action("personalens", path=tmp_path / "run.db", **settings)
        assert setting is None or error.value.setting == setting
    with pytest.raises(dialoom.DialoomError, match=message):
        dialoom.estimate("personalens", **settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("bounds", "calls"), [({}, None), ({"max_calls": 1}, 1)])
def test_a_budget_is_given_by_its_bounds(
    bounds: dict[str, int], calls: int | None, release: Path, tmp_path: Path
) -> None:
    """A budget without bounds changes nothing."""
    run = dialoom.play("personalens", path=tmp_path / "run.db", **told(release, budget=bounds))
    assert run.ended is not None
    assert run.ended.is_complete == (calls is None)
    assert calls in (None, run.status().usage.calls)


def test_a_missing_argument_is_said_of_what_was_called() -> None:
    """And not of the awaitable form of it."""
    with pytest.raises(TypeError, match=r"^play\(\) missing 1 required keyword-only argument: 'path'$"):
        dialoom.play("personalens")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^aplay\(\) missing"):
        dialoom.aplay("personalens")  # type: ignore[call-arg, unused-coroutine]


def test_a_figure_for_a_model_that_nobody_plays_with_is_told(release: Path, tmp_path: Path) -> None:
    """By a note that names it and those that there are; it is kept all the same, as a judge may come."""
    heard: list[Any] = []
    user, *_ = played = [f"python:tests.api.players:{role}" for role in ("user", "assistant", "judge")]
    settings = told(release, context={"gpt-5-mimi": 8000, user: 90_000}, rpm={"other": 3}, on_event=heard.append)
    run = dialoom.plan("personalens", path=tmp_path / "run.db", **settings)
    notes = [event.text for event in heard if isinstance(event, dialoom.Noted)]
    assert [note for note in notes if "no role" in note] == [
        f"{setting}: no role is played by {name}, so it changes nothing; there are {', '.join(played)}"
        for setting, name in (("context", "gpt-5-mimi"), ("rpm", "other"))
    ]
    heard.clear()
    dialoom.resume(run.path, context={user: 91_000}, on_event=heard.append)
    assert not [event for event in heard if isinstance(event, dialoom.Noted)]


def test_a_source_that_is_wrong_names_the_file(release: Path, tmp_path: Path) -> None:
    """And no run is left."""
    (release / "data" / "profile" / "user8" / "tasks.json").write_text("{")
    with pytest.raises(dialoom.DialoomError, match=r"user8.*tasks\.json"):
        dialoom.play("personalens", path=tmp_path / "run.db", **told(release))
    assert not list(tmp_path.glob("run.db*"))


def test_a_file_that_is_there_is_not_written_over(release: Path, tmp_path: Path) -> None:
    """Neither a run nor anything else."""
    path = tmp_path / "run.db"
    path.write_text("a diary")
    with pytest.raises(
        dialoom.DialoomError, match=r"exists; go on with dialoom\.resume\('.*run\.db'\), or give"
    ) as error:
        dialoom.play("personalens", path=path, **told(release))
    assert error.value.advice is not None and error.value.advice.action == "resume_or_new_path"
    assert path.read_text() == "a diary"
    for action in (dialoom.open_run, dialoom.resume, dialoom.judge, dialoom.retry):
        with pytest.raises(dialoom.DialoomError, match=r"run.db"):
            action(path)
        with pytest.raises(dialoom.DialoomError, match="there is no run file"):
            action(tmp_path / "other.db")


def test_options_by_name_by_alias_and_as_an_object_are_the_same(release: Path, tmp_path: Path) -> None:
    """And a single value may stand for a tuple of one."""
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

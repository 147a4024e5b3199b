"""Who plays: names, functions, graphs, and models with options of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

import dialoom
from dialoom.cli.errors import worded
from tests.server import completion, serving

from .players import CAST, NAMES, Messages, assistant, judge, talk, told, user


async def clerk(messages: Messages) -> str:
    """Another assistant."""
    return f"Noted: {messages[-1]['content']}"


def echoing() -> Any:
    """A compiled graph that says what `assistant` says."""

    async def reply(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"Reply to: {state['messages'][-1].content}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("reply", reply)
    builder.add_edge(START, "reply")
    return builder.compile(name="echoing")


def test_a_name_a_function_and_a_graph_play_alike(release: Path, tmp_path: Path) -> None:
    """A function that can be imported is kept by its path; the others are kept as objects."""

    async def mine(messages: Messages) -> str:
        return await assistant(messages)

    players: dict[str, Any] = {NAMES["assistant"]: NAMES["assistant"], "object:mine": mine, "object:echoing": echoing()}
    talks = []
    for number, (name, player) in enumerate(players.items()):
        run = dialoom.play("personalens", path=tmp_path / f"{number}.db", **told(release, models={"assistant": player}))
        assert run.config.models["assistant"].model == name
        talks.append(talk(run))
    assert talks[0] == talks[1] == talks[2] and "Reply to" in talks[0][0]
    run = dialoom.play("personalens", path=tmp_path / "run.db", **told(release))
    assert run.config.model_names == NAMES


def test_an_object_is_given_again_to_go_on(release: Path, tmp_path: Path) -> None:
    """Without it there is a clear error and nothing is lost; with it the same comes out as at once."""

    async def mine(messages: Messages) -> str:
        return await clerk(messages)

    players = {"assistant": mine, "user": user, "judge": judge}
    whole = dialoom.play("personalens", path=tmp_path / "whole.db", **told(release, models=players))
    path = tmp_path / "run.db"
    budget = dialoom.Budget(max_calls=11)
    run = dialoom.play("personalens", path=path, **told(release, models=players, budget=budget))
    assert run.status().pending > 0
    more = dialoom.Budget(max_calls=None)
    with pytest.raises(
        dialoom.DialoomError, match="'assistant' was played by 'mine', which was given as an obj"
    ) as wrong:
        dialoom.resume(path, budget=more)
    assert wrong.value.setting == "models"
    assert str(wrong.value).endswith("""; give it again, as models={"assistant": ...}""")
    assert worded(wrong.value).endswith("; go on in Python: dialoom.resume(RUN, models={'assistant': ...})")
    with pytest.raises(dialoom.DialoomError, match="which a run keeps to its end"):
        dialoom.resume(path, models={"assistant": mine, "judge": clerk}, budget=more)
    assert talk(dialoom.resume(path, models={"assistant": mine}, budget=more)) == talk(whole)


async def test_a_handle_keeps_the_objects_that_it_was_made_with(release: Path, tmp_path: Path) -> None:
    """In the process that gave them nothing is given again: not to go on, to look, to watch, nor after a judging."""
    made = list[str]()

    async def mine(messages: Messages) -> str:
        made.append(messages[-1]["content"])
        return await clerk(messages)

    none, more = dialoom.Budget(max_calls=2), dialoom.Budget(max_calls=None)
    run = dialoom.play(
        "personalens", path=tmp_path / "run.db", **told(release, models={"assistant": mine}, budget=none)
    )
    async with run.step(1) as session:
        assert len((await session.outcome()).messages) >= 1
    run = run.judge(model=judge, name="second").resume(budget=more)
    assert run.status().done == 6 and made

    planned = dialoom.plan("personalens", path=tmp_path / "planned.db", **told(release, models={"assistant": mine}))
    assert planned.ended is None
    assert [event async for event in planned.stream()][-1] == dialoom.Ended(planned.path, 6, 0, True)
    with pytest.raises(dialoom.DialoomError, match="in no file"):
        dialoom.open_run(planned.path).resume()


def test_a_handle_says_why_the_work_was_stopped(release: Path, tmp_path: Path) -> None:
    """Of its own accord, by the budget; going on with enough of it, nothing is said any more."""
    path = tmp_path / "run.db"
    run = dialoom.play("personalens", path=path, **told(release, budget=dialoom.Budget(max_calls=7)))
    assert run.ended is not None and run.ended.stopped is not None and not run.ended.is_complete
    assert repr(run).endswith(f" failed, stopped: {run.ended.stopped.reason}>") and "max_calls 7" in repr(run)
    assert dialoom.open_run(path).ended is None and repr(dialoom.open_run(path)).endswith(" failed>")
    run = run.resume(budget=dialoom.Budget(max_calls=None))
    assert run.ended is not None and run.ended.is_complete and repr(run).endswith("6 of 6 scenarios done, 0 failed>")


def test_the_same_object_in_two_roles_and_two_of_one_name(release: Path, tmp_path: Path) -> None:
    """One is kept once; two functions of the same name are two models."""

    def made(word: str) -> Any:
        async def player(_: Messages) -> str:
            return f"{word}."

        return player

    one, other = made("One"), made("Other")
    run = dialoom.play(
        "personalens",
        path=tmp_path / "run.db",
        **told(release, models={"user": one, "assistant": other, "judge": one}, options={"limit": 1}),
    )
    assert run.config.model_names == {"user": "object:player", "assistant": "object:player-2", "judge": "object:player"}
    (episode,) = run.episodes()
    assert [line.content for line in episode.outcome.messages[:2]] == ["One.", "Other."]


def test_a_model_has_a_temperature_and_an_address_of_its_own(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers, one role each; what is said of all roles gives way to what a model has itself."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with (
        serving(lambda _body, _number: completion("I do.")) as one,
        serving(
            lambda body, _number: completion("Fine. TERMINATE" if len(body["messages"]) > 4 else "Hello.")
        ) as other,
    ):
        run = dialoom.play(
            "personalens",
            path=tmp_path / "run.db",
            models={
                "assistant": dialoom.Model("openai/one", temperature=0.25, api_base=one.url),
                "user": "openai/other",
                "judge": CAST["judge"],
            },
            temperature={"user": 1.5},
            api_base=other.url,
            options={"profiles": release, "limit": 2},
        )
        assert run.status().done == 2
        assert {(body["model"], body["temperature"]) for body in one.requests} == {("one", 0.25)}
        assert {(body["model"], body["temperature"]) for body in other.requests} == {("other", 1.5)}
        assert run.config.models["assistant"].api_base == one.url
        assert run.config.models["judge"].api_base is None
        many = dialoom.play(
            "personalens",
            path=tmp_path / "many.db",
            model=dialoom.Model("openai/one", api_base=one.url),
            temperature=0.0,
            options={"profiles": release, "limit": 1, "judge": False},
        )
        assert {each.temperature for each in many.config.models.values()} == {0.0}
    assert "sk-test" not in json.dumps([binding.model_dump() for binding in run.config.models.values()])


@pytest.mark.parametrize(
    ("settings", "setting", "message"),
    [
        ({"models": {"referee": "offline/generic"}}, "models", "unknown role 'referee'; the roles are user, assistant"),
        ({"models": {"user": print}}, "models", "print is no player: <built-in function print> is no async function"),
        ({"model": ""}, "models", "a name is empty"),
        ({"model": "offline/brilliant"}, None, "the offline models are offline/attentive, offline/generic"),
        ({"model": "nobody-knows-it"}, None, "unknown model 'nobody-knows-it'"),
        ({"model": "python:players_that:are_not"}, None, "players_that"),
        ({"temperature": 3}, "temperature", "temperature must be a number from 0 to 2, or 'none' to send none, got 3"),
        ({"temperature": {"user": True}}, "temperature", "got True"),
        ({"api_base": "localhost"}, None, None),
        ({"model": "openai/x", "api_base": "localhost"}, "api_base", "'localhost' is no address"),
        ({"api_base": {"user": "http://localhost/v1"}}, "api_base", "is called at no address"),
    ],
)
def test_a_wrong_model_is_refused_before_anything_is_written(
    settings: dict[str, Any], setting: str | None, message: str | None, tmp_path: Path
) -> None:
    """The error names the argument."""
    if message is None:  # of no use to anybody, and in nobody's way: no model here has an address
        assert dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 1}, **settings).status().done
        return
    with pytest.raises(dialoom.DialoomError, match=message) as error:
        dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 1}, **settings)
    assert error.value.setting == setting
    assert not list(tmp_path.iterdir())

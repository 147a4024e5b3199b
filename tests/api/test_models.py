"""Models and players of a run: names, functions, graphs, and how each is asked for its replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

import dialoom
from dialoom import DialoomError
from tests.conftest import Command, command_in
from tests.runs.workers.near import near_cluster
from tests.server import Answer, completion, error, serving

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


def test_name_function_and_graph_play_alike(release: Path, tmp_path: Path) -> None:
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


def test_player_object_must_be_given_again_to_resume(release: Path, tmp_path: Path) -> None:
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
    refused = command_in(tmp_path)("resume", path, code=2).stderr
    assert refused.endswith("; go on in Python: dialoom.resume(RUN, models={'assistant': ...})\n")
    with pytest.raises(DialoomError, match="which a run keeps to its end"):
        dialoom.resume(path, models={"assistant": mine, "judge": clerk}, budget=more)
    assert talk(dialoom.resume(path, models={"assistant": mine}, budget=more)) == talk(whole)


async def test_handle_keeps_the_player_objects_of_its_run(release: Path, tmp_path: Path) -> None:
    made = list[str]()

    async def mine(messages: Messages) -> str:
        made.append(messages[-1]["content"])
        return await clerk(messages)

    none, more = dialoom.Budget(max_calls=2), dialoom.Budget(max_calls=None)
    run = dialoom.play(
        "personalens", path=tmp_path / "run.db", **told(release, models={"assistant": mine}, budget=none)
    )
    async with run.step(1) as stepper:
        assert len((await stepper.outcome()).messages) >= 1
    run = run.judge(model=judge, name="second").resume(budget=more)
    assert run.status().done == 6 and made

    planned = dialoom.plan("personalens", path=tmp_path / "planned.db", **told(release, models={"assistant": mine}))
    assert planned.ended is None
    assert [event async for event in planned.stream()][-1] == dialoom.Ended(planned.path, 6, 0, True)
    with pytest.raises(DialoomError, match="in no file"):
        dialoom.open_run(planned.path).resume()


def test_handle_tells_why_the_run_stopped(release: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    run = dialoom.play("personalens", path=path, **told(release, budget=dialoom.Budget(max_calls=7)))
    assert run.ended is not None and run.ended.stopped is not None and not run.ended.is_complete
    assert repr(run).endswith(f" failed, stopped: {run.ended.stopped.reason}>") and "max_calls 7" in repr(run)
    assert dialoom.open_run(path).ended is None and repr(dialoom.open_run(path)).endswith(" failed>")
    run = run.resume(budget=dialoom.Budget(max_calls=None))
    assert run.ended is not None and run.ended.is_complete and repr(run).endswith("6 of 6 scenarios done, 0 failed>")


def test_object_in_two_roles_is_kept_once_and_equal_names_stay_apart(release: Path, tmp_path: Path) -> None:
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


def test_models_have_their_own_temperature_and_address(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        ({"models": {"user": 7}}, "models", "int cannot play a role: 7 must be a function or object"),
        ({"model": ""}, "models", "a name is empty"),
        ({"model": "offline/brilliant"}, None, "the offline models are offline/attentive, offline/generic"),
        ({"model": "nobody-knows-it"}, None, "unknown model 'nobody-knows-it'"),
        ({"model": "python:players_that:are_not"}, None, "players_that"),
        ({"temperature": 3}, "temperature", "temperature must be at most 2, got 3"),
        ({"temperature": {"user": True}}, "temperature", "got True"),
        ({"api_base": "localhost"}, None, None),
        ({"model": "openai/x", "api_base": "localhost"}, "api_base", "'localhost' is no address"),
        ({"api_base": {"user": "http://localhost/v1"}}, "api_base", "is called at no address"),
    ],
)
def test_wrong_model_is_refused_before_anything_is_written(
    settings: dict[str, Any], setting: str | None, message: str | None, tmp_path: Path
) -> None:
    if message is None:  # of no use to anybody, and in nobody's way: no model here has an address
        assert dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 1}, **settings).status().done
        return
    with pytest.raises(DialoomError, match=message) as error:
        dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 1}, **settings)
    assert error.value.setting == setting
    assert not list(tmp_path.iterdir())


CALL = {"name": "search", "args": {"query": "x"}, "id": "1"}


def graph(work: Any, name: str = "mine", **compiled: Any) -> Any:
    """A graph of one node."""
    builder = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work")
    return builder.compile(name=name, **compiled)


def noted(state: MessagesState) -> dict[str, Any]:
    """A good reply."""
    return {"messages": [AIMessage(f"Noted: {state['messages'][-1].content}")]}


def returning(reply: Any, name: str = "mine") -> Any:
    """An async function that returns the same thing at every call, or raises it."""

    async def mine(_: Messages) -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    mine.__name__ = name
    return mine


def one_dialogue(release: Path, path: Path, assistant: Any) -> dialoom.Episode:
    """A dialogue with an assistant."""
    given = told(release, models={"assistant": assistant}, options={"limit": 1})
    (episode,) = dialoom.play("personalens", path=path, **given).episodes()
    return episode


def shortened(state: MessagesState) -> dict[str, Any]:
    """A good reply in place of the whole conversation, as of a graph that sums it up."""
    return {"messages": [*(RemoveMessage(each.id or "") for each in state["messages"]), AIMessage("In short: yes.")]}


@pytest.mark.parametrize(
    ("player", "reply"),
    [
        (returning(AIMessage("Yes.")), "Yes."),
        (returning(AIMessage([{"type": "text", "text": "Ye"}, {"type": "text", "text": "s."}])), "Yes."),
        (returning({"role": "assistant", "content": "Yes."}), "Yes."),
        (graph(shortened), "In short: yes."),
        (lambda tools: graph(noted), "Noted: Line 0 of mine."),  # noqa: ARG005
        (FakeListChatModel(responses=["As you like."]), "As you like."),
        (FakeListChatModel(responses=["As you like."]) | (lambda message: message.content), "As you like."),
    ],
    ids=["message", "parts", "dictionary", "shortened", "maker", "chat model", "chain"],
)
def test_every_kind_of_player_replies(release: Path, tmp_path: Path, player: Any, reply: str) -> None:
    episode = one_dialogue(release, tmp_path / "run.db", player)
    assert episode.error is None
    assert episode.outcome.messages[1].content == reply


BAD: Mapping[str, tuple[Any, str]] = {
    "None": (returning(None), "mine returned None; a text, a dictionary with 'content'"),
    "wrong type": (returning(HumanMessage("Hm.")), "mine returned HumanMessage HumanMessage(content='Hm.'"),
    "wrong key": (returning({"reply": "Hm."}), "mine returned dict {'reply': 'Hm.'}; a text"),
    "wrong content": (returning({"content": 3}), "mine returned dict {'content': 3}; a text"),
    "empty": (
        returning(""),
        "mine gave no usable reply to 'personalens/assistant' in two attempts (the answer is empty)",
    ),
    "raises": (returning(ValueError("no data")), "mine raised ValueError: no data [tests/api/test_models.py:"),
    "too long": (returning("x" * 1_000_001), "mine: the reply has 1,000,001 letters; 1,000,000 are the most"),
    "only calls": (
        returning(AIMessage("", tool_calls=[CALL])),
        "mine returned only tool calls (search), and no tools were offered; text is needed",
    ),
    "graph that ends with calls": (
        graph(lambda _: {"messages": [AIMessage("", tool_calls=[CALL])]}),
        "mine returned only tool calls (search), and no tools were offered; text is needed",
    ),
    "graph that adds nothing": (
        graph(lambda _: {"messages": []}),
        "mine returned no new message: its final state ends with the message that it was given last",
    ),
    "graph that forgets": (
        graph(lambda state: {"messages": [RemoveMessage(each.id or "") for each in state["messages"]]}),
        "mine returned no new message: its final state has none under 'messages'",
    ),
}


@pytest.mark.parametrize(("player", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_reply_fails_the_scenario_and_names_the_player(
    release: Path, tmp_path: Path, player: Any, sentence: str
) -> None:
    episode = one_dialogue(release, tmp_path / "run.db", player)
    assert episode.state == "failed" and episode.error is not None
    assert episode.error.startswith(sentence)


OUTER = StateGraph(MessagesState).add_node("inner", graph(noted, checkpointer=InMemorySaver())).add_edge(START, "inner")
REFUSED: Mapping[str, tuple[Any, str]] = {
    "checkpointer": (
        graph(noted, checkpointer=InMemorySaver()),
        "models: mine is compiled with a checkpointer (InMemorySaver), so it keeps state between calls: declare it "
        "stateful (setting `stateful`, or Agent(graph, stateful=True)), or compile it without",
    ),
    "store": (graph(noted, store=InMemoryStore()), "models: mine is compiled with a store (InMemoryStore), so it"),
    "subgraph": (
        OUTER.compile(name="mine"),
        "models: mine has a subgraph 'inner' that is compiled with a checkpointer",
    ),
    "maker": (lambda tools: graph(noted, checkpointer=InMemorySaver()), "is compiled with a checkpointer"),  # noqa: ARG005
    "maker of nothing": (lambda tools: None, "returned a NoneType; a function of `tools` must return a compiled"),  # noqa: ARG005
    "not callable": (
        7,
        "models: int cannot play a role: 7 must be a function or object that is called with `messages`",
    ),
    "class": (dict, "models: dict is a class: give an object of it, or declare it stateful"),
    "not compiled": (OUTER, "models: StateGraph cannot play a role: <langgraph.graph.state.StateGraph"),
}


@pytest.mark.parametrize(("player", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_object_that_cannot_play_is_refused_before_anything_is_written(
    release: Path, tmp_path: Path, player: Any, sentence: str
) -> None:
    run = dialoom.play("personalens", path=tmp_path / "run.db", **told(release, options={"limit": 1}))
    starts: list[Callable[[], object]] = [
        lambda: dialoom.play("personalens", path=tmp_path / "0", models={"assistant": player}),
        lambda: dialoom.scorecard(tmp_path / "1", models={"assistant": [CAST["assistant"], player]}),
        lambda: run.judge(model=player, name="mine"),
    ]
    for number, start in enumerate(starts):
        with pytest.raises(DialoomError) as error:
            start()
        assert sentence in str(error.value) and error.value.setting == "models"
        assert not (tmp_path / str(number)).exists()
    assert len(run.judgement_sets) == 1


FILE = """
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

builder = StateGraph(MessagesState).add_node("a", lambda state: {"messages": [AIMessage("Yes.")]}).add_edge(START, "a")
forgetful = builder.compile(checkpointer=InMemorySaver())

def made(tools):
    return forgetful
"""


@pytest.mark.parametrize("name", ["graph:agent.py:forgetful", "graph:agent.py:made", "python:agent:forgetful"])
def test_command_line_refuses_a_graph_with_a_checkpointer(
    dialoom: Command, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With exit code 2, and nothing is left."""
    (tmp_path / "agent.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for command in (["run", "personalens", "-o", "run.db"], ["scorecard", "-o", "card"]):
        refused = dialoom(*command, "--model", f"assistant={name}", code=2)
        assert f"{name} is compiled with a checkpointer (InMemorySaver)" in refused.stderr
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith("__")] == ["agent.py"]


@pytest.mark.parametrize("workers", [None, 1])
def test_response_format_refused_once_is_not_tried_again_in_the_run(
    workers: int | None, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that takes llama.cpp's form alone: one refusal while the run is played, none when it is judged again.

    What a worker has found out stands in the run's file, too.
    """
    near_cluster(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    def answer(body: dict[str, Any], _number: int) -> Answer:
        if body["response_format"]["type"] != "json_object":
            return error(422, "response_format: Input should be 'text' or 'json_object'")
        assert body["response_format"]["schema"]["additionalProperties"] is False
        name = next(iter(body["response_format"]["schema"]["properties"]))
        return completion(json.dumps({name: True if name == "verdict" else 2, "explanation": "so"}))

    with serving(answer) as server:
        judge = dialoom.Model("openai/small", api_base=server.url)
        plan = told(release, models={"judge": judge}, options={"limit": 1}, concurrency=1, workers=workers)
        run = dialoom.play("personalens", path=tmp_path / "run.db", **plan)
        refused = [body for body in server.requests if body["response_format"]["type"] == "json_schema"]
        assert 1 <= len(refused) <= 6, "the judges of a dialogue are asked side by side"
        assert all(each.status == "ok" for episode in run.episodes() for each in episode.outcome.judgements)
        asked = len(server.requests)
        run.judge(judge, name="again")
        assert all(body["response_format"]["type"] == "json_object" for body in server.requests[asked:])
        assert len(server.requests) > asked

"""Models and players of a run: names, functions, graphs and other objects, and their replies."""

from __future__ import annotations

import asyncio
import functools
import json
import re
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt

import dialoom
from dialoom import DialoomError
from dialoom.roles import TransientProviderError
from dialoom.roles.gateway.players import create_player_backend
from dialoom.roles.players import Session
from docs.examples.endpoint import shop
from tests.conftest import ROOT, Command, command_in
from tests.roles.gateway.asking import request
from tests.runs.workers.local_cluster import local_cluster
from tests.server import Answer, Response, busy, completion, error, serving

from .players import CAST, NAMES, Messages, assistant, judge, outcome_texts, run_settings, user


async def clerk(messages: Messages) -> str:
    """Reply as another assistant."""
    return f"Noted: {messages[-1]['content']}"


def echoing() -> Any:
    """Return a compiled graph with the replies of `assistant`."""

    async def reply(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"Reply to: {state['messages'][-1].content}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("reply", reply)
    builder.add_edge(START, "reply")
    return builder.compile(name="echoing")


def test_name_function_and_graph_give_equal_results(release: Path, tmp_path: Path) -> None:
    async def mine(messages: Messages) -> str:
        return await assistant(messages)

    players: dict[str, Any] = {NAMES["assistant"]: NAMES["assistant"], "object:mine": mine, "object:echoing": echoing()}
    talks = []
    for number, (name, player) in enumerate(players.items()):
        run = dialoom.play(
            "personalens", path=tmp_path / f"{number}.db", **run_settings(release, models={"assistant": player})
        )
        assert run.config.models["assistant"].model == name
        talks.append(outcome_texts(run))
    assert talks[0] == talks[1] == talks[2] and "Reply to" in talks[0][0]
    run = dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release))
    assert run.config.model_names == NAMES


def test_player_object_must_be_given_again_to_resume(release: Path, tmp_path: Path) -> None:
    async def mine(messages: Messages) -> str:
        return await clerk(messages)

    players = {"assistant": mine, "user": user, "judge": judge}
    whole = dialoom.play("personalens", path=tmp_path / "whole.db", **run_settings(release, models=players))
    path = tmp_path / "run.db"
    budget = dialoom.Budget(max_calls=11)
    run = dialoom.play("personalens", path=path, **run_settings(release, models=players, budget=budget))
    assert run.status().pending > 0
    more = dialoom.Budget(max_calls=None)
    with pytest.raises(
        dialoom.DialoomError, match="'assistant' was played by 'mine', which was passed as an obj"
    ) as wrong:
        dialoom.resume(path, budget=more)
    assert wrong.value.setting == "models"
    assert str(wrong.value).endswith("""; pass it again, as models={"assistant": ...}""")
    refused = command_in(tmp_path)("resume", path, code=2).stderr
    assert refused.endswith("; continue in Python: dialoom.resume(RUN, models={'assistant': ...})\n")
    with pytest.raises(DialoomError, match="which cannot change during a run"):
        dialoom.resume(path, models={"assistant": mine, "judge": clerk}, budget=more)
    assert outcome_texts(dialoom.resume(path, models={"assistant": mine}, budget=more)) == outcome_texts(whole)


async def test_run_handle_keeps_its_player_objects(release: Path, tmp_path: Path) -> None:
    made = list[str]()

    async def mine(messages: Messages) -> str:
        made.append(messages[-1]["content"])
        return await clerk(messages)

    none, more = dialoom.Budget(max_calls=2), dialoom.Budget(max_calls=None)
    run = dialoom.play(
        "personalens", path=tmp_path / "run.db", **run_settings(release, models={"assistant": mine}, budget=none)
    )
    async with run.step(1) as stepper:
        assert len((await stepper.outcome()).messages) >= 1
    run = run.judge(model=judge, name="second").resume(budget=more)
    assert run.status().done == 6 and made

    planned = dialoom.plan(
        "personalens", path=tmp_path / "planned.db", **run_settings(release, models={"assistant": mine})
    )
    assert planned.ended is None
    assert [event async for event in planned.stream()][-1] == dialoom.Ended(planned.path, 6, 0, True)
    with pytest.raises(DialoomError, match="is not stored in the run"):
        dialoom.open_run(planned.path).resume()


def test_run_handle_has_the_reason_for_a_stop(release: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    run = dialoom.play("personalens", path=path, **run_settings(release, budget=dialoom.Budget(max_calls=7)))
    assert run.ended is not None and run.ended.stopped is not None and not run.ended.is_complete
    assert repr(run).endswith(f" failed, stopped: {run.ended.stopped.reason}>") and "max_calls 7" in repr(run)
    assert dialoom.open_run(path).ended is None and repr(dialoom.open_run(path)).endswith(" failed>")
    run = run.resume(budget=dialoom.Budget(max_calls=None))
    assert run.ended is not None and run.ended.is_complete and repr(run).endswith("6 of 6 scenarios done, 0 failed>")


def test_object_in_two_roles_is_bound_once_and_equal_names_are_numbered(release: Path, tmp_path: Path) -> None:
    def made(word: str) -> Any:
        async def player(_: Messages) -> str:
            return f"{word}."

        return player

    one, other = made("One"), made("Other")
    run = dialoom.play(
        "personalens",
        path=tmp_path / "run.db",
        **run_settings(release, models={"user": one, "assistant": other, "judge": one}, options={"limit": 1}),
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
        ({"models": {"user": 7}}, "models", "int cannot play a role: 7 must be a callable"),
        ({"model": ""}, "models", "a name is empty"),
        ({"model": "offline/brilliant"}, None, "the offline models are offline/attentive, offline/generic"),
        ({"model": "nobody-knows-it"}, None, "unknown model 'nobody-knows-it'"),
        ({"model": "python:players_that:are_not"}, None, "players_that"),
        ({"temperature": 3}, "temperature", "temperature must be at most 2, got 3"),
        ({"temperature": {"user": True}}, "temperature", "got True"),
        ({"api_base": "localhost"}, None, None),
        ({"model": "openai/x", "api_base": "localhost"}, "api_base", "'localhost' is not an address"),
        ({"api_base": {"user": "http://localhost/v1"}}, "api_base", "which has no address"),
    ],
)
def test_wrong_model_is_refused_before_anything_is_written(
    settings: dict[str, Any], setting: str | None, message: str | None, tmp_path: Path
) -> None:
    if message is None:  # an address without effect is accepted, because no model here has one
        assert dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 1}, **settings).status().done
        return
    with pytest.raises(DialoomError, match=message) as error:
        dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 1}, **settings)
    assert error.value.setting == setting
    assert not list(tmp_path.iterdir())


CALL = {"name": "search", "args": {"query": "x"}, "id": "1"}


def graph(work: Any, name: str = "mine", **compiled: Any) -> Any:
    """Return a graph of one node."""
    builder = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work")
    return builder.compile(name=name, **compiled)


def acknowledge(state: MessagesState) -> dict[str, Any]:
    """Return a valid reply."""
    return {"messages": [AIMessage(f"Noted: {state['messages'][-1].content}")]}


def returning(reply: Any, name: str = "mine") -> Any:
    """Return an async function that returns the same value in every call, or raises it."""

    async def mine(_: Messages) -> Any:
        if isinstance(reply, BaseException):
            raise reply
        return reply

    mine.__name__ = name
    return mine


def one_dialogue(release: Path, path: Path, assistant: Any) -> dialoom.Episode:
    """Play one dialogue with an assistant."""
    given = run_settings(release, models={"assistant": assistant}, options={"limit": 1})
    (episode,) = dialoom.play("personalens", path=path, **given).episodes()
    return episode


def shortened(state: MessagesState) -> dict[str, Any]:
    """Replace the whole conversation by a reply, as a graph that summarizes does."""
    return {"messages": [*(RemoveMessage(each.id or "") for each in state["messages"]), AIMessage("In short: yes.")]}


def plain(messages: Messages) -> str:
    """Reply from a plain function, which runs in a thread."""
    assert threading.current_thread() is not threading.main_thread()
    return f"Noted: {messages[-1]['content']}"


def pieces(_: Messages) -> Iterator[str]:
    """Yield parts of a reply from a generator, which runs in a thread."""
    assert threading.current_thread() is not threading.main_thread()
    yield from ("Ye", "s.")


async def async_pieces(_: Messages) -> AsyncIterator[str]:
    """Yield parts of a reply from an async generator."""
    for piece in ("Ye", "", "s."):
        yield piece


async def chunks(_: Messages) -> AsyncIterator[AIMessageChunk]:
    """Yield chunks as a chat model streams them."""
    async for chunk in FakeListChatModel(responses=["Yes."]).astream("Well?"):
        yield chunk


class Clerk:
    """A callable object."""

    async def __call__(self, _: Messages) -> str:
        return "Yes."


YES = FakeListChatModel(responses=["Yes."])
NOTED = "Noted: Line 0 of mine."
KINDS: Mapping[str, tuple[Any, str]] = {
    "function": (plain, NOTED),
    "async function": (returning("Yes."), "Yes."),
    "function that returns an awaitable": (lambda messages: clerk(messages), NOTED),
    "generator": (pieces, "Yes."),
    "async generator": (async_pieces, "Yes."),
    "async generator of chunks": (chunks, "Yes."),
    "object with `__call__`": (Clerk(), "Yes."),
    "function that returns a dictionary": (returning({"role": "assistant", "content": "Yes."}), "Yes."),
    "function that returns a message": (returning(AIMessage("Yes.")), "Yes."),
    "function that returns a message in parts": (
        returning(AIMessage([{"type": "text", "text": "Ye"}, {"type": "text", "text": "s."}])),
        "Yes.",
    ),
    "compiled graph or agent": (graph(acknowledge), NOTED),
    "graph that shortens the conversation": (graph(shortened), "In short: yes."),
    "function of `tools` that returns a graph": (lambda tools: graph(acknowledge), NOTED),  # noqa: ARG005
    "chat model": (YES, "Yes."),
    "chain to a text": (YES | (lambda message: message.content), "Yes."),
    "runnable from a function": (RunnableLambda(lambda messages: f"Noted: {messages[-1]['content']}"), NOTED),
    "graph with retries": (graph(acknowledge).with_retry(), NOTED),
    "graph with fallbacks": (graph(acknowledge).with_fallbacks([graph(shortened)]), NOTED),
    "chain that begins with a graph": (graph(acknowledge) | (lambda state: state["messages"][-1]), NOTED),
}


@pytest.mark.parametrize(("player", "reply"), KINDS.values(), ids=KINDS.keys())
def test_every_kind_of_player_replies(release: Path, tmp_path: Path, player: Any, reply: str) -> None:
    episode = one_dialogue(release, tmp_path / "run.db", player)
    assert episode.error is None
    assert episode.outcome.messages[1].content == reply


@pytest.mark.parametrize("kind", ["function", "generator", "async generator"])
def test_function_of_tools_calls_them(kind: str) -> None:
    """Every kind of function gets the tools, and its calls are returned."""
    call = {"name": "search", "arguments": {"query": "x"}}

    def function(messages: Messages, tools: list[Any], session: Any) -> Any:  # noqa: ARG001
        return {"content": "", "tool_calls": [{**call, "name": tools[0]["function"]["name"]}]}

    def generator(messages: Messages, tools: list[Any]) -> Iterator[Any]:
        yield function(messages, tools, None)

    async def async_generator(messages: Messages, tools: list[Any]) -> AsyncIterator[Any]:
        yield function(messages, tools, None)

    player: Any = {"function": function, "generator": generator, "async generator": async_generator}[kind]
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}
    reply = asyncio.run(create_player_backend("mine", player).complete(request(None, tools=(tool,)), ""))
    assert [(each["name"], each["arguments"]) for each in reply.tool_calls] == [("search", '{"query": "x"}')]


def hanging(_: Messages) -> str:
    """Block until the tests end."""
    threading.Event().wait()
    return ""


async def async_hanging(_: Messages) -> str:
    """Never return."""
    await asyncio.Event().wait()
    return ""


def mixed(_: Messages) -> Iterator[Any]:
    """Yield parts of different types, which cannot be joined."""
    yield from ("Ye", {"content": "s."})


def silent(_: Messages) -> Iterator[str]:
    """Yield nothing."""
    yield from ()


def named(function: Any) -> Any:
    """Return the function under the name `mine`."""
    mine = functools.wraps(function)(lambda messages: function(messages))
    mine.__name__ = mine.__qualname__ = "mine"
    return mine


class Unshown(ValueError):
    """An object whose `str` and `repr` raise."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __str__ = __repr__


INVALID_REPLIES: Mapping[str, tuple[Any, str]] = {
    "None": (returning(None), "mine returned None; it must return a string, a dictionary with 'content'"),
    "yields pieces of several kinds": (
        named(mixed),
        "mine yielded 2 pieces (dict, str); it must yield only strings or only AIMessageChunks",
    ),
    "yields nothing": (
        named(silent),
        "mine gave no usable reply to 'personalens/assistant' in two attempts (the answer is empty)",
    ),
    "wrong type": (returning(HumanMessage("Hm.")), "mine returned HumanMessage HumanMessage(content='Hm.'"),
    "wrong key": (returning({"reply": "Hm."}), "mine returned dict {'reply': 'Hm.'}; it must return a string"),
    "wrong content": (returning({"content": 3}), "mine returned dict {'content': 3}; it must return a string"),
    "cannot be shown": (
        returning({"content": Unshown()}),
        "mine returned dict <dict that cannot be shown>; it must return a string",
    ),
    "calls that cannot be read": (
        returning({"content": "Hm.", "tool_calls": [{"name": "search", "arguments": {"query": Unshown()}}]}),
        "mine returned tool calls that cannot be read: RuntimeError: no text",
    ),
    "raises what cannot be shown": (
        returning(Unshown()),
        "mine raised Unshown: <Unshown that cannot be shown> [tests/",
    ),
    "empty": (
        returning(""),
        "mine gave no usable reply to 'personalens/assistant' in two attempts (the answer is empty)",
    ),
    "raises": (returning(ValueError("no data")), "mine raised ValueError: no data [tests/api/test_models.py:"),
    "raises without a word": (returning(ValueError()), "mine raised ValueError [tests/api/test_models.py:"),
    "exits": (named(lambda _: sys.exit(3)), "mine raised SystemExit: 3"),
    "exits in the event loop": (returning(SystemExit(3)), "mine raised SystemExit: 3"),
    "is cancelled": (returning(asyncio.CancelledError()), "mine raised CancelledError"),
    "too long": (returning("x" * 1_000_001), "mine: the reply has 1,000,001 characters; the maximum is 1,000,000"),
    "only calls": (
        returning(AIMessage("", tool_calls=[CALL])),
        "mine returned only tool calls (search), but no tools were offered; it must return text",
    ),
    "graph that ends with calls": (
        graph(lambda _: {"messages": [AIMessage("", tool_calls=[CALL])]}),
        "mine returned only tool calls (search), but no tools were offered; it must return text",
    ),
    "graph that adds nothing": (
        graph(lambda _: {"messages": []}),
        "mine returned no new message: its final state ends with the last message that it was given",
    ),
    "graph that waits": (
        graph(lambda _: {"messages": [AIMessage(interrupt("May I?"))]}),
        "mine returned no new message: it was interrupted",
    ),
    "graph that forgets": (
        graph(lambda state: {"messages": [RemoveMessage(each.id or "") for each in state["messages"]]}),
        "mine returned no new message: its final state has none under 'messages'",
    ),
}


@pytest.mark.parametrize(("player", "sentence"), INVALID_REPLIES.values(), ids=INVALID_REPLIES.keys())
def test_bad_reply_fails_the_scenario_and_names_the_player(
    release: Path, tmp_path: Path, player: Any, sentence: str
) -> None:
    episode = one_dialogue(release, tmp_path / "run.db", player)
    assert episode.state == "failed" and episode.error is not None
    assert episode.error.startswith(sentence)


def test_object_without_repr_is_refused_like_any_other(tmp_path: Path) -> None:
    with pytest.raises(
        dialoom.DialoomError, match="models: Unshown cannot play a role: <Unshown that cannot be shown>"
    ):
        dialoom.plan("personalens", path=tmp_path / "run.db", models={"assistant": Unshown()})  # type: ignore[dict-item]


TRANSIENT: Mapping[str, tuple[Any, str]] = {
    "hangs": (hanging, "mine did not answer within 0.05 s"),
    "hangs in the event loop": (async_hanging, "mine did not answer within 0.05 s"),
    "refuses a connection": (returning(ConnectionError("no route")), "mine raised ConnectionError: no route"),
    "gives up": (returning(TimeoutError("after 9 s")), "mine raised TimeoutError: after 9 s"),
}


@pytest.mark.parametrize(("player", "sentence"), TRANSIENT.values(), ids=TRANSIENT.keys())
def test_transient_failure_is_recognized(player: Any, sentence: str) -> None:
    """A function that hangs blocks neither the run nor the end of the process."""
    with pytest.raises(TransientProviderError) as error:
        asyncio.run(create_player_backend("mine", player).complete(request(None, timeout=0.05), ""))
    assert str(error.value).startswith(sentence)


def test_call_that_is_cancelled_before_it_begins_gives_no_warning() -> None:
    async def cancelled() -> None:
        call = asyncio.create_task(create_player_backend("mine", clerk).complete(request(None), ""))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        asyncio.run(cancelled())
    assert [str(each.message) for each in found] == []


@pytest.mark.parametrize("kind", ["graph", "runnable"])
def test_graph_or_runnable_that_hangs_is_retried_without_blocking(release: Path, tmp_path: Path, kind: str) -> None:
    """It does not block the end of the run either, although its function still runs in a thread."""
    calls, passed = list[str](), threading.Event()

    def work(_: Any) -> Any:
        calls.append("begun")
        if len(calls) == 1:
            passed.wait(60)
            calls.append("over")
        return {"messages": [AIMessage("Yes.")]} if kind == "graph" else "Yes."

    player = graph(work) if kind == "graph" else RunnableLambda(work)
    given = run_settings(release, models={"assistant": player}, options={"limit": 1}, timeout={"assistant": 1})
    (episode,) = dialoom.play("personalens", path=tmp_path / "run.db", **given).episodes()
    assert episode.outcome.messages[1].content == "Yes." and "over" not in calls
    passed.set()


def test_threads_of_calls_live_until_the_run_ends(release: Path, tmp_path: Path) -> None:
    """Linux ends processes, such as Ray's, with the thread that started them."""
    threads, alive = list[threading.Thread](), list[bool]()

    def work(_: Any) -> Any:
        threads.append(threading.current_thread())
        alive.extend(each.is_alive() for each in threads)
        return {"messages": [AIMessage("Yes.")]}

    given = run_settings(release, models={"assistant": graph(work)}, options={"limit": 2}, concurrency=1)
    dialoom.play("personalens", path=tmp_path / "run.db", **given)
    assert len(threads) > 1 and all(alive)
    for each in threads:
        each.join(60)
    assert not any(each.is_alive() for each in threads)


def test_documented_endpoint_gets_the_session_and_is_retried(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(asked: dict[str, Any], number: int) -> Any:
        if number == 1:
            return busy(503, retry_after="0")
        cut = 5 if number == 2 else None  # the connection is closed in the middle of the answer
        return Response(body={"reply": f"Noted: {asked['messages'][-1]['content']}"}, cut=cut)

    with serving(answer) as server:
        monkeypatch.setenv("SHOP_URL", f"{server.url}/chat")
        episode = one_dialogue(release, tmp_path / "run.db", "python:docs.examples.endpoint:shop")
        assert episode.error is None and episode.outcome.messages[1].content == NOTED
        assert len(server.requests) == 5 and server.requests[0] == server.requests[1] == server.requests[2]
        assert all("x-session-id" in names for names in server.headers)
        server.answer = lambda *_: error(404, "no such shop")
        episode = one_dialogue(release, tmp_path / "other.db", "python:docs.examples.endpoint:shop")
        assert "docs.examples.endpoint:shop raised HTTPError: HTTP Error 404" in str(episode.error)
        assert len(server.requests) == 6
    with pytest.raises(TransientProviderError, match="raised ConnectionError: the shop cannot be reached: "):
        asyncio.run(create_player_backend("shop", shop).complete(request(None, session=Session("c", "p")), ""))


@pytest.mark.parametrize(("file", "name"), [("frameworks", "pydantic_ai_player"), ("endpoint", "shop")])
def test_docs_show_the_examples_unchanged(file: str, name: str) -> None:
    source = (ROOT / f"docs/examples/{file}.py").read_text(encoding="utf-8")
    (shown,) = re.findall(rf"^def {name}\(.*?(?=\n\n\n|\Z)", source, re.MULTILINE | re.DOTALL)
    assert f"```python\n{shown.strip()}\n```" in (ROOT / "docs/assistants.md").read_text(encoding="utf-8")
    assert file != "endpoint" or len(shown.splitlines()) <= 25


def test_docs_list_the_kinds_of_players_and_the_messages_about_bad_replies() -> None:
    """Every kind and every message is tested in this module."""
    text = (ROOT / "docs/assistants.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| kind | remarks |\n|---|---|\n")
    kinds = re.findall(r"^\| (.+?) \|", table.partition("\n\n")[0], re.MULTILINE)
    unlisted = {"function that returns a message in parts", "graph that shortens the conversation"}
    assert set(kinds) == KINDS.keys() - unlisted and len(kinds) == len(set(kinds))
    first = re.findall(r"^\| (.+?) \|(?: (.*?) \|)?", text, re.MULTILINE)
    shown = [sentence.strip("`") for _, sentence in first if sentence.startswith("`mine ")]
    tested = [re.sub("0.05 s$", "30 s", sentence) for _, sentence in [*INVALID_REPLIES.values(), *TRANSIENT.values()]]
    for sentence in shown:
        assert any(each.partition(" [")[0] in sentence for each in tested), sentence
    assert len(shown) >= 9


class Remembering:
    """A stateful object with snapshots."""

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        """Reply."""
        return str(len(messages))

    def snapshot(self) -> int:
        """Return the state."""
        return 0

    def restore(self, snapshot: int) -> None:
        """Restore the state."""


OUTER = (
    StateGraph(MessagesState)
    .add_node("inner", graph(acknowledge, checkpointer=InMemorySaver()))
    .add_edge(START, "inner")
)
REFUSED: Mapping[str, tuple[Any, str]] = {
    "checkpointer": (
        graph(acknowledge, checkpointer=InMemorySaver()),
        "models: mine is compiled with a checkpointer (InMemorySaver), so it keeps state between calls: declare it "
        "stateful (the setting `stateful` with the role, or Agent(graph, stateful=True)), or compile it without one",
    ),
    "store": (
        graph(acknowledge, store=InMemoryStore()),
        "models: mine is compiled with a store (InMemoryStore), so it",
    ),
    "graph with retries": (
        graph(acknowledge, checkpointer=InMemorySaver()).with_retry(),
        "models: RunnableRetry is compiled with a checkpointer (InMemorySaver), so it keeps state",
    ),
    "subgraph": (
        OUTER.compile(name="mine"),
        "models: mine has a subgraph 'inner' that is compiled with a checkpointer",
    ),
    "maker": (lambda tools: graph(acknowledge, checkpointer=InMemorySaver()), "is compiled with a checkpointer"),  # noqa: ARG005
    "maker of nothing": (lambda tools: None, "returned a NoneType; a function of `tools` must return a compiled"),  # noqa: ARG005
    "not callable": (
        7,
        "models: int cannot play a role: 7 must be a callable that takes `messages`",
    ),
    "snapshots": (Remembering(), "models: Remembering has snapshot() and restore(), so it keeps state between calls"),
    "class": (dict, "models: dict is a class: give an object of it, or declare it stateful"),
    "not compiled": (OUTER, "models: StateGraph cannot play a role: <langgraph.graph.state.StateGraph"),
}


@pytest.mark.parametrize(("player", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_object_that_cannot_play_is_refused_before_anything_is_written(
    release: Path, tmp_path: Path, player: Any, sentence: str
) -> None:
    run = dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release, options={"limit": 1}))
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
    """The exit code is 2, and nothing is written."""
    (tmp_path / "agent.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for command in (["run", "personalens", "-o", "run.db"], ["scorecard", "-o", "card"]):
        refused = dialoom(*command, "--model", f"assistant={name}", code=2)
        assert f"{name} is compiled with a checkpointer (InMemorySaver)" in refused.stderr
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith("__")] == ["agent.py"]


@pytest.mark.parametrize("workers", [None, 1])
def test_response_format_refused_once_is_not_sent_again_in_the_run(
    workers: int | None, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that accepts only llama.cpp's form refuses once while the run is played, and not in a second judging.

    A form found by a worker is stored in the run file, too.
    """
    local_cluster(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    def answer(body: dict[str, Any], _number: int) -> Answer:
        if body["response_format"]["type"] != "json_object":
            return error(422, "response_format: Input should be 'text' or 'json_object'")
        assert body["response_format"]["schema"]["additionalProperties"] is False
        name = next(iter(body["response_format"]["schema"]["properties"]))
        return completion(json.dumps({name: True if name == "verdict" else 2, "explanation": "so"}))

    with serving(answer) as server:
        judge = dialoom.Model("openai/small", api_base=server.url)
        plan = run_settings(release, models={"judge": judge}, options={"limit": 1}, concurrency=1, workers=workers)
        run = dialoom.play("personalens", path=tmp_path / "run.db", **plan)
        refused = [body for body in server.requests if body["response_format"]["type"] == "json_schema"]
        assert 1 <= len(refused) <= 6, "the judges of a dialogue are called concurrently"
        assert all(each.status == "ok" for episode in run.episodes() for each in episode.outcome.judgements)
        asked = len(server.requests)
        run.judge(judge, name="again")
        assert all(body["response_format"]["type"] == "json_object" for body in server.requests[asked:])
        assert len(server.requests) > asked

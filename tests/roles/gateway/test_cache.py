"""Replies shared by runs and by scenarios."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dialoom import Budget, DialoomError
from dialoom.prompts import ChatMessage
from dialoom.roles import (
    CacheError,
    CallPlace,
    Completion,
    Gateway,
    NotRecordedError,
    ProviderError,
    Verdict,
    score_type,
)
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.cache import ResponseCache
from dialoom.roles.gateway.gateway import GatewaySettings
from tests.ledgers import MemoryLedger, make_place, make_request
from tests.processes import CommandProcess
from tests.server import ChatServer, completion, serving

REPLY = Completion("Good morning.", 12, 4, 3, 0.5, "stop", "They greet me.")


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ResponseCache]:
    """Return an empty cache."""
    with ResponseCache(tmp_path / "replies.db") as cache:
        yield cache


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """Run a provider that numbers its replies."""
    with serving(lambda _body, number: completion(f"Reply {number}.")) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing-to-hide")
        yield server


async def test_reply_is_found_by_any_run(cache: ResponseCache, tmp_path: Path) -> None:
    await cache.store(make_request(), make_place(), REPLY)
    assert await cache.find(make_request(role="judge"), make_place()) == REPLY
    with ResponseCache(tmp_path / "replies.db") as other:
        assert await other.find(make_request(), make_place()) == REPLY


CHANGES: dict[str, Callable[[Request, CallPlace], tuple[Request, CallPlace]]] = {
    "model": lambda request, place: (replace(request, model="openai/gpt-4o"), place),
    "address": lambda request, place: (replace(request, api_base="http://127.0.0.1:1/v1"), place),
    "temperature": lambda request, place: (replace(request, temperature=0.8), place),
    "seed": lambda request, place: (replace(request, seed=2), place),
    "text": lambda request, place: (replace(request, messages=({"role": "user", "content": "Hello!"},)), place),
    "who said it": lambda request, place: (
        replace(request, messages=({"role": "system", "content": "Hello."},)),
        place,
    ),
    "shape": lambda request, place: (replace(request, reply_type=Verdict), place),
    "sample": lambda request, place: (request, replace(place, sample=1)),
    "second ask": lambda request, place: (request, place.next_ask()),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_everything_that_shapes_a_reply_is_in_its_key(cache: ResponseCache, change: str) -> None:
    request, place = make_request(), make_place()
    await cache.store(request, place, REPLY)
    assert await cache.find(*CHANGES[change](request, place)) is None
    assert await cache.find(replace(request, reply_type=score_type(1, 5)), place) is None


async def test_first_reply_is_not_replaced(cache: ResponseCache) -> None:
    await cache.store(make_request(), make_place(), REPLY)
    await cache.store(make_request(), make_place(), replace(REPLY, text="Good evening."))
    assert await cache.find(make_request(), make_place()) == REPLY


@pytest.mark.parametrize("model", ["python:players:user", "graph:players.py:user"])
async def test_replies_of_user_code_are_not_cached(cache: ResponseCache, model: str) -> None:
    await cache.store(make_request(model), make_place(), REPLY)
    assert await cache.find(make_request(model), make_place()) is None


def test_several_processes_use_one_file(tmp_path: Path) -> None:
    script = """
import asyncio, pathlib, sys
from dialoom.roles.gateway import Completion
from dialoom.roles.gateway.cache import ResponseCache
from tests.ledgers import make_place, make_request

async def work(cache, name):
    for number in range(60):
        request, place = make_request(seed=number), make_place(seed=number)
        if await cache.find(request, place) is None:
            await cache.store(request, place, Completion(f"{name} {number}"))
        assert (await cache.find(request, place)).text.endswith(f" {number}")

with ResponseCache(pathlib.Path(sys.argv[1])) as cache:
    asyncio.run(work(cache, sys.argv[2]))
"""
    path = tmp_path / "replies.db"
    running = [CommandProcess(tmp_path, path, name, script=script) for name in ("one", "two", "three", "four")]
    for process in running:
        with process:
            assert process.communicate()[1] == ""
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM replies").fetchone() == (60,)


def _not_sqlite(path: Path) -> None:
    path.write_text("a diary, and none of dialoom's business\n" * 200)


def _of_another_program(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")


def _of_another_version(path: Path) -> None:
    ResponseCache(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_not_sqlite, "not a database"),
        (_of_another_program, "not a cache of dialoom"),
        (_of_another_version, "another version of dialoom"),
        (Path.mkdir, "is a folder"),
    ],
)
def test_file_that_is_not_a_cache_is_refused_unchanged(
    tmp_path: Path, make: Callable[[Path], Any], message: str
) -> None:
    path = tmp_path / "replies.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(DialoomError, match=message) as raised:
        ResponseCache(path)
    assert "replies.db" in str(raised.value)
    assert before == (path.read_bytes() if path.is_file() else None)


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=r"no folder .*nowhere"):
        ResponseCache(tmp_path / "nowhere" / "replies.db")


@pytest.mark.usefixtures("server")
async def test_failing_cache_is_an_error_and_the_reply_is_in_the_ledger(cache: ResponseCache, tmp_path: Path) -> None:
    ledger = MemoryLedger()
    with sqlite3.connect(tmp_path / "replies.db") as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON replies BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
    with pytest.raises(CacheError, match=r"replies\.db cannot be used: the disk is full"):
        await Gateway(ledger, cache=cache).complete(make_request(), make_place())
    kept = ledger.records[0].completion
    assert kept is not None
    assert kept.text == "Reply 1."


async def test_second_run_sends_nothing_and_records_free_calls(cache: ResponseCache, server: ChatServer) -> None:
    first, second = MemoryLedger(), MemoryLedger()
    first_reply = await Gateway(first, cache=cache).complete(make_request(), make_place())
    no_money = GatewaySettings(budget=Budget(max_calls=0), replay_only=True)
    again = await Gateway(second, no_money, cache=cache).complete(make_request(), make_place())
    assert (len(server.requests), first_reply.text, again.text) == (1, "Reply 1.", "Reply 1.")
    assert first.records[0].attempts == 1
    record = second.records[0]
    assert record.attempts == 0
    assert record.completion == again
    assert (again.input_tokens, again.output_tokens, again.cached_tokens, again.cost) == (0, 0, 0, 0.0)
    with pytest.raises(NotRecordedError):
        await Gateway(second, no_money, cache=cache).complete(make_request(text="Something new."), make_place())


async def test_equal_requests_at_different_places_are_different_samples(
    cache: ResponseCache, server: ChatServer
) -> None:
    async def draw() -> list[str]:
        gateway = Gateway(MemoryLedger(), cache=cache)
        places = [(make_request(seed=seed), make_place(seed=seed, step=seed)) for seed in range(5)]
        return [reply.text for reply in await asyncio.gather(*(gateway.complete(*each) for each in places))]

    first = await draw()
    assert len(set(first)) == 5
    assert await draw() == first
    assert len(server.requests) == 5


@pytest.mark.usefixtures("server")
async def test_own_ledger_wins_over_the_cache(cache: ResponseCache) -> None:
    ledger = MemoryLedger()
    await Gateway(ledger).complete(make_request(), make_place())
    await cache.store(make_request(), make_place(), REPLY)
    assert (await Gateway(ledger, cache=cache).complete(make_request(), make_place())).text == "Reply 1."
    assert ledger.replays == 1


MODEL = "object:model"


class HeldModel:
    """A model whose replies are held back until an event is set.

    Attributes:
        texts: The last message of each call.
        asked: Set on each call.
        may_reply: Releases the replies.
        error: Raised instead of a reply.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.asked = asyncio.Event()
        self.may_reply = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Return the number of the call as the reply."""
        self.texts.append(messages[-1]["content"])
        number = len(self.texts)
        self.asked.set()
        await self.may_reply.wait()
        if self.error is not None:
            raise self.error
        return f"reply {number}"


def start_calls(gateway: Gateway, *scenarios: str, text: str = "Hello.") -> list[asyncio.Task[Completion]]:
    """Start the same common call for several scenarios."""
    request = make_request(MODEL, text)
    return [asyncio.create_task(_call(gateway, request, scenario)) for scenario in scenarios]


async def _call(gateway: Gateway, request: Request, scenario: str) -> Completion:
    return await gateway.complete(request, replace(make_place(scenario=scenario), is_common=True))


async def until_waiting(model: HeldModel, count: int = 1) -> None:
    """Wait until the model was called `count` times and all other callers are waiting."""
    while len(model.texts) < count:
        model.asked.clear()
        await model.asked.wait()
    for _ in range(50):
        await asyncio.sleep(0)


async def test_common_call_is_made_once() -> None:
    model, ledger = HeldModel(), MemoryLedger()
    gateway = Gateway(ledger, objects={MODEL: model})
    tasks = [*start_calls(gateway, "a", "b", "c"), *start_calls(gateway, "d", text="Something else.")]
    await until_waiting(model, 2)
    model.may_reply.set()
    replies = [(await task).text for task in tasks]
    assert sorted(model.texts) == ["Hello.", "Something else."]
    assert len(set(replies[:3])) == 1 and len(set(replies)) == 2
    (later,) = start_calls(gateway, "e")
    assert (await later).text == replies[0]
    assert len(ledger.begun) == 2


async def test_failed_common_call_fails_all_and_is_retried_on_resume() -> None:
    model, ledger = HeldModel(), MemoryLedger()
    gateway = Gateway(ledger, objects={MODEL: model})
    model.error = ValueError("not today")
    tasks = start_calls(gateway, "a", "b", "c")
    await until_waiting(model)
    model.may_reply.set()
    failures = await asyncio.gather(*tasks, return_exceptions=True)
    failures += await asyncio.gather(*start_calls(gateway, "d"), return_exceptions=True)
    assert [isinstance(each, ProviderError) for each in failures] == [True] * 4
    assert len(model.texts) == 1
    model.error = None
    resumed = Gateway(ledger, objects={MODEL: model})
    again = await asyncio.gather(*start_calls(resumed, "a", "b", "c"))
    assert {each.text for each in again} == {"reply 2"}


async def test_cancelled_caller_does_not_cancel_the_others() -> None:
    model = HeldModel()
    gateway = Gateway(MemoryLedger(), objects={MODEL: model})
    first, *others = start_calls(gateway, "a", "b", "c")
    await until_waiting(model)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await until_waiting(model, 2)
    model.may_reply.set()
    assert {each.text for each in await asyncio.gather(*others)} == {"reply 2"}

"""An unavailable provider is probed by one call at a time after growing pauses; all other calls wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from dialoom import ProviderReachable, ProviderUnreachable
from dialoom.roles import Completion, DrainedError, Gateway, ModelBinding, ProviderError, TransientProviderError
from dialoom.roles.errors import OutageEvidence, UnansweredError
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.availability import ProviderEvent, ProviderLost
from dialoom.roles.gateway.gateway import GatewaySettings
from tests.ledgers import MemoryLedger, make_place, make_request
from tests.virtual_time import now, run_in_virtual_time

MODEL, OTHER = "openai/m", "groq/m"


def refused() -> UnansweredError:
    """Return the error of a refused connection."""
    failure = UnansweredError(
        "cannot connect", evidence=OutageEvidence.STRONG, reason="connection refused", raw_message="refused"
    )
    failure.changes = "seed not sent"
    return failure


def unavailable() -> UnansweredError:
    """Return the error of a gateway whose backend is down."""
    return UnansweredError("bad gateway", evidence=OutageEvidence.WEAK, reason="status 502", raw_message="(502)")


@dataclass
class Connection:
    """A connection to a provider, in virtual time.

    Attributes:
        fails: The error of a request, by its text and the second in which it is sent; `None` if it is answered.
        sent: The time at which each request was sent.
        at_once: The maximum number of concurrent requests.
    """

    fails: Callable[[str, float], ProviderError | None]
    sent: list[float] = field(default_factory=list)
    at_once: int = 0
    in_flight: int = 0

    async def complete(self, request: Request, key: str) -> Completion:
        self.sent.append(now())
        self.in_flight += 1
        self.at_once = max(self.at_once, self.in_flight)
        failure = self.fails(request.messages[0]["content"], now())
        await asyncio.sleep(0.01 if failure else 0.5)
        self.in_flight -= 1
        if failure is not None:
            raise failure
        return Completion("heron", 1, 1)


@dataclass
class Scene:
    """A gateway with its ledger and the provider events that it reported."""

    gateway: Gateway
    ledger: MemoryLedger
    events: list[tuple[ProviderEvent, float]] = field(default_factory=list)

    @classmethod
    def of(
        cls, connection: Connection, monkeypatch: pytest.MonkeyPatch, patience: float = 600.0, at_once: int = 8
    ) -> Scene:
        """Return a scene in which all models are behind the given connection."""
        monkeypatch.setattr("dialoom.roles.gateway.gateway.LiteLLMBackend", lambda **_: connection)
        ledger = MemoryLedger()
        scene = cls(Gateway(ledger, GatewaySettings(concurrency=at_once, patience=patience)), ledger)
        scene.gateway.listen(lambda event: scene.events.append((event, now())))
        scene.gateway.prepare(
            [ModelBinding(model=MODEL, temperature=None), ModelBinding(model=OTHER, temperature=None)]
        )  # otherwise virtual time would jump while a thread does this
        return scene

    async def ask(self, texts: list[str], model: str = MODEL) -> list[Completion | BaseException]:
        """Make calls with these texts concurrently; return their replies or errors."""
        requests = [make_request(model, text) for text in texts]
        calls = [self.gateway.complete(request, make_place(seed)) for seed, request in enumerate(requests)]
        return await asyncio.gather(*calls, return_exceptions=True)


def texts(count: int) -> list[str]:
    """Return the texts of distinct requests."""
    return [f"Number {number}" for number in range(count)]


def test_one_call_at_a_time_probes_an_unavailable_provider_after_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider is down for 100 seconds, and no call uses up its attempts."""
    connection = Connection(lambda _text, second: refused() if second < 100 else None)

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch)
        replies = await scene.ask(texts(40))
        assert [reply.text for reply in replies if isinstance(reply, Completion)] == ["heron"] * 40
        (away, _), (back, _) = scene.events
        assert away == ProviderUnreachable("openai", "connection refused", 1.0, 600.0)
        assert isinstance(back, ProviderReachable)
        assert 100 < back.seconds < 135
        asked = [second for second in connection.sent if 0.5 < second < 100]
        pauses = [later - earlier for earlier, later in pairwise(asked)]
        assert [round(pause) for pause in pauses] == [2, 4, 8, 16, 30, 30]
        assert sum(second < 0.5 for second in connection.sent) == 8, "only the calls that were in flight"
        assert len(scene.ledger.begun) == 40, "each call is begun once"

    run_in_virtual_time(work())


def test_other_calls_wait_until_the_probe_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(lambda _text, second: refused() if second < 10 else None)

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch)
        await scene.ask(texts(8))
        (first, *others) = [second for second in connection.sent if second > 10]
        assert min(others) >= first + 0.5
        assert len(others) == 7

    run_in_virtual_time(work())


def test_provider_that_answers_some_calls_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(lambda text, _second: unavailable() if text.endswith(("1", "3")) else None)

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch)
        busy = asyncio.create_task(scene.ask([f"Even {2 * number}" for number in range(200)]))
        odd = await scene.ask(["Odd 1", "Odd 3"])
        assert [type(each) for each in odd] == [UnansweredError] * 2
        assert scene.events == []
        busy.cancel()

    run_in_virtual_time(work())


def test_provider_that_answers_after_the_first_attempt_at_a_lost_call_is_available(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(text: str, _second: float) -> ProviderError | None:
        failure = unavailable()
        failure.retry_after = 1.0  # the other call is answered before the second attempt
        return failure if text == "Lost" else None

    async def work() -> None:
        scene = Scene.of(Connection(fails), monkeypatch)
        lost, other = await scene.ask(["Lost", "Other"])
        assert isinstance(lost, UnansweredError) and isinstance(other, Completion)
        assert scene.events == []

    run_in_virtual_time(work())


@pytest.mark.parametrize(("failures", "is_away"), [(2, False), (3, True)])
def test_third_refused_connection_in_a_row_means_unavailable(
    failures: int, is_away: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restarting server refuses a connection or two; these calls are retried without an event."""
    connection = Connection(lambda _text, _second: refused() if len(connection.sent) <= failures else None)

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch, at_once=1)
        (reply,) = await scene.ask(texts(1))
        assert isinstance(reply, Completion)
        assert bool(scene.events) is is_away

    run_in_virtual_time(work())


def test_gateway_without_a_backend_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(lambda _text, second: unavailable() if second < 120 else None)

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch)
        replies = await scene.ask(texts(8))
        assert all(isinstance(reply, Completion) for reply in replies)
        assert [type(event) for event, _ in scene.events] == [ProviderUnreachable, ProviderReachable]

    run_in_virtual_time(work())


def test_calls_to_another_provider_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(lambda text, second: refused() if text.startswith("Number") and second < 60 else None)

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch)
        waiting = asyncio.create_task(scene.ask(texts(8)))
        await asyncio.sleep(5)
        await scene.ask([f"Other {number}" for number in range(8)], OTHER)
        assert now() < 7
        await waiting
        assert {event.provider for event, _ in scene.events} == {"openai"}

    run_in_virtual_time(work())


def test_patience_ends_and_a_listener_stops_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(lambda _text, _second: refused())

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch, patience=45.0)

        def stop(event: ProviderEvent) -> None:
            scene.events.append((event, now()))
            if isinstance(event, ProviderLost):
                scene.gateway.drain()

        scene.gateway.listen(stop)
        replies = await scene.ask(texts(12))
        assert [type(reply) for reply in replies] == [DrainedError] * 12
        gone, at = scene.events[-1]
        assert isinstance(gone, ProviderLost)
        assert gone.reason == "connection refused"
        assert 45 <= at < 46
        assert [round(second) for second in connection.sent] == [0] * 8 + [1, 3, 7, 15, 31, 45]
        assert len(scene.ledger.attempts) == 14

    run_in_virtual_time(work())


def test_calls_fail_without_a_listener_that_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(lambda _text, _second: refused())

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch, patience=45.0)
        assert [type(reply) for reply in await scene.ask(texts(3))] == [UnansweredError] * 3

    run_in_virtual_time(work())


@pytest.mark.parametrize("kind", ["drained", "cancelled"])
def test_waiting_call_can_be_drained_or_cancelled(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    connection = Connection(lambda _text, second: refused() if second < 20 else None)

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch)
        calls = [
            asyncio.create_task(scene.gateway.complete(make_request(MODEL), make_place(seed))) for seed in range(6)
        ]
        await asyncio.sleep(10)
        if kind == "drained":
            scene.gateway.drain()
            replies = await asyncio.gather(*calls, return_exceptions=True)
            assert now() < 11
            assert [type(reply) for reply in replies] == [DrainedError] * 6
            records = scene.ledger.records
            assert {(each.error, each.changes) for each in records.values()} == {("cannot connect", "seed not sent")}
            assert records.keys() == set(range(6))
            return
        for call in calls[:5]:
            call.cancel()
        assert (await calls[5]).text == "heron"

    run_in_virtual_time(work())


def test_recorded_replies_need_no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(lambda text, _second: refused() if text.startswith("Number") else None)

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch)
        known = make_request(MODEL, "Known")
        await scene.gateway.complete(known, make_place())
        waiting = asyncio.create_task(scene.ask(texts(4)))
        await asyncio.sleep(5)
        assert (await scene.gateway.complete(known, make_place())).text == "heron"
        assert now() < 6
        scene.gateway.drain()
        await waiting

    run_in_virtual_time(work())


def test_server_with_errors_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(lambda _text, _second: TransientProviderError("trouble (500)"))

    async def work() -> None:
        scene = Scene.of(connection, monkeypatch)
        assert [type(reply) for reply in await scene.ask(texts(4))] == [TransientProviderError] * 4
        assert len(connection.sent) == 24
        assert scene.events == []

    run_in_virtual_time(work())

"""The adaptive limit, rates, pauses and requested waits."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.roles.gateway.limits import AdaptiveLimit, LimitState
from dialoom.roles.gateway.retries import parse_retry_after
from tests.server import http_date
from tests.virtual_time import now, run_in_virtual_time


@dataclass
class Provider:
    """A provider that accepts a limited number of concurrent calls and rejects the others; a call takes about a second.

    Attributes:
        capacity: The number of concurrent calls accepted, by the time in seconds from the start.
        settled: The time from which limits and late rejections are recorded.
    """

    capacity: Callable[[float], int]
    settled: float = 20.0
    in_flight: int = 0
    rejected: int = 0
    rejected_late: int = 0
    limits: list[int] = field(default_factory=list)
    draw: random.Random = field(default_factory=lambda: random.Random(7))

    async def ask(self) -> bool:
        """Return whether the provider answers the call."""
        if self.in_flight >= self.capacity(now()):
            await asyncio.sleep(0.05)
            self.rejected += 1
            self.rejected_late += now() > self.settled
            return False
        self.in_flight += 1
        await asyncio.sleep(0.5 + self.draw.random())
        self.in_flight -= 1
        return True


async def serve(provider: Provider, limit: AdaptiveLimit, calls: int, concurrency: int) -> float:
    """Make calls as the gateway does, each until it is answered; return the seconds that they took."""
    draw, semaphore = random.Random(1), asyncio.Semaphore(concurrency)

    async def call() -> None:
        async with semaphore:
            for attempt in range(1_000):
                async with limit.slot() as slot:
                    if answered := await provider.ask():
                        limit.record_success(slot)
                    else:
                        limit.record_overload(slot, None)
                    if now() > provider.settled:
                        provider.limits.append(limit.state.limit)
                if answered:
                    return
                await asyncio.sleep(draw.random() * min(30, 2**attempt))
            raise AssertionError("the call was never answered")

    await asyncio.gather(*(call() for _ in range(calls)))
    return now()


@pytest.mark.parametrize("capacity", [20, 60])
def test_limit_settles_at_the_providers_capacity(capacity: int) -> None:
    """With 128 allowed, the limit stays within a fifth of the provider's capacity, and few calls are rejected."""

    async def play() -> tuple[Provider, float]:
        provider = Provider(lambda _now: capacity)
        return provider, await serve(provider, AdaptiveLimit(128, clock=now), calls=100 * capacity, concurrency=128)

    provider, seconds = run_in_virtual_time(play())
    assert 0.8 * capacity <= statistics.mean(provider.limits) <= 1.2 * capacity
    assert min(provider.limits) >= 0.5 * capacity
    assert provider.rejected_late <= 0.03 * 100 * capacity
    assert seconds <= 1.35 * 100, "the minimum is 100 seconds"


def test_limit_recovers_after_an_outage() -> None:
    def capacity(moment: float) -> int:
        return 0 if 30 < moment < 60 else 100

    async def play() -> tuple[Provider, float]:
        provider = Provider(capacity, settled=110)
        return provider, await serve(provider, AdaptiveLimit(100, clock=now), calls=12_000, concurrency=100)

    provider, seconds = run_in_virtual_time(play())
    assert statistics.mean(provider.limits) >= 80
    assert seconds <= 120 + 30 + 2 * 30, "the calls, the outage, and the longest pauses between attempts"


def test_limit_follows_a_changing_capacity() -> None:
    """The capacity rises from 10 to 64, and the limit follows."""

    async def play() -> tuple[Provider, LimitState]:
        provider, limit = Provider(lambda moment: 10 if moment < 100 else 64, settled=300), AdaptiveLimit(64, clock=now)
        await serve(provider, limit, calls=15_000, concurrency=64)
        return provider, limit.state

    provider, state = run_in_virtual_time(play())
    assert min(provider.limits) >= 32
    assert state.in_flight == state.waiting == 0


def test_calls_sent_before_a_reduction_do_not_reduce_the_limit_again() -> None:
    async def play() -> LimitState:
        limit = AdaptiveLimit(16, clock=now)

        async def call() -> None:
            async with limit.slot() as slot:
                await asyncio.sleep(1)
                limit.record_overload(slot, None)

        await asyncio.gather(*(call() for _ in range(16)))
        return limit.state

    state = run_in_virtual_time(play())
    assert (state.limit, state.throttled) == (8, 16)


def test_nothing_is_sent_during_a_retry_after() -> None:
    async def play(rpm: int | None) -> list[float]:
        limit, sent = AdaptiveLimit(8, rpm=rpm, clock=now), []

        async def call(number: int) -> None:
            async with limit.slot() as slot:
                sent.append(slot.sent_at)
                await asyncio.sleep(0.5)
                if number == 0:
                    limit.record_overload(slot, 3600)

        tasks = [asyncio.create_task(call(number)) for number in range(20)]
        await asyncio.sleep(2)
        assert 3500 < limit.state.paused <= 3600
        await asyncio.gather(*tasks)
        assert limit.state.paused == 0
        return sorted(sent)

    for rpm in (None, 30):
        sent = run_in_virtual_time(play(rpm))
        assert len(sent) == 20
        assert not [moment for moment in sent if 0.5 < moment < 3600.5]
        assert sent[-1] < 3600.5 + 60


def test_request_and_token_rates_are_not_exceeded() -> None:
    async def play(rpm: int | None, tpm: int | None) -> list[float]:
        limit, sent = AdaptiveLimit(50, rpm, tpm, now), []

        async def call() -> None:
            async with limit.slot(tokens=10) as slot:
                sent.append(slot.sent_at)

        await asyncio.gather(*(call() for _ in range(120)))
        return sent

    for rates in ((60, None), (None, 600), (60, 100_000)):
        sent = sorted(run_in_virtual_time(play(*rates)))
        for start in range(60):
            assert len([moment for moment in sent if start <= moment < start + 60]) <= 61
        assert sent[-1] == pytest.approx(119, abs=1)


@dataclass
class Talk:
    """Callers that make calls of one kind, each one after another, until a time has passed.

    Attributes:
        tpm: The limit in tokens a minute.
        estimate: The estimated tokens of a call.
        takes: The actual tokens of a call.
        seconds: The duration of a call.
        concurrency: The number of callers.
        lasts: Seconds after which no further calls are made.
        sent: The times at which calls were sent.
    """

    tpm: int
    estimate: int
    takes: int
    seconds: float
    concurrency: int
    lasts: float = 1800
    sent: list[float] = field(default_factory=list)

    async def play(self) -> None:
        limit = AdaptiveLimit(self.concurrency, tpm=self.tpm, clock=now)

        async def speak() -> None:
            while now() < self.lasts:
                async with limit.slot(self.estimate) as slot:
                    self.sent.append(slot.sent_at)
                    await asyncio.sleep(self.seconds)
                    limit.record_success(slot, self.takes)

        await asyncio.gather(*(speak() for _ in range(self.concurrency)))

    def took(self, start: float, minutes: float) -> float:
        """Return the tokens of the calls sent in some minutes, as a share of the limit."""
        calls = sum(start <= moment < start + 60 * minutes for moment in self.sent)
        return calls * self.takes / (self.tpm * minutes)


@pytest.mark.parametrize(("seconds", "concurrency"), [(1, 1), (1, 40), (30, 100)])
def test_underestimated_calls_do_not_exceed_the_rate(seconds: float, concurrency: int) -> None:
    talk = Talk(60_000, estimate=300, takes=1_256, seconds=seconds, concurrency=concurrency)
    run_in_virtual_time(talk.play())
    assert talk.took(0, 30) <= 1.05
    for start in range(3 * int(seconds) + 60, 1740, 10):
        assert talk.took(start, 1) <= 1.1


@pytest.mark.parametrize(("seconds", "concurrency"), [(1, 1), (1, 40), (20, 8)])
def test_overestimated_calls_use_the_whole_rate(seconds: float, concurrency: int) -> None:
    talk = Talk(6_000, estimate=1_256, takes=300, seconds=seconds, concurrency=concurrency)
    run_in_virtual_time(talk.play())
    assert 0.97 <= talk.took(0, 30) <= 1.03
    assert 0.99 <= talk.took(900, 15) <= 1.01


@given(
    tpm=st.integers(1, 600_000),
    calls=st.lists(st.tuples(st.integers(0, 5_000), st.none() | st.integers(0, 5_000)), min_size=1, max_size=30),
)
def test_sequential_calls_wait_for_exactly_the_tokens_taken(tpm: int, calls: list[tuple[int, int | None]]) -> None:
    async def play() -> None:
        limit, spent = AdaptiveLimit(1, tpm=tpm, clock=now), 0
        for estimate, took in calls:
            async with limit.slot(estimate) as slot:
                paid = spent * 60 / tpm
                assert paid - max(1, 60 / tpm) - 0.001 <= now() <= paid + 0.01 * len(calls)
                limit.record_success(slot, took)
                spent += slot.reserved_tokens if took is None else took

    run_in_virtual_time(play())


def test_call_that_was_not_sent_uses_no_rate() -> None:
    async def play() -> float:
        limit = AdaptiveLimit(8, rpm=1, tpm=10, clock=now)

        async def call() -> None:
            async with limit.slot(tokens=10) as slot:
                limit.release(slot)

        await asyncio.gather(*(call() for _ in range(100)))
        return now()

    assert run_in_virtual_time(play()) == 0


def test_reply_with_fewer_tokens_than_reserved_releases_the_next_call() -> None:
    async def play() -> list[float]:
        limit, sent = AdaptiveLimit(8, tpm=600, clock=now), []

        async def call() -> None:
            async with limit.slot(tokens=600) as slot:
                sent.append(slot.sent_at)
                await asyncio.sleep(5)
                limit.record_success(slot, 40)

        await asyncio.gather(call(), call())
        return sent

    assert run_in_virtual_time(play()) == [0, 5]


def test_cancelled_wait_for_the_rate_uses_nothing() -> None:
    async def play() -> float:
        limit = AdaptiveLimit(64, rpm=60, clock=now)

        async def call() -> float:
            async with limit.slot() as slot:
                return slot.sent_at

        await call()
        waiting = [asyncio.create_task(call()) for _ in range(50)]
        await asyncio.sleep(0.1)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return await call()

    assert run_in_virtual_time(play()) <= 1.1


def test_cancelled_wait_for_tokens_returns_the_request() -> None:
    async def play() -> float:
        limit = AdaptiveLimit(8, rpm=2, tpm=60, clock=now)

        async def call(tokens: int) -> float:
            async with limit.slot(tokens) as slot:
                return slot.sent_at

        await call(41)
        second = asyncio.create_task(call(1))
        await asyncio.sleep(31)
        second.cancel()
        return await call(1)

    assert run_in_virtual_time(play()) == pytest.approx(41, abs=0.01), "when the tokens are available again, not at 60"


@given(
    most=st.integers(1, 6),
    calls=st.lists(
        st.tuples(
            st.sampled_from(["answered", "overloaded", "paused", "raises"]),
            st.integers(0, 5),  # its start
            st.integers(1, 4),  # its duration
            st.none() | st.integers(0, 8),  # the time of its cancellation
        ),
        max_size=30,
    ),
)
def test_no_slot_is_lost_or_given_twice(most: int, calls: list[tuple[str, int, int, int | None]]) -> None:
    async def play() -> None:
        limit, in_flight = AdaptiveLimit(most, clock=now), 0

        async def call(outcome: str, start: int, duration: int) -> None:
            nonlocal in_flight
            await asyncio.sleep(start)
            allowed = limit.state.limit
            async with limit.slot() as slot:
                in_flight += 1
                assert in_flight == limit.state.in_flight <= max(most, allowed)
                try:
                    await asyncio.sleep(duration)
                    if outcome == "answered":
                        limit.record_success(slot)
                    elif outcome == "raises":
                        raise ValueError("the caller's own")
                    else:
                        limit.record_overload(slot, 7 if outcome == "paused" else None)
                finally:
                    in_flight -= 1

        loop = asyncio.get_running_loop()
        tasks = []
        for outcome, start, duration, cancelled in calls:
            task = asyncio.create_task(call(outcome, start, duration))
            tasks.append(task)
            if cancelled is not None:
                loop.call_later(cancelled, task.cancel)
        for task in tasks:
            with suppress(asyncio.CancelledError, ValueError):
                await asyncio.wait_for(task, 1_000)
        assert (limit.state.in_flight, limit.state.waiting) == (0, 0)
        assert 1 <= limit.state.limit <= most
        async with asyncio.timeout(100), limit.slot():
            pass  # a slot is free again

    run_in_virtual_time(play())


def test_call_cancelled_when_it_is_woken_wakes_the_next() -> None:
    async def play() -> None:
        limit = AdaptiveLimit(1, clock=now)

        async def call() -> None:
            async with limit.slot():
                await asyncio.sleep(0)

        async with limit.slot():
            woken, next_ = asyncio.create_task(call()), asyncio.create_task(call())
            await asyncio.sleep(1)
        woken.cancel()
        await asyncio.wait_for(next_, 1)
        assert woken.cancelled()

    run_in_virtual_time(play())


def test_lowered_limit_holds_for_later_calls() -> None:
    async def play() -> int:
        limit, highest = AdaptiveLimit(8, clock=now), 0

        async def call(duration: float, is_rejected: bool) -> None:
            nonlocal highest
            async with limit.slot() as slot:
                if now() > 1:
                    highest = max(highest, limit.state.in_flight)
                await asyncio.sleep(duration)
                if is_rejected:
                    limit.record_overload(slot, None)

        first = [call(1 + number / 10, is_rejected=number == 0) for number in range(8)]
        await asyncio.gather(*first, *(call(1, is_rejected=False) for _ in range(20)))
        return highest

    assert run_in_virtual_time(play()) == 4


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"RETRY-AFTER": " 7 "}, 7.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:10 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 10.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_retry_after_headers_are_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers) == seconds


def test_retry_after_date_without_a_server_clock_uses_the_local_clock() -> None:
    found = parse_retry_after({"retry-after": http_date(100)})
    assert found is not None and 90 < found <= 100


def test_retry_delay_in_a_body_is_read_and_a_header_wins() -> None:
    body = '{"details": [{"@type": "RetryInfo", "retryDelay": "34.5s"}]}'
    assert parse_retry_after({}, body) == 34.5
    assert parse_retry_after({"retry-after": "1"}, body) == 1.0

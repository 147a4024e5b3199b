"""The budget's account, prices, and the ledger."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom import Budget, DialoomError, Price
from dialoom.cli.setting_flags import CallCommand, build_settings
from dialoom.roles import (
    BudgetError,
    Completion,
    DrainedError,
    Gateway,
    PermanentProviderError,
    ProviderError,
    TransientProviderError,
)
from dialoom.roles.gateway.budget import Account, Spend
from dialoom.roles.gateway.gateway import MAX_ATTEMPTS, GatewaySettings
from dialoom.roles.gateway.model_facts import Prices
from tests.ledgers import MemoryLedger, make_place
from tests.roles.gateway.asking import KEY, request
from tests.server import Answer, Response, broken_off, busy, completion, ended, error, serving

spends = st.builds(Spend, st.just(1), st.integers(0, 500), st.integers(0, 500).map(lambda cents: cents / 100))
budgets = st.builds(
    Budget,
    max_calls=st.none() | st.integers(0, 10),
    max_tokens=st.none() | st.integers(0, 2_000),
    max_cost=st.none() | st.floats(0, 20),
)


@given(budget=budgets, steps=st.lists(st.tuples(st.booleans(), spends), max_size=60))
def test_no_reservation_exceeds_a_limit(budget: Budget, steps: list[tuple[bool, Spend]]) -> None:
    account, in_flight = Account(budget), list[Spend]()
    for begins, figures in steps:
        if begins:
            before = replace(account.reserved)
            try:
                account.reserve(figures)
            except BudgetError:
                assert account.reserved == before, "a refused call reserves nothing"
                continue
            in_flight.append(figures)
            for bound, each in ((budget.max_calls, "calls"), (budget.max_tokens, "tokens"), (budget.max_cost, "cost")):
                if bound is not None:
                    assert getattr(account.spent, each) + getattr(account.reserved, each) <= bound + 1e-6
        elif in_flight:
            expected = in_flight.pop()
            account.settle(expected, expected)
    assert account.reserved.calls == len(in_flight)
    assert account.reserved.tokens == sum(each.tokens for each in in_flight)
    assert account.reserved.cost == pytest.approx(sum(each.cost for each in in_flight))


def test_free_call_fits_into_a_budget_of_nothing() -> None:
    Account(Budget(max_cost=0)).reserve(Spend(1, 100, 0.0))


def test_tenths_of_a_dollar_add_up() -> None:
    """Three calls for $0.1 fit into $0.3, and a fourth does not."""
    account = Account(Budget(max_cost=0.3))
    for _ in range(3):
        account.reserve(Spend(1, 0, 0.1))
    with pytest.raises(BudgetError, match=r"max_cost 0\.3"):
        account.reserve(Spend(1, 0, 0.1))


async def test_refused_claim_refuses_every_later_one() -> None:
    """Otherwise a small call could continue a run that is being stopped."""
    account = Account(Budget(max_tokens=100))
    with pytest.raises(BudgetError) as first:
        await account.claim(Spend(1, 101))
    with pytest.raises(BudgetError) as later:
        account.reserve(Spend(1, 1))
    assert str(later.value) == str(first.value)
    assert later.value.setting == first.value.setting == "max_tokens"


def test_failed_call_returns_its_reservation() -> None:
    account = Account(Budget(max_calls=1))
    account.reserve(Spend(1))
    account.settle(Spend(1), Spend())
    account.reserve(Spend(1))


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("refusal", [error(401, "no such key"), broken_off()])
async def test_budget_of_a_failed_call_is_free_for_the_next_one(refusal: Answer | Response) -> None:
    """A failed call's reservation is released; otherwise the next call would wait forever."""
    with serving(lambda body, _number: refusal if "fails" in str(body) else completion("heron")) as server:
        gateway = Gateway(MemoryLedger(), GatewaySettings(budget=Budget(max_calls=1), max_backoff=0.001))
        with pytest.raises(ProviderError):
            await gateway.complete(request(server.url, content="This fails."), make_place(1))
        async with asyncio.timeout(10):
            assert (await gateway.complete(request(server.url), make_place(2))).text == "heron"
        with pytest.raises(BudgetError, match="max_calls 1 is used up: 1 spent, 0 reserved for calls in flight"):
            await gateway.complete(request(server.url, content="Say otter."), make_place(3))


@pytest.mark.usefixtures("keyed")
async def test_billed_reply_that_was_removed_is_taken_from_the_budget() -> None:
    with serving(lambda _body, _number: FAULTS["removed"]) as server:
        gateway = Gateway(MemoryLedger(), GatewaySettings(budget=Budget(max_calls=1, max_tokens=300)))
        with pytest.raises(PermanentProviderError, match="content filter"):
            await gateway.complete(request(server.url), make_place(1))
        with pytest.raises(BudgetError, match="max_tokens 300 is used up: 42 spent, 0 reserved"):
            await gateway.complete(request(server.url), make_place(2))


@pytest.mark.usefixtures("keyed")
async def test_reply_of_unknown_cost_is_taken_from_the_budget_by_its_tokens() -> None:
    status, body = completion("heron", prompt_tokens=100_000)
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 100_001}
    with serving(lambda _body, _number: (status, body)) as server:
        gateway = Gateway(MemoryLedger(), GatewaySettings(budget=Budget(max_cost=0.01)))
        assert (await gateway.complete(request(server.url), make_place(1))).cost is None
        with pytest.raises(BudgetError, match=r"max_cost 0\.01 is used up: 0\.06 spent"):
            await gateway.complete(request(server.url), make_place(step=2))


@pytest.mark.usefixtures("keyed")
async def test_billed_reply_of_a_drained_call_has_the_stated_price() -> None:
    ledger, prices = MemoryLedger(), {"openai/gpt-4o-mini": Price(1000, 2000)}
    gateway, loop = Gateway(ledger, GatewaySettings(prices=prices)), asyncio.get_running_loop()

    def answer(_body: object, _number: int) -> Answer | Response:
        loop.call_soon_threadsafe(gateway.drain)
        return FAULTS["no choice"]

    with serving(answer) as server, pytest.raises(DrainedError):
        await gateway.complete(request(server.url), make_place())
    billed = ledger.records[0].billed
    assert billed is not None and billed.cost == pytest.approx(0.056)


@pytest.mark.usefixtures("keyed")
async def test_reply_with_half_its_tokens_counts_as_estimated() -> None:
    with serving(lambda _body, _number: ended("heron", "stop", {"prompt_tokens": 7})) as server:
        asked = request(server.url)
        gateway = Gateway(MemoryLedger(), GatewaySettings(budget=Budget(max_tokens=asked.expected_tokens)))
        assert (await gateway.complete(asked, make_place(1))).output_tokens is None
        with pytest.raises(BudgetError, match=f"{asked.expected_tokens} spent, 0 reserved"):
            await gateway.complete(asked, make_place(step=2))


def test_spending_before_a_resume_counts() -> None:
    account = Account(Budget(max_tokens=1_234_567), spent=Spend(10, 1_234_000, 0.0))
    with pytest.raises(BudgetError, match=r"max_tokens 1,?234,?567 is used up: 1,?234,?000 spent"):
        account.reserve(Spend(1, 568, 0.0))
    account.reserve(Spend(1, 567, 0.0))


async def test_idle_waits_for_calls_in_flight() -> None:
    account = Account(Budget())
    account.reserve(Spend(1))
    waiting = asyncio.create_task(account.wait_until_idle())
    await asyncio.sleep(0)
    assert not waiting.done()
    account.settle(Spend(1), Spend(1))
    async with asyncio.timeout(10):
        await waiting


async def test_call_over_the_limit_waits_for_calls_in_flight() -> None:
    account = Account(Budget(max_tokens=100))
    await account.claim(Spend(1, 80, 0.0))
    waiting = asyncio.create_task(account.claim(Spend(1, 50, 0.0)))
    await asyncio.sleep(0)
    assert not waiting.done()
    account.settle(Spend(1, 80, 0.0), Spend(1, 20, 0.0))
    await waiting
    account.settle(Spend(1, 50, 0.0), Spend(1, 50, 0.0))
    with pytest.raises(BudgetError):
        await account.claim(Spend(1, 50, 0.0))


def test_cached_input_has_its_own_price() -> None:
    assert Price(2, 8, 0.5).compute_cost(1_000_000, 500_000, 400_000) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.5 * 8)
    assert Price(2, 8).compute_cost(1_000_000, 0, 400_000) == pytest.approx(2)


def test_more_cached_tokens_than_tokens_are_ignored() -> None:
    assert Price(2, 8, 0.5).compute_cost(100, 0, 900) == pytest.approx(100 * 0.5 / 1_000_000)


def test_stated_price_wins_and_unknown_stays_unknown() -> None:
    prices = Prices({"house/small": Price(1, 2), "openai/gpt-4o-mini": Price(10, 20, 5)})
    reply = Completion("Yes.", 1_000_000, 1_000_000, 500_000, cost=0.75)
    assert prices.apply_to(reply, "openai/gpt-4o-mini").cost == pytest.approx(5 + 2.5 + 20)
    assert prices.apply_to(reply, "openai/gpt-4o").cost == 0.75
    assert prices.apply_to(Completion("Yes."), "house/small").cost is None
    assert prices.estimate_cost("house/small", 1_000_000) == 2
    assert prices.estimate_cost("house/large", 1_000) is None
    listed = Prices().find_price("gpt-4o-mini")
    assert listed is not None
    assert 0 < listed.input < listed.output


@pytest.mark.parametrize("option", ["m", "m=", "m=1", "=1,2", "m=1,2,3,4", "m=one,2", "m=-1,2", "m=nan,2", "m=1,inf"])
def test_malformed_price_is_refused(option: str) -> None:
    with pytest.raises(DialoomError, match="IN,OUT"):
        build_settings(CallCommand, {"price": [option]})


FAULTS: dict[str, Answer | Response] = {
    "busy": busy(),
    "trouble": error(500, "trouble"),
    "cut": broken_off(),
    "no JSON": Response(raw=b"<html>welcome</html>", headers={"Content-Type": "text/html"}),
    "nested too deeply": Response(raw=b"[" * 100_000),
    "refused": error(400, "no such thing"),
    "removed": ended("", "content_filter", {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42}),
    "no choice": (200, {**completion("", 50, 3)[1], "choices": []}),
    "null choices": (200, {**completion("", 60, 4)[1], "choices": None}),
    "null choices, no tokens": (200, {"choices": None, "usage": None}),
}
FINAL = {"refused", "removed"}
BILLED = {"removed": 42, "no choice": 53, "null choices": 64}


@settings(max_examples=15)
@given(st.lists(st.lists(st.sampled_from(sorted(FAULTS)), max_size=7), min_size=1, max_size=4))
def test_ledger_is_what_the_server_billed(faults: list[list[str]]) -> None:
    attempts = [0] * len(faults)
    billed = 0

    def answer(body: dict[str, object], _number: int) -> Answer | Response:
        nonlocal billed
        call = int(str(body["messages"][-1]["content"]))  # type: ignore[index]
        attempts[call] += 1
        if attempts[call] <= len(faults[call]):
            fault = faults[call][attempts[call] - 1]
            billed += BILLED.get(fault, 0)
            return FAULTS[fault]
        billed += 10 + call + 5
        return completion("heron", prompt_tokens=10 + call)

    ledger = MemoryLedger()

    async def play(url: str) -> list[Completion | BaseException]:
        gateway = Gateway(ledger, GatewaySettings(concurrency=2, max_backoff=0.001))
        asked = [(request(url, content=str(call)), make_place(step=call)) for call in range(len(faults))]
        return await asyncio.gather(*(gateway.complete(*each) for each in asked), return_exceptions=True)

    with serving(answer) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", KEY)
        ends = asyncio.run(play(server.url))
    for call, (end, sequence) in enumerate(zip(ends, faults, strict=True)):
        seen = sequence[:MAX_ATTEMPTS]
        refused = next((number for number, fault in enumerate(seen, start=1) if fault in FINAL), None)
        if refused is not None:
            assert isinstance(end, PermanentProviderError)
        elif len(seen) == MAX_ATTEMPTS:
            assert isinstance(end, TransientProviderError)
        else:
            assert isinstance(end, Completion) and end.text == "heron"
        assert attempts[call] == (refused or min(len(sequence) + 1, MAX_ATTEMPTS))
    records = [ledger.records[number] for number in range(len(ledger.begun))]
    assert len(records) == len(faults), "each call is begun and ended once"
    assert all((record.completion is None) != (record.error is None) for record in records)
    figures = [figures for record in records if (figures := record.completion or record.billed) is not None]
    assert sum((each.input_tokens or 0) + (each.output_tokens or 0) for each in figures) == billed
    assert len(ledger.attempts) == sum(attempts) - sum(record.completion is not None for record in records)
    assert sum(record.attempts for record in records) == len(server.requests) == sum(attempts)
    assert not any(isinstance(end, BaseException) and not isinstance(end, ProviderError) for end in ends)

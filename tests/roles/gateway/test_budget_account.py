"""The budget's account and the prices: what is set aside never exceeds a bound, and sums come out."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom import Budget, Price
from dialoom.cli.settings import call_settings
from dialoom.roles import BudgetError, Completion
from dialoom.roles.gateway.budget import Account, Taken
from dialoom.roles.gateway.prices import Prices
from dialoom.runs import RunError

takings = st.builds(Taken, st.just(1), st.integers(0, 500), st.integers(0, 500).map(lambda cents: cents / 100))
bounds = st.builds(
    Budget,
    max_calls=st.none() | st.integers(0, 10),
    max_tokens=st.none() | st.integers(0, 2_000),
    max_cost=st.none() | st.floats(0, 20),
)


@given(budget=bounds, steps=st.lists(st.tuples(st.booleans(), takings), max_size=60))
def test_no_reservation_goes_beyond_a_bound(budget: Budget, steps: list[tuple[bool, Taken]]) -> None:
    """Whatever the order of calls and replies: what is spent and set aside stays within bounds."""
    account, in_flight = Account(budget), list[Taken]()
    for begins, figures in steps:
        if begins:
            before = replace(account.reserved)
            try:
                account.reserve(figures)
            except BudgetError:
                assert account.reserved == before, "nothing is set aside for a call that is refused"
                continue
            in_flight.append(figures)
            for bound, each in ((budget.max_calls, "calls"), (budget.max_tokens, "tokens"), (budget.max_cost, "cost")):
                if bound is not None:
                    assert getattr(account.spent, each) + getattr(account.reserved, each) <= bound + 1e-6
        elif in_flight:
            expected = in_flight.pop()
            account.settle(expected, expected)
    assert account.reserved.calls == len(in_flight)
    assert account.reserved.cost == pytest.approx(sum(each.cost for each in in_flight))


def test_tenths_of_a_dollar_add_up() -> None:
    """Three calls for $0.1 fit into $0.3, and a fourth does not."""
    account = Account(Budget(max_cost=0.3))
    for _ in range(3):
        account.reserve(Taken(1, 0, 0.1))
    with pytest.raises(BudgetError, match=r"max_cost 0\.3"):
        account.reserve(Taken(1, 0, 0.1))


def test_a_failed_call_gives_back_what_was_set_aside() -> None:
    """It took nothing."""
    account = Account(Budget(max_calls=1))
    account.reserve(Taken(1))
    account.settle(Taken(1), Taken())
    account.reserve(Taken(1))


def test_earlier_sittings_count() -> None:
    """The bound is the run's; the message names the figures in full."""
    account = Account(Budget(max_tokens=1_234_567), spent=Taken(10, 1_234_000, 0.0))
    with pytest.raises(BudgetError, match=r"max_tokens 1,?234,?567 is used up: 1,?234,?000 spent"):
        account.reserve(Taken(1, 568, 0.0))
    account.reserve(Taken(1, 567, 0.0))


async def test_who_has_no_room_yet_waits_for_what_is_in_flight() -> None:
    """A call took less than was set aside for it: the next one has room after all, and the one after that has not."""
    account = Account(Budget(max_tokens=100))
    await account.claim(Taken(1, 80, 0.0))
    waiting = asyncio.create_task(account.claim(Taken(1, 50, 0.0)))
    await asyncio.sleep(0)
    assert not waiting.done()
    account.settle(Taken(1, 80, 0.0), Taken(1, 20, 0.0))
    await waiting
    account.settle(Taken(1, 50, 0.0), Taken(1, 50, 0.0))
    with pytest.raises(BudgetError):
        await account.claim(Taken(1, 50, 0.0))


def test_cached_input_has_a_price_of_its_own() -> None:
    """Out of a million tokens each; without one it costs what other input costs."""
    assert Price(2, 8, 0.5).of(1_000_000, 500_000, 400_000) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.5 * 8)
    assert Price(2, 8).of(1_000_000, 0, 400_000) == pytest.approx(2)


def test_more_cached_tokens_than_tokens_are_not_believed() -> None:
    """Providers do say that; a negative price would be worse than a wrong one."""
    assert Price(2, 8, 0.5).of(100, 0, 900) == pytest.approx(100 * 0.5 / 1_000_000)


def test_a_stated_price_wins_and_an_unknown_one_stays_unknown() -> None:
    """Tokens that are not known have no price either."""
    prices = Prices({"house/small": Price(1, 2), "openai/gpt-4o-mini": Price(10, 20, 5)})
    reply = Completion("Yes.", 1_000_000, 1_000_000, 500_000, cost=0.75)
    assert prices.applied(reply, "openai/gpt-4o-mini").cost == pytest.approx(5 + 2.5 + 20)
    assert prices.applied(reply, "openai/gpt-4o").cost == 0.75
    assert prices.applied(Completion("Yes."), "house/small").cost is None
    assert prices.expected("house/small", 1_000) == pytest.approx(0.002)
    assert prices.expected("house/large", 1_000) is None
    listed = Prices().price("gpt-4o-mini")
    assert listed is not None
    assert 0 < listed.input < listed.output


@pytest.mark.parametrize("option", ["m", "m=", "m=1", "=1,2", "m=1,2,3,4", "m=one,2", "m=-1,2", "m=nan,2", "m=1,inf"])
def test_a_price_of_another_form_is_refused(option: str) -> None:
    """With the form that is right."""
    with pytest.raises(RunError, match="MODEL=IN,OUT"):
        call_settings({"price": [option]})

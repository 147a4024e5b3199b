"""Acceptance checks of a pair and its session; each refusal is named."""

from __future__ import annotations

from dataclasses import replace

from ..executor import execute
from ..flows import FLOWS, FlowRequest, Preference, refusal
from ..scores import compare
from ..world import World
from .asking import blind_values, leak, missing_slot
from .sessions import read_preference, slots_of, spoken
from .source import ApolloPair, ApolloSession, ApolloUser, PastCall, PreferenceForm


def pair_refusal(world: World, user: ApolloUser, pair: ApolloPair, session: ApolloSession) -> str | None:
    """Return the first failed check of a pair or its session, with the reason; None if both are kept.

    Args:
        world: The world of the calls.
        user: The pair's user.
        pair: The pair.
        session: The session that states its preference.
    """
    return query_refusal(world, user, pair) or session_refusal(world, user, pair.preference, pair.form, session)


def unrelated_refusal(world: World, session: ApolloSession) -> str | None:
    """Return the problem of an unrelated session that states a preference or has a wrong call, or None."""
    told = read_preference(spoken(session))
    if told is not None:
        values = ", ".join(f"{name} {value}" for name, value in told.values.items())
        return f"told twice: it tells a preference for {told.flow} too ({values})"
    return untrue_call(world, session)


def untrue_call(world: World, session: ApolloSession) -> str | None:
    """Return the first call of a session whose recorded result is wrong, as a message, or None."""
    for turn in session.turns:
        if isinstance(turn, PastCall):
            said = execute(world, turn.call())
            if said != turn.output or "error" in said:
                return f"wrong past call: {turn.name} answers {said}"
    return None


def query_refusal(world: World, user: ApolloUser, pair: ApolloPair) -> str | None:
    """Return the first failed check of a pair's query and gold calls, with the reason; None if they are kept."""
    missing = missing_slot(pair)
    if missing is not None:
        return f"missing: {missing}"
    leaked = leak(pair, user)
    if leaked is not None:
        return f"leak: {leaked}"
    request = pair.request(world, user)
    gold = request.gold()
    if [call.call() for call in gold.calls] != pair.calls():
        return f"wrong gold: the flow makes the calls {gold.plain()}"
    refused = refusal(request, gold)
    if refused is not None:
        return refused
    guessed = request.gold(replace(pair.preference, values=blind_values(pair, user)), blind=True)
    if compare(guessed.plain(), gold.plain()).accuracy:
        return "guessed: who has not read the history makes the same calls"
    return None


def session_refusal(
    world: World, user: ApolloUser, preference: Preference, form: PreferenceForm, session: ApolloSession
) -> str | None:
    """Return the first failed check of a session that should state a preference in a form, with the reason, or None."""
    told = read_preference(spoken(session))
    wanted = (preference.flow, form, dict(preference.values))
    if told is not None and (told.flow, told.form, dict(told.values)) != wanted:
        values = ", ".join(f"{name} {value}" for name, value in told.values.items())
        return f"told otherwise: the session tells {told.flow} as {told.form}: {values}"
    untrue = untrue_call(world, session)
    if untrue is not None:
        return untrue
    made = [turn.call() for turn in session.turns if isinstance(turn, PastCall)]
    request = FlowRequest(world, preference, user.resident, slots_of(FLOWS[preference.flow], session, user))
    try:
        right = request.gold().plain()
    except KeyError as error:
        return f"wrong past call: the session never says {error}, so {preference.flow} cannot be done"
    if not compare(made, right).accuracy:
        return f"wrong past call: by the preference the session's calls would be {right}"
    return None

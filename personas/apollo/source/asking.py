"""Queries, which contain everything that calls need and nothing about the preference; acceptance checks of pairs."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, timedelta

from dialoom.personas.apollo.calls import Value
from dialoom.personas.apollo.executor import execute
from dialoom.personas.apollo.flows import FLOWS, FlowRequest, Preference, refusal
from dialoom.personas.apollo.scores import compare
from dialoom.personas.apollo.world import World

from .phrases import capital, filled, phrases
from .sessions import NUMBERS, REQUESTS, day_of_month, place_words, read_preference, slots_of, spoken
from .source import ApolloPair, ApolloSession, ApolloUser, PastCall, PreferenceForm, QueryKind, stem, stems, words_of

_PRONOUNS = {"woman": ("she", "her", "her"), "man": ("he", "him", "his")}


def query_text(
    flow: str, kind: QueryKind, name: str, gender: str, slots: Mapping[str, Value], draw: random.Random
) -> str:
    """Return a query's text: in the user's own words, or as a description of the user's surroundings."""
    they, them, their = _PRONOUNS.get(gender, ("they", "them", "their"))
    words = {**place_words(slots), "name": name, "they": they, "them": them, "their": their}
    if "date" in slots:
        words["day"] = day_phrases(str(slots["today"]), str(slots["date"]))[0]
    return capital(filled(draw.choice(REQUESTS["flows"][flow][kind]), words, draw))


def day_phrases(today: str, day: str) -> list[str]:
    """Return the phrases for a day, the most usual first; only dates if `today` is empty."""
    named = date.fromisoformat(day)
    ahead = (named - date.fromisoformat(today)).days if today else -1
    near = {0: ["today"], 1: ["tomorrow"]}.get(ahead, [f"on {named:%A}"] if 0 < ahead < 7 else [])
    return [*near, day_of_month(day), f"{named:%B} {named.day}", day]


def missing_slot(pair: ApolloPair) -> str | None:
    """Return the first slot that the query does not state clearly, as a message; None if all are stated."""
    for name, value in pair.slots.items():
        if name == "date":
            found = _days_said(pair.query.casefold(), pair.today) == {value}
        elif name == "start":
            found = stems(pair.query) & stems("home work") == stems(str(value))
        else:
            found = _tells(pair.query, name, value)
        if not found:
            return f"{name} {value!r} cannot be found in the query {pair.query!r}"
    return None


def untold_slot(text: str, slots: Mapping[str, Value]) -> str | None:
    """Return the first slot that a past user never stated, with days stated as dates; None if all are stated."""
    for name, value in slots.items():
        dated = day_phrases("", str(value)) if name == "date" else ()
        if not (any(says(text.casefold(), phrase) for phrase in dated) if dated else _tells(text, name, value)):
            return f"the user never says {name} {(dated or [str(value)])[0]!r}"
    return None


def _tells(text: str, name: str, value: Value) -> bool:
    """Return whether a text states a slot's value, other than a day."""
    if name == "start":
        return stems(str(value)) <= stems(text)
    said = [f"{number} night" for number in (value, NUMBERS.get(int(value)))] if name == "nights" else [str(value)]
    return name == "today" or any(each.casefold() in text.casefold() for each in said)


def _days_said(query: str, today: str) -> set[str]:
    """Return the days within four weeks from today that a query names."""
    days = [(date.fromisoformat(today) + timedelta(days=ahead)).isoformat() for ahead in range(28)]
    return {day for day in days if any(says(query, phrase) for phrase in day_phrases(today, day))}


def says(text: str, phrase: str) -> bool:
    """Return whether a text contains a phrase as whole words."""
    return re.search(rf"(?<!\w){re.escape(phrase.casefold())}(?!\w)", text) is not None


def leak(pair: ApolloPair, user: ApolloUser) -> str | None:
    """Return the word of the query or of the user's information that reveals a facet, as a message, or None."""
    return _giveaway("\n".join([pair.query, *user.information(pair.today)]), pair.flow, pair.values)


def leaking_place(flow: str, slots: Mapping[str, Value]) -> str | None:
    """Return a message about a destination whose name reveals a facet of the flow, or None."""
    return _giveaway(str(slots.get("destination", "")), flow, phrases()[flow])


def _giveaway(text: str, flow: str, names: Iterable[str]) -> str | None:
    words, folded = {stem(word): word for word in words_of(text)}, text.casefold()
    for name in names:
        facet = phrases()[flow][name]
        for value in FLOWS[flow].facet(name).values:
            said = [words[found] for found in sorted(words.keys() & facet.words[value])]
            said += [each for each in facet.names[value] if each in folded and says(folded, each)]
            if said:
                return f"{said[0]!r} says something about {name}"
    return None


def blind_values(pair: ApolloPair, user: ApolloUser) -> dict[str, Value]:
    """Return the best guess of each facet without the history: the value that the words suggest, or the first."""
    words = stems("\n".join([pair.query, *user.information(pair.today)]))
    guessed: dict[str, Value] = {}
    for name in pair.values:
        values, known = FLOWS[pair.flow].facet(name).values, phrases()[pair.flow][name].words
        guessed[name] = next((value for value in values if words & known[value]), values[0])
    return guessed


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

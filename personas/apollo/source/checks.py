"""Texts of queries, checks of sources (queries, gold calls, sessions, texts by models), and the reader of sources.

A query contains everything that calls need and nothing about the preference. Each rejection has a name.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import combinations, product, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from dialoom.inputs import DataError
from dialoom.personas.rows import build_study_advice

from ..calls import TOOLS, CallError, Value, canonicalize, format_value
from ..executor import execute
from ..flows import FLOWS, FlowRequest, Preference, are_distinct, check_request
from ..scores import compare
from ..world import World
from .drafts import PreferencesDraft, UserDraft
from .history import OFFERED_TOOLS
from .phrases import capitalize, fill_template, phrases, telltale_words
from .sessions import (
    NUMBERS,
    REQUESTS,
    SESSION_TOKENS,
    build_place_words,
    extract_slots,
    extract_speeches,
    format_day_of_month,
    read_preference,
)
from .source import (
    META,
    PAIRS,
    SESSIONS,
    USERS,
    ApolloMeta,
    ApolloPair,
    ApolloSession,
    ApolloSource,
    ApolloUser,
    PastCall,
    PreferenceForm,
    QueryKind,
    Speech,
    read_lines,
    split_words,
    stem,
    stems,
)

_PRONOUNS = {"woman": ("she", "her", "her"), "man": ("he", "him", "his")}


def write_query(
    flow: str, kind: QueryKind, name: str, gender: str, slots: Mapping[str, Value], draw: random.Random
) -> str:
    """Return a query's text, either in the user's own words or as a description of the user's surroundings."""
    they, them, their = _PRONOUNS.get(gender, ("they", "them", "their"))
    words = {**build_place_words(slots), "name": name, "they": they, "them": them, "their": their}
    if "date" in slots:
        words["day"] = list_day_phrases(str(slots["today"]), str(slots["date"]))[0]
    return capitalize(fill_template(draw.choice(REQUESTS["flows"][flow][kind]), words, draw))


def list_day_phrases(today: str, day: str) -> list[str]:
    """Return the phrases for a day, the most usual first. If `today` is empty, return only dates."""
    named = date.fromisoformat(day)
    ahead = (named - date.fromisoformat(today)).days if today else -1
    near = {0: ["today"], 1: ["tomorrow"]}.get(ahead, [f"on {named:%A}"] if 0 < ahead < 7 else [])
    return [*near, format_day_of_month(day), f"{named:%B} {named.day}", day]


def find_missing_slot(pair: ApolloPair) -> str | None:
    """Return a message about the first slot that the query does not state clearly; None if all are stated."""
    for name, value in pair.slots.items():
        if name == "date":
            found = _find_mentioned_days(pair.query.casefold(), pair.today) == {value}
        elif name == "start":
            found = stems(pair.query) & stems("home work") == stems(str(value))
        else:
            found = _is_stated(pair.query, name, value)
        if not found:
            return f"{name} {value!r} cannot be found in the query {pair.query!r}"
    return None


def find_unstated_slot(text: str, slots: Mapping[str, Value]) -> str | None:
    """Return the first slot that the user never stated in a session; None if all are stated.

    Days must be stated as dates.
    """
    for name, value in slots.items():
        dated = list_day_phrases("", str(value)) if name == "date" else ()
        if not (
            any(contains_phrase(text.casefold(), phrase) for phrase in dated)
            if dated
            else _is_stated(text, name, value)
        ):
            return f"the user never says {name} {(dated or [str(value)])[0]!r}"
    return None


def _is_stated(text: str, name: str, value: Value) -> bool:
    """Return whether a text states the value of a slot other than `date`; always `True` for `today`."""
    if name == "start":
        return stems(str(value)) <= stems(text)
    forms = [f"{number} night" for number in (value, NUMBERS.get(int(value)))] if name == "nights" else [str(value)]
    return name == "today" or any(each.casefold() in text.casefold() for each in forms)


def _find_mentioned_days(query: str, today: str) -> set[str]:
    """Return the days within four weeks from today that a query mentions."""
    days = [(date.fromisoformat(today) + timedelta(days=ahead)).isoformat() for ahead in range(28)]
    return {day for day in days if any(contains_phrase(query, phrase) for phrase in list_day_phrases(today, day))}


def contains_phrase(text: str, phrase: str) -> bool:
    """Return whether a text contains a phrase as whole words."""
    return re.search(rf"(?<!\w){re.escape(phrase.casefold())}(?!\w)", text) is not None


def find_leak(pair: ApolloPair, user: ApolloUser) -> str | None:
    """Return a message about a word in the query or the user's data that reveals a facet; None if there is none."""
    return _find_giveaway("\n".join([pair.query, *user.information(pair.today)]), pair.flow, pair.values)


def find_leaking_place(flow: str, slots: Mapping[str, Value]) -> str | None:
    """Return a message about a destination whose name reveals a facet of the flow; None if there is none."""
    return _find_giveaway(str(slots.get("destination", "")), flow, phrases()[flow])


def _find_giveaway(text: str, flow: str, names: Iterable[str]) -> str | None:
    """Return a message about a word of a text that reveals a facet; None if there is none."""
    words, folded = {stem(word): word for word in split_words(text)}, text.casefold()
    for name in names:
        facet = phrases()[flow][name]
        for value in FLOWS[flow].facet(name).values:
            revealed = [words[found] for found in sorted(words.keys() & facet.words[value])]
            revealed += [each for each in facet.names[value] if each in folded and contains_phrase(folded, each)]
            if revealed:
                return f"{revealed[0]!r} says something about {name}"
    return None


def guess_values(pair: ApolloPair, user: ApolloUser) -> dict[str, Value]:
    """Return the best guess of each facet without the history: the value that the words suggest, else the first one."""
    words = stems("\n".join([pair.query, *user.information(pair.today)]))
    known = {name: (FLOWS[pair.flow].facet(name).values, phrases()[pair.flow][name].words) for name in pair.values}
    return {
        name: next((value for value in values if words & of_value[value]), values[0])
        for name, (values, of_value) in known.items()
    }


def check_pair(world: World, user: ApolloUser, pair: ApolloPair, session: ApolloSession) -> str | None:
    """Return the first failed check of a pair or its session, with the reason; None if both pass.

    Args:
        world: The world of the calls.
        user: The pair's user.
        pair: The pair.
        session: The session that states its preference.
    """
    return check_query(world, user, pair) or check_session(world, user, pair.preference, pair.form, session)


def check_unrelated_session(world: World, session: ApolloSession) -> str | None:
    """Return the problem of an unrelated session that states a preference or has a wrong call; None if it does not."""
    if (stated := read_preference(extract_speeches(session))) is not None:
        values = ", ".join(f"{name} {value}" for name, value in stated.values.items())
        return f"told twice: it tells a preference for {stated.flow} too ({values})"
    return find_wrong_call(world, session)


def find_wrong_call(world: World, session: ApolloSession) -> str | None:
    """Return a message about a session's first call with a wrong recorded result; None if all are right."""
    for turn in [each for each in session.turns if isinstance(each, PastCall)]:
        if (result := execute(world, turn.call())) != turn.output or "error" in result:
            return f"wrong past call: {turn.name} answers {result}"
    return None


def check_query(world: World, user: ApolloUser, pair: ApolloPair) -> str | None:
    """Return the first failed check of a pair's query and gold calls, with the reason; None if they pass."""
    if (missing := find_missing_slot(pair)) is not None:
        return f"missing: {missing}"
    if (leaked := find_leak(pair, user)) is not None:
        return f"leak: {leaked}"
    request = pair.request(world, user)
    gold = request.gold()
    if [call.call() for call in gold.calls] != pair.calls():
        return f"wrong gold: the flow makes the calls {gold.plain()}"
    if (refused := check_request(request, gold)) is not None:
        return refused
    guessed = request.gold(replace(pair.preference, values=guess_values(pair, user)), blind=True)
    return "guessed: who has not read the history makes the same calls" if guessed.same_calls(gold) else None


def check_session(
    world: World, user: ApolloUser, preference: Preference, form: PreferenceForm, session: ApolloSession
) -> str | None:
    """Return the first failed check of a session that should state a preference in a form, with the reason, or None."""
    stated = read_preference(extract_speeches(session))
    expected = (preference.flow, form, dict(preference.values))
    if stated is not None and (stated.flow, stated.form, dict(stated.values)) != expected:
        values = ", ".join(f"{name} {value}" for name, value in stated.values.items())
        return f"told otherwise: the session tells {stated.flow} as {stated.form}: {values}"
    if (untrue := find_wrong_call(world, session)) is not None:
        return untrue
    try:
        slots = extract_slots(FLOWS[preference.flow], session, user)
        right = FlowRequest(world, preference, user.resident, slots).gold().plain()
    except KeyError as error:
        return f"wrong past call: the session never says {error}, so {preference.flow} cannot be done"
    is_right = compare([turn.call() for turn in session.turns if isinstance(turn, PastCall)], right).accuracy
    return None if is_right else f"wrong past call: by the preference the session's calls would be {right}"


_MAX_SESSION_TOKENS, _MAX_QUERY_CHARACTERS = 1_000, 400
"""Maximum number of tokens of a session, and maximum number of characters of a query. A history of 2,000 tokens must
have room for further sessions.
"""


def check_profile(draft: UserDraft) -> str | None:
    """Return the problem of a profile, or None. Agents see profiles, so profiles must not reveal a preference."""
    words = split_words(f"{draft.name} {draft.gender} {draft.persona}")
    found = next((word for word in words if stem(word) in telltale_words()), None)
    return None if found is None else f"leak: {found!r} may say something about what the user prefers"


def check_preferences(draft: PreferencesDraft, count: int) -> str | None:
    """Return the problem of preferences, or None. Their number, values and differences are checked."""
    if (flow := FLOWS.get(draft.flow)) is None or len(draft.sets) != count:
        return f"sets: {len(draft.sets)} preferences for {draft.flow!r}; give {count} for one of {', '.join(FLOWS)}"
    for number, each in enumerate(draft.sets, start=1):
        if problem := next(flow.problems(each.values, each.order), None):
            return f"values: preference {number}: {problem.removeprefix('values: ')}"
        if not flow.consistent(each.values):
            return f"values: preference {number} is inconsistent: {', '.join((*flow.rising, *flow.apart))}"
    are_apart = all(are_distinct(flow, one, other) for one, other in combinations(draft.preferences(), 2))
    return None if are_apart else "apart: two of the preferences agree in something that has three values or more"


def check_wording(
    preference: Preference, form: PreferenceForm, slots: Mapping[str, Value], session: ApolloSession
) -> str | None:
    """Return the problem of the wording of a session that states a preference in a form, or None."""
    return (
        _check_shape(session)
        or _check_length(session, range(_MAX_SESSION_TOKENS + 1))
        or _check_slots_stated(session, slots)
        or _check_assistant_lines(preference, session)
        or (_check_user_lines(preference, session) if form == "facts" else None)
    )


def check_errand(session: ApolloSession, tool: str) -> str | None:
    """Return the problem of a session that should be about an unrelated tool, or None."""
    if {*session.tools} != {tool}:
        return f"calls: it calls {', '.join(sorted(session.tools)) or 'nothing'}, where it should call {tool}"
    return _check_shape(session) or _check_length(session, SESSION_TOKENS)


def check_query_wording(query: str, kind: QueryKind, user: ApolloUser) -> str | None:
    """Return the problem of a query's wording, or None."""
    if len(query) > _MAX_QUERY_CHARACTERS:
        return f"length: {len(query)} characters; {_MAX_QUERY_CHARACTERS} are the most"
    if contains_phrase(query.casefold(), user.name) != (kind == "proactive"):
        named = "does not name" if kind == "proactive" else "names"
        return f"kind: it {named} {user.name}, and so it is not {kind}"
    return None


def _check_shape(session: ApolloSession) -> str | None:
    first, last = session.turns[0], session.turns[-1]
    if not (isinstance(first, Speech) and first.speaker == "user"):
        return "shape: the user speaks first"
    return None if isinstance(last, Speech) else "shape: it ends in words, when all calls have been answered"


def _check_length(session: ApolloSession, size: range) -> str | None:
    tokens = -(-len("\n".join(session.lines)) // 4)
    message = f"length: with its calls it comes to {tokens} tokens; {size[0]} to {size[-1]} will do"
    return None if tokens in size else message


def _check_slots_stated(session: ApolloSession, slots: Mapping[str, Value]) -> str | None:
    """Return a message about a slot that the user has not stated before the first call; None if all are stated."""
    before = takewhile(lambda turn: isinstance(turn, Speech), session.turns)
    texts = [turn.text for turn in before if isinstance(turn, Speech) and turn.speaker == "user"]
    untold = find_unstated_slot(" ".join(texts), slots)
    return f"untold: {untold} before the first call" if untold else None


def _check_assistant_lines(preference: Preference, session: ApolloSession) -> str | None:
    """Refuse sessions in which the assistant mentions a single value of a facet. It may only list all values."""
    facets = [(name, facet) for name, facet in phrases()[preference.flow].items() if not facet.plain]
    texts = [text for speaker, text in extract_speeches(session) if speaker == "assistant"]
    for text, (name, facet) in product(texts, facets):
        said, value = text.casefold(), preference.values.get(name)
        is_listed = all(_is_mentioned(said, called) for called in facet.labels.values())
        if value is not None and _is_mentioned(said, facet.names[value]) and not is_listed:
            return f"voiced: the assistant says {text!r}, which gives {name} away: {value}"
    return None


def _check_user_lines(preference: Preference, session: ApolloSession) -> str | None:
    """Refuse sessions in which the user states a value that should follow from facts, unless it is a proper name."""
    text = "\n".join(text for speaker, text in extract_speeches(session) if speaker == "user").casefold()
    for name, value in preference.values.items():
        facet, is_proper = phrases()[preference.flow][name], str(value)[0].isupper() and value not in (True, False)
        if not facet.plain and not is_proper and _is_mentioned(text, facet.names[value]):
            return f"named: the user says what {name} is ({value}); it should follow from facts alone"
    return None


def _is_mentioned(text: str, names: Sequence[str]) -> bool:
    return any(contains_phrase(text, name) for name in names)


_MIN_FREQUENT_SHARE = 0.02


class TopicDiversity(NamedTuple):
    """The diversity of the topics of sessions (APOLLO, appendix A.2).

    Attributes:
        sessions: The number of sessions.
        topics: K, the number of their topics.
        entropy: H / log K, which is 1 if all topics are equally frequent, and 0 if there is only one.
        frequent: The number of topics with more than 2 % of the sessions.
    """

    sessions: int
    topics: int
    entropy: float
    frequent: int


def measure_topic_diversity(topics: Iterable[str]) -> TopicDiversity:
    """Return the diversity of sessions, given each session's topic."""
    counts = Counter(topics)
    shares = [count / counts.total() for count in counts.values()]
    spread = -sum(share * math.log(share) for share in shares)
    return TopicDiversity(
        counts.total(),
        len(counts),
        spread / math.log(len(counts)) if len(counts) > 1 else 0.0,
        sum(share > _MIN_FREQUENT_SHARE for share in shares),
    )


def read_source(folder: Path, *, thorough: bool = False) -> ApolloSource:
    """Read the source in a folder.

    Args:
        folder: The folder of its four files.
        thorough: Whether to repeat all checks of the builder, e.g. after people have edited the files: that calls and
            outputs match the world, that gold calls are right, that no query reveals a preference, and that no
            unrelated session states one. This takes some milliseconds per pair.

    Raises:
        DataError: If a file is missing or broken, refers to something that does not exist, or belongs to another world,
            or if a check fails.
    """
    if folder.is_file():
        raise DataError(folder, "is a file; give the folder of a source", advice=build_study_advice(folder))
    (_, meta), *more = read_lines(folder / META, ApolloMeta)
    if more:
        raise DataError(folder / META, "this file must have exactly one line", more[0][0])
    users = read_lines(folder / USERS, ApolloUser)
    sessions, pairs = read_lines(folder / SESSIONS, ApolloSession), read_lines(folder / PAIRS, ApolloPair)
    source = ApolloSource.of(
        (user for _, user in users), (session for _, session in sessions), (pair for _, pair in pairs), meta
    )
    if meta.world != source.world.hash:
        made, here = meta.world[:12], source.world.hash[:12]
        raise DataError(
            folder / META, f"made in the world {made}..., but this world is {here}...; generate the source again", 1
        )
    for of_session, of_pair in ((_check_session_references, _check_pair_references), (_recheck_session, _recheck_pair))[
        : 1 + thorough
    ]:
        for line, session in sessions:
            if problem := of_session(source, session):
                raise DataError(folder / SESSIONS, f"session {session.id}: {problem}", line)
        for line, pair in pairs:
            if problem := of_pair(source, pair):
                raise DataError(folder / PAIRS, f"pair {pair.id}: {problem}", line)
    return source


def _check_session_references(source: ApolloSource, session: ApolloSession) -> str | None:
    if session.user not in source.users:
        return f"there is no user {session.user!r} in {USERS}"
    if not session.turns:
        return "it has no turns"
    return next(filter(None, (_check_call(turn.call()) for turn in session.turns if isinstance(turn, PastCall))), None)


def _check_pair_references(source: ApolloSource, pair: ApolloPair) -> str | None:
    """Return the first problem of a pair's references or request; None if there is none."""
    return next(_find_wrong_names(source, pair), None) or _check_pair_request(source, pair)


def _find_wrong_names(source: ApolloSource, pair: ApolloPair) -> Iterator[str]:
    """Yield a message for each reference of the pair that is missing, or refers to something that does not exist."""
    flow, session = FLOWS.get(pair.flow), source.sessions.get(pair.session)
    if flow is None:
        yield f"there is no flow {pair.flow!r}; there are {', '.join(FLOWS)}"
        return
    if pair.user not in source.users:
        yield f"there is no user {pair.user!r} in {USERS}"
    if session is None or session.user != pair.user:
        yield f"user {pair.user} has no session {pair.session!r} in {SESSIONS}"
    elif session.kind != "preference":
        yield f"its session {session.id} is of the kind {session.kind}; it must be of the kind preference"
    yield from flow.problems(pair.values, pair.order)
    for slot in flow.slots:
        if slot not in pair.slots:
            yield f"slots: {slot} is missing; {pair.flow} needs {', '.join(flow.slots)}"
    yield from _find_wrong_tools(pair)


def _find_wrong_tools(pair: ApolloPair) -> Iterator[str]:
    for tool in pair.tools:
        if tool not in TOOLS:
            yield f"tools: there is no tool {format_value(tool)}"
        if pair.tools.count(tool) > 1:
            yield f"tools: {tool} occurs twice"
    if len(pair.tools) > OFFERED_TOOLS:
        yield f"tools: there are {len(pair.tools)}; the maximum is {OFFERED_TOOLS}"
    for call in pair.gold:
        if problem := _check_call(call.call()):
            yield problem
        elif call.name not in pair.tools:
            yield f"tools: {call.name} is missing, but a gold call uses it"


def _check_pair_request(source: ApolloSource, pair: ApolloPair) -> str | None:
    """Return the problem of a day or a slot with which the flow's calls cannot run; None if there is none."""
    try:
        source.world.day(pair.today, "today")
    except CallError as error:
        return str(error)
    made = pair.request(source.world, source.users[pair.user]).gold()
    return next((f"slots: {problem}" for call in made.calls if (problem := _check_call(call.call()))), None)


def _check_call(call: Mapping[str, Any]) -> str | None:
    try:
        canonicalize(call)
    except CallError as error:
        return str(error)
    return None


def _recheck_session(source: ApolloSource, session: ApolloSession) -> str | None:
    return check_unrelated_session(source.world, session) if session.kind == "unrelated" else None


def _recheck_pair(source: ApolloSource, pair: ApolloPair) -> str | None:
    return check_pair(source.world, source.users[pair.user], pair, source.sessions[pair.session])

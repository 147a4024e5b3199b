"""The reader of source folders, including edited ones; errors name the file and the line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dialoom.inputs import DataError
from dialoom.personas.apollo.calls import TOOLS

from ..calls import CallError, canonical, shown
from ..flows import FLOWS
from .checks import pair_refusal, unrelated_refusal
from .history import TOOLS_OFFERED
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
    read_lines,
)


def read_source(folder: Path, *, thorough: bool = False) -> ApolloSource:
    """Read the source in a folder.

    Args:
        folder: The folder of its four files.
        thorough: Whether to repeat all checks of the builder, e.g. after people have edited the files: that calls and
            outputs match the world, that gold calls are right, that no query reveals a preference, and that no other
            session states it. It takes some milliseconds per pair.

    Raises:
        DataError: If a file is missing or broken, has a dangling reference, or belongs to another world; or if a check
            fails.
    """
    (_, meta), *more = read_lines(folder / META, ApolloMeta)
    if more:
        raise DataError(folder / META, "a source has one line here", more[0][0])
    users = read_lines(folder / USERS, ApolloUser)
    sessions, pairs = read_lines(folder / SESSIONS, ApolloSession), read_lines(folder / PAIRS, ApolloPair)
    source = ApolloSource.of(
        (user for _, user in users), (session for _, session in sessions), (pair for _, pair in pairs), meta
    )
    if meta.world != source.world.hash:
        made, here = meta.world[:12], source.world.hash[:12]
        raise DataError(folder / META, f"made in the world {made}..., and this one is {here}...: make it anew", 1)
    for of_session, of_pair in ((_wrong_session, _wrong_pair), (_refused_session, _refused_pair))[: 1 + thorough]:
        for line, session in sessions:
            if problem := of_session(source, session):
                raise DataError(folder / SESSIONS, f"session {session.id}: {problem}", line)
        for line, pair in pairs:
            if problem := of_pair(source, pair):
                raise DataError(folder / PAIRS, f"pair {pair.id}: {problem}", line)
    return source


def _wrong_session(source: ApolloSource, session: ApolloSession) -> str | None:
    if session.user not in source.users:
        return f"there is no user {session.user!r} in {USERS}"
    if not session.turns:
        return "it has no turns"
    calls = (_wrong_call(turn.call()) for turn in session.turns if isinstance(turn, PastCall))
    return next(filter(None, calls), None)


def _wrong_pair(source: ApolloSource, pair: ApolloPair) -> str | None:
    """Return the problem of a pair itself, before any check of its request."""
    return next(_wrong_names(source, pair), None) or _wrong_request(source, pair)


def _wrong_names(source: ApolloSource, pair: ApolloPair) -> Iterator[str]:
    """Yield the pair's references that do not exist, and its missing ones."""
    flow, session = FLOWS.get(pair.flow), source.sessions.get(pair.session)
    if flow is None:
        yield f"there is no flow {pair.flow!r}; there are {', '.join(FLOWS)}"
        return
    if pair.user not in source.users:
        yield f"there is no user {pair.user!r} in {USERS}"
    if session is None or session.user != pair.user:
        yield f"user {pair.user} has no session {pair.session!r} in {SESSIONS}"
    elif session.kind != "preference":
        yield f"its session {session.id} is {session.kind}, by {SESSIONS}: it is to be of the kind preference"
    yield from flow.problems(pair.values, pair.order)
    for slot in flow.slots:
        if slot not in pair.slots:
            yield f"slots: {slot} is missing; {pair.flow} needs {', '.join(flow.slots)}"
    yield from _wrong_tools(pair)


def _wrong_tools(pair: ApolloPair) -> Iterator[str]:
    for tool in pair.tools:
        if tool not in TOOLS:
            yield f"tools: there is no tool {shown(tool)}"
        if pair.tools.count(tool) > 1:
            yield f"tools: {tool} is there twice"
    if len(pair.tools) > TOOLS_OFFERED:
        yield f"tools: there are {len(pair.tools)}; no more than {TOOLS_OFFERED} are offered"
    for call in pair.gold:
        if problem := _wrong_call(call.call()):
            yield problem
        elif call.name not in pair.tools:
            yield f"tools: {call.name} is missing, which is called by its gold"


def _wrong_request(source: ApolloSource, pair: ApolloPair) -> str | None:
    """Return a problem of the day or of the slots for which the flow's calls cannot be made."""
    try:
        source.world.day(pair.today, "today")
    except CallError as error:
        return str(error)
    made = pair.request(source.world, source.users[pair.user]).gold()
    return next((f"slots: {problem}" for call in made.calls if (problem := _wrong_call(call.call()))), None)


def _wrong_call(call: Mapping[str, Any]) -> str | None:
    try:
        canonical(call)
    except CallError as error:
        return str(error)
    return None


def _refused_session(source: ApolloSource, session: ApolloSession) -> str | None:
    return unrelated_refusal(source.world, session) if session.kind == "unrelated" else None


def _refused_pair(source: ApolloSource, pair: ApolloPair) -> str | None:
    return pair_refusal(source.world, source.users[pair.user], pair, source.sessions[pair.session])

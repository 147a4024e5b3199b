"""The reader of source folders, including edited ones; errors name the file and the line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dialoom.errors import first_problem
from dialoom.inputs import DataError
from dialoom.personas.apollo.calls import TOOLS
from dialoom.personas.pools import values_of
from dialoom.personas.profile import Repairs

from ..calls import CallError, canonical, shown
from ..flows import FLOWS, Flow
from .asking import pair_refusal, unrelated_refusal
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
)

M = TypeVar("M", bound=BaseModel)


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
    users, sessions, pairs = (
        read_lines(folder / USERS, ApolloUser),
        read_lines(folder / SESSIONS, ApolloSession),
        read_lines(folder / PAIRS, ApolloPair),
    )
    source = ApolloSource.of(_models(users), _models(sessions), _models(pairs), meta)
    if meta.world != source.world.hash:
        made, here = meta.world[:12], source.world.hash[:12]
        raise DataError(folder / META, f"made in the world {made}..., and this one is {here}...: make it anew", 1)
    _check(folder / SESSIONS, sessions, lambda session: _wrong_session(source, session))
    _check(folder / PAIRS, pairs, lambda pair: _wrong_pair(source, pair))
    if thorough:
        _check(folder / SESSIONS, sessions, lambda session: _refused_session(source, session))
        _check(folder / PAIRS, pairs, lambda pair: _refused_pair(source, pair))
    return source


def read_lines(path: Path, model: type[M]) -> list[tuple[int, M]]:
    """Read the models of a file, each with its line number.

    Raises:
        DataError: If the file is missing or empty, a line is invalid, or two have the same `id`.
    """
    found: list[tuple[int, M]] = []
    ids: dict[Any, int] = {}
    for number, value in values_of(path, Repairs()):
        try:
            read = model.model_validate(value)
        except ValidationError as error:
            place, message, wrong = first_problem(error)
            raise DataError(path, f"{place or 'the line'}: {message}; it is {wrong!r:.60}", number) from error
        named = getattr(read, "id", None)
        if named is not None and named in ids:
            raise DataError(path, f"{named!r} is also the name of line {ids[named]}", number)
        ids[named] = number
        found.append((number, read))
    if not found:
        raise DataError(path, "holds nothing")
    return found


def _models(found: Sequence[tuple[int, M]]) -> list[M]:
    return [model for _, model in found]


def _check(path: Path, found: Sequence[tuple[int, M]], wrong: Callable[[M], str | None]) -> None:
    for number, model in found:
        problem = wrong(model)
        if problem is not None:
            raise DataError(path, problem, number)


def _wrong_session(source: ApolloSource, session: ApolloSession) -> str | None:
    if session.user not in source.users:
        return f"session {session.id}: there is no user {session.user!r} in {USERS}"
    if not session.turns:
        return f"session {session.id} has no turns"
    for turn in session.turns:
        if isinstance(turn, PastCall) and (problem := _wrong_call(turn.call())):
            return f"session {session.id}: {problem}"
    return None


def _wrong_pair(source: ApolloSource, pair: ApolloPair) -> str | None:
    """Return the problem of a pair itself, before any check of its request."""
    problem = next(_wrong_names(source, pair), None) or _wrong_request(source, pair)
    return f"pair {pair.id}: {problem}" if problem else None


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
    yield from _wrong_values(flow, pair)
    for slot in flow.slots:
        if slot not in pair.slots:
            yield f"slots: {slot} is missing; {pair.flow} needs {', '.join(flow.slots)}"
    lookups = [step.tool for step in flow.lookups]
    if sorted(pair.order) != sorted(lookups):
        yield f"order {shown(pair.order)}: give {', '.join(lookups)}, each once, in any order"
    yield from _wrong_tools(pair)


def _wrong_values(flow: Flow, pair: ApolloPair) -> Iterator[str]:
    facets = {facet.name: facet.values for facet in flow.facets}
    for name, value in pair.values.items():
        if name not in facets:
            yield f"{pair.flow} has no facet {name!r}; it has {', '.join(facets)}"
        elif value not in facets[name]:
            yield f"{name} {shown(value)}: it is one of {', '.join(map(str, facets[name]))}"
    for name in facets:
        if name not in pair.values and name not in flow.either:
            yield f"values: {name} is missing; it is one of {', '.join(map(str, facets[name]))}"
    if flow.either and not set(flow.either) & set(pair.values):
        yield f"values: give one of {', '.join(flow.either)}"


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
    problem = unrelated_refusal(source.world, session) if session.kind == "unrelated" else None
    return f"session {session.id}: {problem}" if problem else None


def _refused_pair(source: ApolloSource, pair: ApolloPair) -> str | None:
    problem = pair_refusal(source.world, source.users[pair.user], pair, source.sessions[pair.session])
    return f"pair {pair.id}: {problem}" if problem else None

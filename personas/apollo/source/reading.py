"""Reading a source folder, whoever wrote or mended it: what is wrong with it is told with file and line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dialoom.errors import first_problem
from dialoom.personas.errors import DataError
from dialoom.personas.mending import Mendings
from dialoom.personas.pools.lines import values_of

from ..calls import CallError, canonical, shown
from ..flows import FLOWS
from .keeping import pair_refusal, unrelated_refusal
from .pair import ApolloPair, ApolloUser
from .session import ApolloSession, PastCall
from .source import META, PAIRS, SESSIONS, USERS, ApolloMeta, ApolloSource

M = TypeVar("M", bound=BaseModel)


def read_source(folder: Path, *, thorough: bool = False) -> ApolloSource:
    """The source that a folder holds.

    Args:
        folder: Where its four files are.
        thorough: Whether everything that the builder checks is checked again, as after people have mended it: that
            calls and outputs are true, that gold calls are right, that no query gives a preference away, and that no
            other session tells it. It takes some milliseconds for each pair.

    Raises:
        DataError: If a file is missing or broken, names what is not there, or belongs to another world; and if
            something fails a check.
    """
    (meta, *_), users, sessions, pairs = (
        list(_read(folder / META, ApolloMeta).values()),
        _read(folder / USERS, ApolloUser),
        _read(folder / SESSIONS, ApolloSession),
        _read(folder / PAIRS, ApolloPair),
    )
    source = ApolloSource.of(users.values(), sessions.values(), pairs.values(), meta)
    if meta.world != source.world.hash:
        made, here = meta.world[:12], source.world.hash[:12]
        raise DataError(folder / META, f"made in the world {made}..., and this one is {here}...: make it anew", 1)
    _check(folder / SESSIONS, sessions, lambda session: _wrong_session(source, session))
    _check(folder / PAIRS, pairs, lambda pair: _wrong_pair(source, pair))
    if thorough:
        _check(folder / SESSIONS, sessions, lambda session: _refused_session(source, session))
        _check(folder / PAIRS, pairs, lambda pair: _refused_pair(source, pair))
    return source


def _read(path: Path, model: type[M]) -> dict[int, M]:
    """The models of a file by their lines."""
    found: dict[int, M] = {}
    ids: dict[Any, int] = {}
    for number, value in values_of(path, Mendings()):
        try:
            read = model.model_validate(value)
        except ValidationError as error:
            place, message, wrong = first_problem(error)
            raise DataError(path, f"{place or 'the line'}: {message}; it is {wrong!r:.60}", number) from error
        named = getattr(read, "id", None)
        if named in ids:
            raise DataError(path, f"{named!r} is also the name of line {ids[named]}", number)
        ids[named] = number
        found[number] = read
    if not found:
        raise DataError(path, "holds nothing")
    return found


def _check(path: Path, found: Mapping[int, M], wrong: Callable[[M], str | None]) -> None:
    for number, model in found.items():
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
    """What a pair names that is not there."""
    flow, session = FLOWS.get(pair.flow), source.sessions.get(pair.session)
    if flow is None:
        return f"pair {pair.id}: there is no flow {pair.flow!r}; there are {', '.join(FLOWS)}"
    if pair.user not in source.users:
        return f"pair {pair.id}: there is no user {pair.user!r} in {USERS}"
    if session is None or session.user != pair.user:
        return f"pair {pair.id}: user {pair.user} has no session {pair.session!r} in {SESSIONS}"
    facets = {facet.name: facet.values for facet in flow.facets}
    for name, value in pair.values.items():
        if name not in facets:
            return f"pair {pair.id}: {pair.flow} has no facet {name!r}; it has {', '.join(facets)}"
        if value not in facets[name]:
            return f"pair {pair.id}: {name} {shown(value)}: it is one of {', '.join(map(str, facets[name]))}"
    return next((f"pair {pair.id}: {problem}" for call in pair.calls() if (problem := _wrong_call(call))), None)


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

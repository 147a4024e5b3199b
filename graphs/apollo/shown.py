"""A sample as a person reads it: of the history what matters, the request, calls and what tools said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from dialoom.graphs.outcome import Line, Outcome
from dialoom.personas.apollo.source import ApolloSession, Speech

from .call_lines import call_line, output_line
from .nodes import AgentState, attempts_of
from .scenario import ApolloScenario, NumberedSession
from .transcript import read_lines

HISTORY = "history"
"""Who speaks the lines of past sessions, and those that stand for several."""
_AGAIN = "reflexion"
"""Who speaks the line before a further attempt."""


def shown_lines(scenario: ApolloScenario, state: AgentState) -> Iterator[Line]:
    """The user, the sessions that matter, the request, and each attempt."""
    pair = scenario.pair
    yield Line(role="user information", content="\n".join(scenario.user.information(pair.today)))
    for telling, run in groupby(scenario.history, key=lambda each: each.number in scenario.places):
        sessions = list(run)
        yield from map(_told, sessions) if telling else [_folded(sessions)]
    for name, text in (("notes", _notes(state)), ("retrieved", _retrieved(state))):
        if text:
            yield Line(role=name, content=text)
    yield Line(role="user", content=pair.query)
    for number, messages in enumerate(attempts_of(state)):
        if number:
            yield Line(role=_AGAIN, content="it failed, and begins anew with what it did before its eyes")
        yield from read_lines(messages, state.get("is_native", False))


def last_attempt(scenario: ApolloScenario, outcome: Outcome) -> str:
    """What the last attempt of a finished sample came to, as text."""
    lines = list(outcome.messages)
    starts = [at for at, line in enumerate(lines) if line.role == _AGAIN]
    start = starts[-1] if starts else lines.index(Line(role="user", content=scenario.pair.query))
    return "\n".join(f"{line.role}: {line.content}" for line in lines[start + 1 :])


def _told(numbered: NumberedSession) -> Line:
    return Line(role=HISTORY, content="\n".join([f"session {numbered.number}", *_lines(numbered.session)]))


def _folded(sessions: Sequence[NumberedSession]) -> Line:
    first, last = sessions[0].number, sessions[-1].number
    which = f"session {first} is" if first == last else f"sessions {first} to {last} are"
    return Line(role=HISTORY, content=f"{which} about other things")


def _lines(session: ApolloSession) -> Iterator[str]:
    for turn in session.turns:
        if isinstance(turn, Speech):
            yield f"{turn.speaker}: {turn.text}"
        else:
            yield f"assistant: {call_line(turn.call())}"
            yield f"tool: {output_line(turn.output)}"


def _notes(state: AgentState) -> str:
    noted = [(note["session"], note["text"]) for note in state.get("notes", [])]
    noted += [(number, "(the reply could not be read)") for number in state.get("unread", [])]
    return "\n".join(f"session {number}: {text}" for number, text in sorted(noted, key=itemgetter(0)))


def _retrieved(state: AgentState) -> str:
    return ", ".join(f"session {number}" for number in state.get("retrieved", []))

"""Rules for texts written by models, with named rejections; and the diversity of sessions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from dialoom.personas.apollo.calls import Value
from dialoom.personas.apollo.flows import FLOWS, Preference, apart

from .asking import says, untold_slot
from .drafts import PreferencesDraft, UserDraft
from .phrases import phrases, telling_words
from .sessions import SIZE
from .source import ApolloSession, ApolloUser, PastCall, PreferenceForm, QueryKind, Speech, stem, words_of

_LONGEST_SESSION, _LONGEST_QUERY = 1_000, 400
"""Tokens, and characters: a history of 2,000 tokens must have room for other sessions."""


def profile_refusal(draft: UserDraft) -> str | None:
    """Return the problem of a profile, or None; agents see profiles, so they must not reveal a preference."""
    telling = telling_words()
    for word in words_of(f"{draft.name} {draft.gender} {draft.persona}"):
        if stem(word) in telling:
            return f"leak: {word!r} may say something about what the user prefers"
    return None


def preferences_refusal(draft: PreferencesDraft, count: int) -> str | None:
    """Return the problem of preferences, or None: their number, their values, and their differences are checked."""
    flow = FLOWS.get(draft.flow)
    if flow is None or len(draft.sets) != count:
        return f"sets: {len(draft.sets)} preferences for {draft.flow!r}; give {count} for one of {', '.join(FLOWS)}"
    for number, each in enumerate(draft.sets, start=1):
        if problem := next(flow.problems(each.values, each.order), None):
            return f"values: preference {number}: {problem.removeprefix('values: ')}"
        if not flow.consistent(each.values):
            return f"values: preference {number} is inconsistent: {', '.join((*flow.rising, *flow.apart))}"
    if not all(apart(flow, one, other) for one, other in combinations(draft.preferences(), 2)):
        return "apart: two of the preferences agree in something that has three values or more"
    return None


def wording_refusal(
    preference: Preference, form: PreferenceForm, slots: Mapping[str, Value], session: ApolloSession
) -> str | None:
    """Return the problem of the wording of a session that states a preference in a form, or None."""
    return (
        _shapeless(session)
        or _too_long(session, range(_LONGEST_SESSION + 1))
        or _untold(session, slots)
        or _voiced(preference, session)
        or (_named(preference, session) if form == "facts" else None)
    )


def errand_refusal(session: ApolloSession, tool: str) -> str | None:
    """Return the problem of a session that should be about an unrelated tool, or None."""
    used = set(session.tools)
    if used != {tool}:
        return f"calls: it calls {', '.join(sorted(used)) or 'nothing'}, where it should call {tool}"
    return _shapeless(session) or _too_long(session, SIZE)


def query_wording_refusal(query: str, kind: QueryKind, user: ApolloUser) -> str | None:
    """Return the problem of a query's wording, or None."""
    if len(query) > _LONGEST_QUERY:
        return f"length: {len(query)} characters; {_LONGEST_QUERY} are the most"
    is_named = says(query.casefold(), user.name)
    if is_named != (kind == "proactive"):
        named = "does not name" if kind == "proactive" else "names"
        return f"kind: it {named} {user.name}, and so it is not {kind}"
    return None


def _shapeless(session: ApolloSession) -> str | None:
    first, last = session.turns[0], session.turns[-1]
    if not (isinstance(first, Speech) and first.speaker == "user"):
        return "shape: the user speaks first"
    return None if isinstance(last, Speech) else "shape: it ends in words, when all calls have been answered"


def _too_long(session: ApolloSession, size: range) -> str | None:
    tokens = -(-len("\n".join(session.lines)) // 4)
    if tokens in size:
        return None
    return f"length: with its calls it comes to {tokens} tokens; {size[0]} to {size[-1]} will do"


def _untold(session: ApolloSession, slots: Mapping[str, Value]) -> str | None:
    """Return a slot that the first call needs but the user has not stated before it, as a message, or None."""
    said: list[str] = []
    for turn in session.turns:
        if isinstance(turn, PastCall):
            break
        said += [turn.text] if turn.speaker == "user" else []
    untold = untold_slot(" ".join(said), slots)
    return f"untold: {untold} before the first call" if untold else None


def _voiced(preference: Preference, session: ApolloSession) -> str | None:
    """Refuse an assistant that names one value of a facet; it may only list all of them."""
    for turn in session.turns:
        if isinstance(turn, Speech) and turn.speaker == "assistant":
            text = turn.text.casefold()
            for name, facet in phrases()[preference.flow].items():
                value = preference.values.get(name)
                if value is None or facet.plain:
                    continue
                is_listed = all(_is_said(text, called) for called in facet.labels.values())
                if _is_said(text, facet.names[value]) and not is_listed:
                    return f"voiced: the assistant says {turn.text!r}, which gives {name} away: {value}"
    return None


def _named(preference: Preference, session: ApolloSession) -> str | None:
    """Refuse a user who names a value that should follow from facts, unless it is a proper name, as of a cinema."""
    text = "\n".join(turn.text for turn in session.turns if isinstance(turn, Speech) and turn.speaker == "user")
    for name, value in preference.values.items():
        facet = phrases()[preference.flow][name]
        is_proper = str(value)[0].isupper() and value not in (True, False)
        if not facet.plain and not is_proper and _is_said(text.casefold(), facet.names[value]):
            return f"named: the user says what {name} is ({value}); it should follow from facts alone"
    return None


def _is_said(text: str, names: Sequence[str]) -> bool:
    return any(says(text, name) for name in names)


_FREQUENT = 0.02


class TopicDiversity(NamedTuple):
    """The diversity of the topics of sessions (APOLLO, appendix A.2).

    Attributes:
        sessions: The number of sessions.
        topics: K, the number of their topics.
        entropy: H / log K: 1 if all topics are equally frequent, 0 if there is only one.
        frequent: The number of topics with more than 2 % of the sessions.
    """

    sessions: int
    topics: int
    entropy: float
    frequent: int


def topic_diversity(topics: Iterable[str]) -> TopicDiversity:
    """Return the diversity of sessions, from the topic of each."""
    counts = Counter(topics)
    total = counts.total()
    shares = [count / total for count in counts.values()]
    spread = -sum(share * math.log(share) for share in shares)
    return TopicDiversity(
        total,
        len(counts),
        spread / math.log(len(counts)) if len(counts) > 1 else 0.0,
        sum(share > _FREQUENT for share in shares),
    )

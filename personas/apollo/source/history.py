"""Histories: the session that states a preference among unrelated ones, and the tools of the request.

Histories grow in steps of 1,000 tokens: the unrelated sessions of a shorter history are a subset of those of a longer
history, so that lengths can be compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

from dialoom.errors import DialoomError
from dialoom.grouping import group_pairs

from .phrases import preference_words
from .source import ApolloPair, ApolloSession, ApolloSource, ApolloUser

TokenCounter = Callable[[str], int]
MIN_LENGTH, LENGTH_STEP, OFFERED_TOOLS = 2_000, 1_000, 8
MIN_FILLED_SHARE = 0.9


class HistoryError(DialoomError):
    """A history that cannot be made. The message states the available and the required sessions or tokens."""


def estimate_tokens(text: str) -> int:
    """Estimate tokens as a quarter of the characters, rounded up."""
    return -(-len(text) // 4)


@dataclass(frozen=True, slots=True)
class ApolloHistory:
    """The context that precedes a query.

    Attributes:
        sessions: The sessions, oldest first.
        tools: The names of the tools offered to the agent.
        place: The position of the session that states the preference, from 1.
        earlier: The positions of sessions with outdated preferences, oldest first. This and `stale` are empty unless
            preferences evolve.
        stale: The calls that each outdated preference leads to.
        tokens: The number of tokens of the first message.
        borrowed: The number of offered tools that the shortest history does not contain.
    """

    sessions: tuple[ApolloSession, ...]
    tools: tuple[str, ...]
    place: int
    earlier: tuple[int, ...]
    stale: tuple[tuple[dict[str, Any], ...], ...]
    tokens: int
    borrowed: int


def build_first_message(user: ApolloUser, pair: ApolloPair, sessions: Sequence[ApolloSession]) -> str:
    """Return an agent's first message: the user, the history and the request.

    The length of a history is the length of this message.
    """
    return "\n".join(
        [
            "<user_information>",
            *user.information(pair.today),
            "</user_information>",
            "",
            "<conversation_history>",
            "Past conversations with the user, the oldest first.",
            *(line for number, session in enumerate(sessions, 1) for line in format_session(session, number)),
            "</conversation_history>",
            "",
            "<request>",
            pair.query,
            "</request>",
        ]
    )


def format_session(session: ApolloSession, number: int | str) -> tuple[str, ...]:
    """Return the lines of a session in a history."""
    return f'<session n="{number}">', *session.lines, "</session>"


def build_history(
    source: ApolloSource,
    pair: ApolloPair,
    *,
    length: int | None = None,
    sessions: int | None = None,
    place: int | None = None,
    evolving: bool = False,
    counter: TokenCounter = estimate_tokens,
) -> ApolloHistory:
    """Return the history of a sample.

    Args:
        source: The source of its sessions.
        pair: The query and the session that states its preference.
        length: Maximum number of tokens. At least nine tenths of them are used.
        sessions: The number of sessions, if no length is given.
        place: The position of the session that states the preference, from 1; by default drawn for the pair.
        evolving: Whether sessions with the user's other preferences for the flow come before this session.
        counter: A function that counts tokens.

    Raises:
        HistoryError: If the user has too few sessions for the history, or the position is outside the history.
    """
    if (length is None) == (sessions is None):
        raise HistoryError("a history has either a length or a number of sessions: give one of them")
    user = source.users[pair.user]
    pairs = [*(_draw_earlier_pairs(source, pair) if evolving else ()), pair]
    stating = [source.sessions[each.session] for each in pairs]
    order = _list_unrelated_sessions(source, pairs)
    if sessions is not None:
        chosen = order[: sessions - len(stating)]
        if sessions < len(stating) or len(chosen) + len(stating) < sessions:
            most = len(stating) + len(order)
            raise HistoryError(f"sessions {sessions}: give from {len(stating)} to {most} sessions for pair {pair.id}")
    else:
        chosen = _select_sessions(user, pair, stating, order, length or 0, counter)
    arranged, places = _arrange_sessions(pair, stating, chosen, place)
    tokens = counter(build_first_message(user, pair, arranged))
    if length is not None and not MIN_FILLED_SHARE * length <= tokens <= length:
        raise HistoryError(
            f"length {length:,}: the history of pair {pair.id} comes to {tokens:,} tokens with {len(chosen)} of "
            f"{len(order)} unrelated sessions; at least nine tenths must be filled"
        )
    tools, borrowed = _draw_tools(source, pair, counter)
    stale = tuple(tuple(pair.request(source.world, user, each.preference).gold().plain()) for each in pairs[:-1])
    return ApolloHistory(tuple(arranged), tools, places[-1], tuple(places[:-1]), stale, tokens, borrowed)


def _random_stream(pair: ApolloPair, purpose: str) -> random.Random:
    return random.Random(f"history {pair.id} {purpose}")


def _draw_earlier_pairs(source: ApolloSource, pair: ApolloPair) -> tuple[ApolloPair, ...]:
    """Return one pair per other preference of the user for the flow, ordered so that the calls always change."""
    draw, siblings_of = _random_stream(pair, "evolving"), source.pairs_for[pair.user, pair.flow]
    others = (each for each in siblings_of if each.preference_set != pair.preference_set)
    by_set = group_pairs((each.preference_set, each) for each in others)
    drawn = [draw.choice(siblings) for siblings in by_set.values()]
    draw.shuffle(drawn)
    user = source.users[pair.user]
    golds = {each.id: pair.request(source.world, user, each.preference).gold() for each in (*drawn, pair)}
    for count in range(len(drawn), 0, -1):
        for before in permutations(drawn, count):
            if not any(golds[one.id].same_calls(golds[next_.id]) for one, next_ in pairwise((*before, pair))):
                return before
    whose = f"user {pair.user} for {pair.flow}"
    raise HistoryError(f"evolving: no other preference of {whose} leads to other calls for {pair.id}")


def _list_unrelated_sessions(source: ApolloSource, pairs: Sequence[ApolloPair]) -> list[ApolloSession]:
    """Return the user's unrelated sessions in the pair's order.

    Sessions that contain a word of the preference, or repeat a question of an earlier session, are left out.
    """
    pair = pairs[-1]
    words = frozenset[str]().union(*(preference_words(each.flow, each.values) for each in pairs))
    order = [session for session in source.unrelated[pair.user] if not words & session.stems]
    _random_stream(pair, "order").shuffle(order)
    calls, anew = set[str](), list[ApolloSession]()
    for session in order:
        if calls.isdisjoint(session.asked):
            anew.append(session)
            calls |= session.asked
    return anew


def _select_sessions(
    user: ApolloUser,
    pair: ApolloPair,
    stating: Sequence[ApolloSession],
    order: Sequence[ApolloSession],
    length: int,
    counter: TokenCounter,
) -> list[ApolloSession]:
    """Return unrelated sessions that fit, in order.

    They are added in steps, so that longer histories contain shorter ones.
    """
    left = list(order)
    chosen: list[ApolloSession] = []
    used = counter(build_first_message(user, pair, stating))
    for limit in (*range(min(LENGTH_STEP, length), length, LENGTH_STEP), length):
        for session in list(left):
            tokens = counter("\n".join(format_session(session, 99)) + "\n")
            if used + tokens <= limit:
                used += tokens
                chosen.append(session)
                left.remove(session)
    while chosen and counter(build_first_message(user, pair, [*stating, *chosen])) > length:
        chosen.pop()
    taken = {session.id for session in chosen}
    return [session for session in order if session.id in taken]


def _arrange_sessions(
    pair: ApolloPair, stating: Sequence[ApolloSession], chosen: Sequence[ApolloSession], place: int | None
) -> tuple[list[ApolloSession], list[int]]:
    """Return all sessions in order, and the positions of those that state preferences.

    The positions are drawn from the pair's random stream, unless `place` is given.
    """
    draw, count = _random_stream(pair, "place"), len(chosen) + 1
    before = [int(share * count) for share in sorted(draw.random() for _ in stating)]
    if place is not None:
        if len(stating) > 1 or not 1 <= place <= count:
            raise HistoryError(f"place {place}: give a place from 1 to {count}, or leave it out if preferences evolve")
        before = [place - 1]
    arranged = list(chosen)
    for number, (session, unrelated) in enumerate(zip(stating, before, strict=True)):
        arranged.insert(unrelated + number, session)
    return arranged, [unrelated + number + 1 for number, unrelated in enumerate(before)]


def _draw_tools(source: ApolloSource, pair: ApolloPair, counter: TokenCounter) -> tuple[tuple[str, ...], int]:
    """Return the offered tools, shuffled, and how many are borrowed.

    They are the flow's tools, others that occur in the shortest history, and, if these are too few, borrowed ones:
    tools of the user's other sessions.
    """
    user, stating, order = (
        source.users[pair.user],
        [source.sessions[pair.session]],
        _list_unrelated_sessions(source, [pair]),
    )
    draw = _random_stream(pair, "tools")
    missing = OFFERED_TOOLS - len(pair.tools)
    seen = _list_other_tools(pair, [*stating, *_select_sessions(user, pair, stating, order, MIN_LENGTH, counter)])
    drawn = draw.sample(seen, min(missing, len(seen)))
    borrowed = [tool for tool in _list_other_tools(pair, order) if tool not in drawn][: missing - len(drawn)]
    tools = [*pair.tools, *drawn, *borrowed]
    draw.shuffle(tools)
    return tuple(tools), len(borrowed)


def _list_other_tools(pair: ApolloPair, sessions: Iterable[ApolloSession]) -> list[str]:
    """Return the tools that sessions use but the flow does not."""
    used = dict.fromkeys(tool for session in sessions for tool in session.tools)
    return [tool for tool in used if tool not in pair.tools]

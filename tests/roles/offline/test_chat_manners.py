"""The manners of the chat: what is said in a manner is heard as that manner, and as no other."""

from __future__ import annotations

import pytest

from dialoom.roles.offline.chat.mannerbank import MANNERS
from dialoom.roles.offline.chat.manners import Manner, manners_of


@pytest.mark.parametrize("manner", MANNERS.values())
def test_remarks_show_their_own_manner_alone(manner: Manner) -> None:
    """Else a line would give away a trait that nobody has shown."""
    for remark in manner.says:
        assert [name for name, other in MANNERS.items() if other.shows_in(remark)] == [manner.name], remark


@pytest.mark.parametrize("manner", MANNERS.values())
def test_replies_suit_their_own_manner(manner: Manner) -> None:
    """Every reply that is made for a manner is judged to suit it."""
    assert all(manner.suits(reply) for reply in manner.replies)


@pytest.mark.parametrize(
    ("trait", "names"),
    [
        ("She is dry and sarcastic.", ["dry"]),
        ("He is cheerful and talkative.", ["optimistic", "outgoing"]),
        ("They are not very outgoing.", ["reserved"]),
        ("Rarely worries.", ["calm"]),
        ("Never late.", ["orderly"]),
        ("Owns a hat.", []),
    ],
)
def test_traits_are_known_by_their_words(trait: str, names: list[str]) -> None:
    """What is denied counts as its opposite; an unknown trait is no manner at all."""
    assert [manner.name for manner in manners_of(trait)] == names

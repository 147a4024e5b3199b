"""The users of a scripted source: people of our own making, each with a city and two addresses in it."""

from __future__ import annotations

import random

from dialoom.errors import DialoomError

from ..world import CITIES, World
from .content import content
from .pair import ApolloUser
from .phrases import phrases
from .words import stems

_PEOPLE = content("people")["people"]
MOST_USERS = len(_PEOPLE)


class UsersError(DialoomError):
    """A number of users that cannot be had."""


def drawn_users(world: World, count: int, seed: int) -> list[ApolloUser]:
    """So many of the people, each in a city. No address holds a word that says something about a preference.

    Raises:
        UsersError: If there are not that many people.
    """
    if not 1 <= count <= MOST_USERS:
        raise UsersError(f"users {count}: there are {MOST_USERS} people; give a number from 1 to that", setting="users")
    facets = [facet for each in phrases().values() for facet in each.values()]
    told = frozenset[str]().union(*(words for facet in facets for words in facet.words.values()))
    users = []
    for number, person in enumerate(_PEOPLE[:count], start=1):
        draw = random.Random(f"users {seed} {number}")
        city = draw.randrange(len(CITIES))
        places = [place.name for place in world.places(city) if place.is_address and not told & stems(place.name)]
        home, work = draw.sample(places, 2)
        users.append(ApolloUser(id=f"u{number:02}", **person, city=CITIES[city], home=home, work=work))
    return users

"""The users of a scripted source: people of our own making, each with a city and two addresses in it."""

from __future__ import annotations

import random

from dialoom.errors import DialoomError

from ..flows import Resident
from ..world import CITIES, World
from .content import content
from .pair import ApolloUser
from .phrases import telling_words
from .words import stems

PEOPLE = content("people")["people"]
MOST_USERS = len(PEOPLE)


class UsersError(DialoomError):
    """A number of users that cannot be had."""


def drawn_users(world: World, count: int, seed: int) -> list[ApolloUser]:
    """So many of the people, each in a city. No address holds a word that says something about a preference.

    Raises:
        UsersError: If there are not that many people.
    """
    if not 1 <= count <= MOST_USERS:
        raise UsersError(f"users {count}: there are {MOST_USERS} people; give a number from 1 to that", setting="users")
    return [
        ApolloUser(id=user_id(number), **person, **drawn_resident(world, seed, number)._asdict())
        for number, person in enumerate(PEOPLE[:count], start=1)
    ]


def user_id(number: int) -> str:
    """What the first, second, ... user is called."""
    return f"u{number:02}"


def drawn_resident(world: World, seed: int, number: int) -> Resident:
    """Where a user lives and works."""
    draw = random.Random(f"users {seed} {number}")
    city = draw.randrange(len(CITIES))
    telling = telling_words()
    places = [place.name for place in world.places(city) if place.is_address and not telling & stems(place.name)]
    return Resident(CITIES[city], *draw.sample(places, 2))

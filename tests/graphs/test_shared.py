"""What scenarios have in common is one object for all of them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dialoom import Line, Scenario
from dialoom.graphs import Shared
from dialoom.graphs.shared import ByHash, SharedValues

TURNS = tuple(Line(role="user", content=f"turn {number}") for number in range(100))


class Item(Scenario):
    """A number, and turns that others have, too."""

    number: int
    turns: Shared[tuple[Line, ...]]

    @property
    def label(self) -> str:
        """The number."""
        return str(self.number)

    def facets(self) -> dict[str, Any]:
        """The number."""
        return {"number": self.number}


def test_a_scenario_counts_with_the_hash_of_what_it_shares() -> None:
    """In its id, and where it is kept; elsewhere it holds all."""
    item = Item(number=1, turns=Shared(TURNS))
    assert item.id == Item(number=1, turns=Shared(tuple(TURNS))).id
    assert item.id != Item(number=1, turns=Shared(TURNS[1:])).id
    kept: dict[str, str] = {}
    by_hash = item.model_dump(mode="json", context=ByHash(kept.__setitem__))
    assert by_hash == {"number": 1, "turns": {"$shared": next(iter(kept))}}
    whole = item.model_dump(mode="json")
    assert whole["turns"][3] == {"role": "user", "content": "turn 3"}
    again = Item.model_validate(whole)
    assert again == item and again.id == item.id


def test_scenarios_that_are_read_share_it_again() -> None:
    """One object for all, read once, of the type that the field says; what cannot be of it is refused."""
    plain = Item(number=1, turns=Shared(TURNS)).model_dump(mode="json")["turns"]
    fetched: list[str] = []

    def fetch(hash_: str) -> Any:
        fetched.append(hash_)
        return plain

    held = SharedValues(fetch)
    rows = [{"number": number, "turns": {"$shared": "ab" * 16}} for number in range(5)]
    items = [Item.model_validate(row, context=held) for row in rows]
    assert {id(item.turns) for item in items} == {id(items[0].turns)}
    assert items[0].turns.value == TURNS
    assert fetched == ["ab" * 16]
    with pytest.raises(ValidationError, match=r"turns\.0\.content"):
        Item.model_validate({"number": 1, "turns": [{"role": "user"}]})

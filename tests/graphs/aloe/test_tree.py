"""Paths of a tree: leaves, and what was said on the way to a round."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from dialoom.graphs.aloe.tree import leaves, lines_along, rounds_of
from tests.graphs.aloe.trees import details, episode, round_at


@given(details())
def test_the_rounds_of_an_outcome_are_those_that_it_holds(content: dict[str, Any]) -> None:
    """With the verdicts of the judgements, which are those that the rounds were stored with."""
    assert rounds_of(episode(content).outcome) == content["rounds"]


@given(details())
def test_leaves_are_whole_conversations(content: dict[str, Any]) -> None:
    """Every round is on the way to a leaf, and every leaf ends on a followed reply that no round goes on from."""
    rounds = content["rounds"]
    found = leaves(rounds)
    assert len(set(found)) == len(found) > 0
    assert found == sorted(found), "preferred stands before rejected"
    assert {leaf[:depth] for leaf in found for depth in range(len(leaf))} == {each["path"] for each in rounds}
    assert len(found) == 1 + sum(len(each["followed"]) - 1 for each in rounds)


def test_the_history_of_a_path_is_what_was_said_on_it() -> None:
    """The message of each round, and the reply that the path's letter names."""
    rounds = [round_at("", ["p", "r"]), round_at("p", ["p"]), round_at("r", ["p"])]
    assert lines_along(rounds, "") == []
    assert [(line.role, line.content) for line in lines_along(rounds, "rp")] == [
        ("user", "message at []"),
        ("assistant", "reply to [] r"),
        ("user", "message at [r]"),
        ("assistant", "reply to [r] p"),
    ]
    assert leaves(rounds) == ["pp", "rp"]

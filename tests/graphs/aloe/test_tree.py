"""The reader of trees: histories, leaves, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from pydantic import ValidationError

from dialoom.graphs.aloe.tree import Tree
from tests.graphs.aloe.trees import details, round_at

PERSONA = {"id": "ada", "profile": "She bakes.", "personality": "She is blunt."}


def tree(*rounds: dict[str, Any]) -> Tree:
    """A tree of these rounds."""
    return Tree.model_validate({"persona": PERSONA, "rounds": rounds})


@given(details())
def test_a_tree_is_read_and_given_back_as_it_was(content: dict[str, Any]) -> None:
    """The JSON of an outcome and the tree say the same."""
    assert Tree.model_validate(content).model_dump(mode="json") == content


@given(details())
def test_leaves_are_whole_conversations(content: dict[str, Any]) -> None:
    """Every round is on the way to a leaf, and every leaf ends on a followed reply that no round goes on from."""
    read = Tree.model_validate(content)
    leaves = list(read.leaves())
    assert len(set(leaves)) == len(leaves) > 0
    assert leaves == sorted(leaves), "preferred stands before rejected"
    reached = {each.path for leaf in leaves for each in read.along(leaf)}
    assert reached == {each.path for each in read.rounds}
    assert len(leaves) == 1 + sum(len(each.followed) - 1 for each in read.rounds)


def test_the_history_of_a_path_is_what_was_said_on_it() -> None:
    """The message of each round, and the reply that the path's letter names."""
    read = tree(round_at("", ["p", "r"]), round_at("p", ["p"]), round_at("r", ["p"]))
    assert read.history("") == []
    assert [(line["role"], line["content"]) for line in read.history("rp")] == [
        ("user", "message at []"),
        ("assistant", "reply to [] r"),
        ("user", "message at [r]"),
        ("assistant", "reply to [r] p"),
    ]
    assert read["r"].number == 2
    assert list(read.leaves()) == ["pp", "rp"]


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ([round_at("", ["p"]), round_at("r", ["p"])], "'r' goes on from a reply that was not followed"),
        ([round_at("", ["p"]), round_at("pr", ["p"])], "'pr' goes on from a reply that was not followed"),
        ([round_at("", ["p"]), round_at("", ["r"])], "each once"),
        ([round_at("", ["p", "r"]), round_at("r", ["p"]), round_at("p", ["p"])], "ordered by length of path"),
        ([round_at("", [])], "followed"),
        ([round_at("", ["x"])], "followed"),
        ([round_at("q", ["p"])], "path"),
    ],
)
def test_what_is_no_tree_is_refused(rounds: list[dict[str, Any]], said: str) -> None:
    """Orphans, doubles, and rounds that end without saying how."""
    with pytest.raises(ValidationError, match=said):
        tree(*rounds)

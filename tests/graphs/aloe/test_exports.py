"""The training sets of a tree and the contents of their examples."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.graphs.aloe.report import EXPORTERS, KTO_DISTANCE, PairOptions
from tests.graphs.aloe.trees import details, episode, round_at

TRAINING = ("sft", "dpo", "kto", "reward")
COLUMNS = {
    "sft": ("prompt", "completion"),
    "dpo": ("prompt", "chosen", "rejected"),
    "kto": ("prompt", "completion", "label"),
    "reward": ("prompt", "chosen", "rejected"),
}
PERSONA = {"id": "ada", "profile": "She bakes.", "personality": "She is blunt."}


def rows(format_: str, *trees: dict[str, Any], state: str = "done", **options: Any) -> list[dict[str, Any]]:
    """Return a format's rows of these trees, in the order of the file."""
    exporter = EXPORTERS[format_]
    keywords = {"options": exporter.options.model_validate(options)} if exporter.options else {}

    def items() -> Iterator[Any]:
        for tree in trees:
            yield from exporter.items(episode(tree, state), None, {}, {}, **keywords)

    return list(exporter.arrange(items()) if exporter.arrange else items())


def checked_path(tree: dict[str, Any], prompt: list[dict[str, str]]) -> str:
    """Return the path of the round that a prompt leads to, and check each of its messages.

    Texts contain their paths, so a reply that was not followed is detected.
    """
    by_path = {each["path"]: each for each in tree["rounds"]}
    path = ""
    for index, message in enumerate(prompt):
        assert set(message) == {"role", "content"}
        if index % 2 == 0:
            assert message == {"role": "user", "content": by_path[path]["user"]}
            continue
        steps = [
            step for step, key in (("p", "preferred"), ("r", "rejected")) if message["content"] == by_path[path][key]
        ]
        assert message["role"] == "assistant"
        assert steps, "it is a reply to this message"
        assert steps[0] in by_path[path]["followed"], "it was followed"
        path += steps[0]
    assert len(prompt) % 2 == 1, "a prompt ends with the user"
    return path


@pytest.mark.parametrize("format_", TRAINING)
@given(tree=details())
def test_history_of_every_example_is_the_chosen_path(format_: str, tree: dict[str, Any]) -> None:
    made = rows(format_, tree)
    by_path = {each["path"]: each for each in tree["rounds"]}
    paths = [checked_path(tree, row["prompt"]) for row in made]
    assert sorted(paths) == sorted([*by_path] * (2 if format_ == "kto" else 1))
    for row, path in zip(made, paths, strict=True):
        assert tuple(row) == COLUMNS[format_]
        expected = {"p": by_path[path]["preferred"], "r": by_path[path]["rejected"]}
        replies = {
            "p": row.get("chosen") or (row["completion"] if row.get("label", True) else None),
            "r": row.get("rejected") or (row["completion"] if not row.get("label", True) else None),
        }
        for step, reply in replies.items():
            assert reply is None or reply == [{"role": "assistant", "content": expected[step]}]


@given(tree=details())
def test_release_layout_has_a_line_per_leaf(tree: dict[str, Any]) -> None:
    by_path = {each["path"]: each for each in tree["rounds"]}
    ends = set()
    for line in rows("aloe", tree):
        assert tuple(line) == ("profile", "personality", "conversations")
        path = ""
        for turn in line["conversations"]:
            assert tuple(turn) == ("user", "assistant", "chosen", "inferred_profile", "inferred_personality")
            assert turn["user"] == by_path[path]["user"]
            replies = by_path[path]
            assert turn["assistant"] == {"preferred": replies["preferred"], "rejected": replies["rejected"]}
            assert turn["inferred_profile"] == (by_path[path]["inferred_profile"] or "None")
            assert turn["chosen"] in turn["assistant"]
            path += turn["chosen"][0]
        assert path not in by_path
        ends.add(path)
    leaves = {each["path"] + step for each in tree["rounds"] for step in each["followed"]} - set(by_path)
    assert ends == leaves


def read_for_dpo(line: dict[str, Any], drawn: Callable[[str], str]) -> Iterator[tuple[list[str], str, str]]:
    """Yield the history, the preferred and the rejected reply of each round, as the release's DPO trainer reads them.

    Args:
        line: A row of the `aloe` format.
        drawn: The trainer's choice from `rejected`.
    """
    history: list[str] = []
    for turn in line["conversations"]:
        history.append(turn["user"])
        yield [*history], turn["assistant"]["preferred"], drawn(turn["assistant"]["rejected"])
        history.append(turn["assistant"][turn["chosen"]])


@given(tree=details())
def test_release_dpo_trainer_reads_our_pairs_with_the_documented_patch(tree: dict[str, Any]) -> None:
    expected = {
        json.dumps(
            [[each["content"] for each in row["prompt"]], row["chosen"][0]["content"], row["rejected"][0]["content"]]
        )
        for row in rows("dpo", tree)
    }
    lines = rows("aloe", tree)
    patched = {json.dumps(read) for line in lines for read in read_for_dpo(line, lambda rejected: rejected)}
    assert patched == expected
    for line in lines:
        for _, _, rejected in read_for_dpo(line, random.Random(0).choice):
            assert len(rejected) == 1


@pytest.mark.parametrize("data", ["preferred", "rejected"])
@given(tree=details())
def test_release_sft_trainer_gets_only_texts(data: str, tree: dict[str, Any]) -> None:
    for line in rows("aloe", tree):
        replies = [turn["assistant"][data] for turn in line["conversations"]]
        assert replies and all(isinstance(reply, str) for reply in replies)


@given(tree=details())
def test_tree_is_exported_as_one_line(tree: dict[str, Any]) -> None:
    assert rows("tree", tree) == [{"id": f"{tree['persona']['id']}-1", **tree}]


@given(tree=details(), first=st.integers(1, 6), more=st.integers(0, 3), verified=st.booleans())
def test_filters_keep_histories_whole(tree: dict[str, Any], first: int, more: int, verified: bool) -> None:
    options: dict[str, Any] = {"round_range": f"{first}-{first + more}", "verified_only": verified}
    wanted = [
        each["path"]
        for each in tree["rounds"]
        if first <= len(each["path"]) + 1 <= first + more and (each["verified"] is True or not verified)
    ]
    assert [checked_path(tree, row["prompt"]) for row in rows("dpo", tree, **options)] == wanted


@given(st.lists(details(most_rounds=3), min_size=1, max_size=4))
def test_kto_rows_of_one_prompt_are_not_adjacent(trees: list[dict[str, Any]]) -> None:
    for number, tree in enumerate(trees):
        for each in tree["rounds"]:
            each["user"] += f" of {number}"
    made = rows("kto", *trees)
    pairs = sum(len(tree["rounds"]) for tree in trees)
    assert [sum(row["label"] is label for row in made) for label in (True, False)] == [pairs, pairs]
    if pairs > 1:
        assert all(one["prompt"] != other["prompt"] for one, other in itertools.pairwise(made))


def test_kto_export_buffers_few_rows() -> None:
    trees = [{"persona": PERSONA, "rounds": [round_at("", ["p"])]} for _ in range(3 * KTO_DISTANCE)]
    labels = [row["label"] for row in rows("kto", *trees)]
    assert labels.index(False) == KTO_DISTANCE + 1
    assert labels[-KTO_DISTANCE:] == [False] * KTO_DISTANCE
    assert labels[KTO_DISTANCE:-KTO_DISTANCE] == [True, False] * (2 * KTO_DISTANCE)


@pytest.mark.parametrize("format_", [*TRAINING, "aloe", "tree"])
def test_failed_tree_is_left_out(format_: str) -> None:
    assert rows(format_, {"persona": PERSONA, "rounds": [round_at("", ["p"])]}, state="failed") == []


@pytest.mark.parametrize(
    ("given_", "taken"), [("3-10", range(3, 11)), ("4", [4]), (" 1 - 2 ", [1, 2]), (None, range(1, 13))]
)
def test_range_of_rounds_is_read(given_: str | None, taken: Any) -> None:
    path = "p" * 12
    tree = {"persona": PERSONA, "rounds": [round_at(path[:length], ["p"]) for length in range(12)]}
    assert [len(row["prompt"]) // 2 + 1 for row in rows("sft", tree, round_range=given_)] == list(taken)


@pytest.mark.parametrize("given_", ["", "3-", "a-b", "0-3", "5-4", "-1", "1-2-3", "٣"])
def test_malformed_range_is_refused(given_: str) -> None:
    with pytest.raises(ValueError, match="must be a range of rounds"):
        PairOptions(round_range=given_)

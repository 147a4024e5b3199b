"""The tree of an ALOE conversation: requests, prompts, paths and the lines that the gate reads."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from dialoom import Outcome, play
from dialoom.graphs import Estimate
from dialoom.graphs.aloe import RECIPE
from dialoom.graphs.aloe.tree import AloeScenario, build_lines, find_leaves, judged_rounds
from dialoom.graphs.gate import Gate
from dialoom.graphs.tables import share_of
from dialoom.graphs.tables.statistics import wilson
from dialoom.prompts import ChatMessage, PromptLibrary, Utterance
from tests.conftest import Command, read_jsonl
from tests.graphs.aloe.players import cast
from tests.graphs.aloe.trees import details, episode, round_at
from tests.processes import CommandProcess
from tests.runs.test_kill_anywhere import KILLER

ROLES = ("user", "induction", "preferred", "rejected")


def trees_of_run(
    dialoom: Command, people: Path, *options: object, players: list[str] | None = None
) -> list[dict[str, Any]]:
    """Return the trees of a run with these options."""
    dialoom("run", "aloe", "--personas", people, *(players or cast(*ROLES)), *options, "-o", "tree.db")
    dialoom("export", "tree.db", "--format", "tree", "-o", "tree.jsonl")
    return read_jsonl(people.parent / "tree.jsonl")


def requests(folder: Path, role: str) -> list[list[str]]:
    """Return the texts of a role's requests."""
    with closing(sqlite3.connect(folder / "tree.db")) as connection:
        texts = dict(connection.execute("SELECT id, content FROM texts"))
        rows = connection.execute("SELECT messages FROM calls WHERE role = ? ORDER BY id", (role,)).fetchall()
    return [[texts[id_] for _, id_ in json.loads(messages)] for (messages,) in rows]


def test_run_without_branching_has_one_path(dialoom: Command, people: Path) -> None:
    trees = trees_of_run(dialoom, people)
    followed: Counter[str] = Counter()
    for tree in trees:
        path = ""
        assert len(tree["rounds"]) == 10
        for done in tree["rounds"]:
            assert done["path"] == path
            (reply,) = done["followed"]
            followed[reply] += 1
            path += reply
    assert set(followed) == {"p", "r"}
    assert {role: len(requests(people.parent, role)) for role in ROLES} == dict.fromkeys(ROLES, 30)


def test_branches_share_their_prefix(dialoom: Command, people: Path) -> None:
    """With two branching rounds of four there are 1 + 2 + 4 + 4 rounds, each made once."""
    trees = trees_of_run(dialoom, people, "--rounds", 4, "--branching", 2)
    for tree in trees:
        assert [done["path"] for done in tree["rounds"][:7]] == ["", "p", "r", "pp", "pr", "rp", "rr"]
        assert len(tree["rounds"]) == 11
        assert [done["followed"] for done in tree["rounds"][:3]] == [["p", "r"]] * 3
        assert all(len(done["followed"]) == 1 for done in tree["rounds"][3:])
    assert {role: len(requests(people.parent, role)) for role in ROLES} == dict.fromkeys(ROLES, 33)


def test_every_request_continues_the_followed_path(dialoom: Command, people: Path) -> None:
    trees = trees_of_run(dialoom, people, "--rounds", 4, "--branching", 1)
    said = {}
    for tree in trees:
        by_path = {done["path"]: done for done in tree["rounds"]}
        for path, done in by_path.items():
            lines = []
            for depth, reply in enumerate(path):
                before = by_path[path[:depth]]
                lines += [before["user"], before["preferred" if reply == "p" else "rejected"]]
            said[done["user"]] = [*lines, done["user"]]
    for role in ("preferred", "rejected"):
        for texts in requests(people.parent, role):
            lines = [text for text in texts if text.startswith(("Said", "Preferred", "Rejected"))]
            assert lines == said[lines[-1]]


def test_each_role_sees_only_its_own_context(dialoom: Command, people: Path) -> None:
    tree = trees_of_run(dialoom, people, "--limit", 1, "--rounds", 2)[0]
    hens = "two hens"
    assert all(hens in " ".join(texts) for role in ("user", "induction") for texts in requests(people.parent, role))
    shown = [" ".join(texts) for texts in requests(people.parent, "preferred")]
    assert [done["inferred_profile"] in text for done, text in zip(tree["rounds"], shown, strict=True)] == [True, True]
    assert not any(hens in text for text in shown)
    for texts in requests(people.parent, "rejected"):
        assert not any(word in " ".join(texts) for word in (hens, "Fact", "blunt"))
    assert tree["rounds"][0]["inferred_personality"] is None
    assert not any("*" in done["user"] or "smiles" in done["user"] for done in tree["rounds"])


def test_pair_is_verified_when_both_orders_agree(dialoom: Command, people: Path) -> None:
    trees = trees_of_run(dialoom, people, "--verify-pairs", players=cast(*ROLES, "judge"))
    judged = requests(people.parent, "judge")
    assert len(judged) == 60
    found = [done["verified"] for tree in trees for done in tree["rounds"]]
    assert set(found) == {True, False}
    named = Counter(done["named"] for tree in trees for done in tree["rounds"])
    assert {*named} == {"preferred", "rejected", "first", "second"} and named["preferred"] == sum(found)
    order = dialoom("report", "tree.db", "--table", "order").stdout
    agreed = named["preferred"] + named["rejected"]
    for share, n in ((agreed, 30), (named["preferred"], agreed), (named["first"], 30 - agreed)):
        assert re.search(rf" {100 * share / n:.1f} ", order) and f"n={n} " in order
    words = dialoom("show", "tree.db", "1").stdout
    assert words.count("pair (preferred, turn") == 10
    assert "the two orders disagree" in words and "the two orders agree" in words


@pytest.mark.parametrize("trials", [1, 2])
def test_intervals_of_shares_count_a_tree_once(trials: int, tmp_path: Path) -> None:
    options = {"rounds": 2, "branching": 2, "limit": 8, "verify_pairs": True}
    path = tmp_path / "tree.db"
    run = play("aloe", model="offline/attentive", path=path, seed=2, options=options, trials=trials)
    report = run.report()
    (row,) = report["order"].rows
    same, independent = row[1], share_of(int(str(row[0])), int(str(row[0])))
    assert isinstance(same, Estimate) and independent is not None and same.mean == 1 and same.n > 8
    assert (same.low or 0) < (independent.low or 0) - 0.03
    assert (same.low, same.high) == wilson(1.0, 8)
    verified = report["rounds"].rows[1][list(report["rounds"].columns).index("verified %")]
    assert verified == Estimate(16 * trials, 1.0, *wilson(1.0, 8), is_constant=True)
    assert not report["order"].warnings and not report["rounds"].warnings


def test_second_judge_replaces_verdicts_of_pairs(dialoom: Command, people: Path) -> None:
    (people.parent / "haze").touch()
    size = ("--rounds", 4, "--branching", 2, "--verify-pairs")
    trees = trees_of_run(dialoom, people, *size, players=cast(*ROLES, judge="hazy"))
    hazy = [done["verified"] for tree in trees for done in tree["rounds"]]
    assert hazy.count(None) > 3 and set(hazy) == {True, False, None}
    dialoom("judge", "tree.db", "--model", "judge=python:players:judge", "--name", "second")
    dialoom("export", "tree.db", "--format", "tree", "--judging", "second", "-o", "second.jsonl")
    second = read_jsonl(people.parent / "second.jsonl")
    named = Counter(done["named"] for tree in second for done in tree["rounds"])
    assert (
        f" {100 * named['first'] / (named['first'] + named['second']):.1f} "
        in dialoom("report", "tree.db", "--judging", "second", "--table", "order").stdout
    )
    (people.parent / "haze").unlink()
    dialoom("retry", "tree.db", "--unparsed", "--judging", "run")
    dialoom("export", "tree.db", "--format", "tree", "--judging", "run", "-o", "again.jsonl")
    again = read_jsonl(people.parent / "again.jsonl")
    found, wanted = ([done for tree in trees for done in tree["rounds"]] for trees in (again, second))
    for before, after, other in zip(hazy, found, wanted, strict=True):
        assert after == other if before is None else after["verified"] is before, "the same judge on the same pair"


def test_unparsed_judge_verifies_nothing(dialoom: Command, people: Path) -> None:
    trees = trees_of_run(dialoom, people, "--verify-pairs", "--limit", 1, players=cast(*ROLES, judge="five"))
    assert [done["verified"] for done in trees[0]["rounds"]] == [None] * 10
    assert "unparsed" in dialoom("show", "tree.db", "1").stdout


def test_unparseable_induction_keeps_what_was_known(dialoom: Command, people: Path) -> None:
    players = cast("user", "preferred", "rejected", induction="late")
    (tree,) = trees_of_run(dialoom, people, "--limit", "1", "--rounds", "4", players=players)
    known = [done["inferred_profile"] for done in tree["rounds"]]
    assert known[0] != known[1] == known[2] == known[3], "the third and the fourth were unparseable"
    asked = requests(people.parent, "induction")
    assert len(asked) == 6 and sum("could not be used" in texts[-1] for texts in asked) == 2
    assert "Inductions that could not be parsed: 2." in dialoom("report", "tree.db").stdout


def test_finished_rounds_of_a_failed_tree_are_kept(dialoom: Command, people: Path) -> None:
    players = cast("user", "induction", "rejected", preferred="tired")
    dialoom("run", "aloe", "--personas", people, "--limit", "1", *players, "-o", "tree.db", code=1)
    shown = dialoom("show", "tree.db", "1").stdout
    assert "2. Said" in shown and "3. Said" not in shown
    assert shown.count("rejected: Rejected") == 2 and "failed:" in shown


def test_killed_and_resumed_tree_is_the_same(dialoom: Command, people: Path) -> None:
    options = ["--rounds", "5", "--branching", "1", "--verify-pairs"]
    trees_of_run(dialoom, people, *options, players=cast(*ROLES, "judge"))
    whole = (people.parent / "tree.jsonl").read_bytes()
    (people.parent / "tree.db").unlink()
    plan = ["run", "aloe", "--personas", people, *cast(*ROLES, "judge"), *options, "-o", "tree.db"]
    for number, (part, count) in enumerate(
        (("INTO checkpoints", 7), ("UPDATE kept_calls SET", 20), ("INTO outcomes", 1))
    ):
        command = ["resume", "tree.db"] if number else plan
        with CommandProcess(people.parent, part, count, *command, script=KILLER) as process:
            _, errors = process.communicate()
            assert process.returncode == -9, errors
    dialoom("resume", "tree.db")
    dialoom("export", "tree.db", "--format", "tree", "-o", "again.jsonl")
    assert (people.parent / "again.jsonl").read_bytes() == whole


def test_impossible_options_are_refused(dialoom: Command, people: Path) -> None:
    (people.parent / "empty.jsonl").write_text("\n")
    (people.parent / "broken.jsonl").write_text('{"id": "x", "profile": "She bakes."}\n')
    for options, message in (
        (("--rounds", 2, "--branching", 3), "--branching must be at most"),
        (("--personas", "empty.jsonl"), "contains no persona"),
        (("--personas", "broken.jsonl"), "'personality' is missing"),
        (("--personas", "none.jsonl"), "none.jsonl"),
    ):
        done = dialoom("run", "aloe", "--personas", people, *options, "-o", "tree.db", code=2)
        assert message in done.stderr
        assert not (people.parent / "tree.db").exists()


KNOWN = {"profile": "She keeps two hens.\nShe bakes rye bread.", "personality": "She is blunt."}
SAID = (
    ("user", "My hens are up before me."),
    ("assistant", "What are they called?"),
    ("user", "Flour and Crumb. The bread is better than the names."),
)


def rendered(role: str, turns: int, **known: Any) -> list[ChatMessage]:
    """Return the request for the reply of a role after the first `turns` lines of `SAID`."""
    history: list[Utterance] = [
        {"speaker": role if speaker == "assistant" else speaker, "content": text} for speaker, text in SAID[:turns]
    ]
    return PromptLibrary.load([f"aloe/{role}"])[f"aloe/{role}"].render({"history": history, **known})


@pytest.mark.parametrize("turns", [1, 3])
def test_both_replies_are_requested_in_the_same_words(turns: int) -> None:
    preferred, rejected = rendered("preferred", turns, **KNOWN), rendered("rejected", turns)
    *same, persona = preferred
    assert same == rejected
    assert rejected[0]["role"] == "system" and [each["content"] for each in rejected[1:]] == [
        text for _, text in SAID[:turns]
    ]
    assert all(part in persona["content"] for part in KNOWN.values())
    assert not any(part in str(same) for part in KNOWN.values())


@given(details())
def test_rounds_of_an_outcome_have_their_verdicts(content: dict[str, Any]) -> None:
    assert judged_rounds(episode(content).outcome) == content["rounds"]


@given(details())
def test_leaves_are_whole_conversations(content: dict[str, Any]) -> None:
    rounds = content["rounds"]
    found = find_leaves(rounds)
    assert len(set(found)) == len(found) > 0
    assert found == sorted(found), "preferred comes before rejected"
    assert {leaf[:depth] for leaf in found for depth in range(len(leaf))} == {each["path"] for each in rounds}
    assert len(found) == 1 + sum(len(each["followed"]) - 1 for each in rounds)


def test_history_of_a_path_contains_its_messages() -> None:
    rounds = [round_at("", ["p", "r"]), round_at("p", ["p"]), round_at("r", ["p"])]
    assert build_lines(rounds, "") == []
    assert [(line.role, line.content) for line in build_lines(rounds, "rp")] == [
        ("user", "message at []"),
        ("assistant", "reply to [] r"),
        ("user", "message at [r]"),
        ("assistant", "reply to [r] p"),
    ]
    assert find_leaves(rounds) == ["pp", "rp"]


LONG = "The beans came up in the night, all twenty of them."


def test_faults_of_a_tree_name_path_and_reply_once() -> None:
    texts = {
        "": ("I went to see my beans.", LONG, "As far as I know they grow from [your name] seeds."),
        "p": ("So they did, and the slugs know it.", "Bad for you.", LONG),
        "r": ("Which seeds do you mean?", "Those.", "How nice."),
    }
    rounds = [
        {"path": path, "user": user, "preferred": preferred, "rejected": rejected, "followed": followed}
        for (path, (user, preferred, rejected)), followed in zip(texts.items(), (["p", "r"], ["p"], ["r"]), strict=True)
    ]
    scenario = AloeScenario(person="ada", profile="She bakes.", personality="She is blunt.", rounds=2, branching=1)
    outcome = Outcome(messages=(), ended_by="all_rounds", details={"rounds": rounds})
    faults = Gate(RECIPE, []).add_faults(scenario, outcome).faults
    assert faults is not None
    found = [(each.role, each.kind, each.where) for each in faults]
    assert sorted(found) == [("rejected", "prompt_leak", ""), ("rejected", "repetition", "p")]
    nothing = outcome.model_copy(update={"details": {"rounds": []}})
    assert Gate(RECIPE, []).add_faults(scenario, nothing).faults is None

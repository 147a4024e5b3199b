"""Sources written by models, unusable replies and a killed run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import dialoom
import dialoom as api
from dialoom.personas.apollo.source import PastCall
from dialoom.personas.apollo.source.drafts import read_drafts
from tests.conftest import Command, MadeOnce
from tests.graphs.apollo_write.players import Players, details, part, played, source
from tests.runs.test_kill_anywhere import killed

FOOD = {"flows": "food"}


def write(dialoom: Command, folder: Path) -> None:  # noqa: ARG001
    """Play a run of two flows with the understudies."""
    chosen = ("--users", "1", "--pairs", "1", "--errands", "1", "--offers", "1", "--flows", "food,movie")
    dialoom("run", "apollo-write", *chosen, "-o", "write.db", code=0)


def at_first(said: Any) -> Any:
    """Return a function that gives a reply until the prompt states an error."""
    return lambda text: None if "<wrong>" in text else said


def dropped_by_check(run: api.Run) -> dict[str, str]:
    """Return the dropped texts and the checks that rejected them."""
    notes = details(run)["notes"]
    return {note["id"]: note["check"] for note in notes if note["result"] == "dropped"}


def test_written_source_passes_all_checks_and_is_played(made_once: MadeOnce, dialoom: Command) -> None:
    """There are six pairs and 31 unrelated sessions, and the agent scores 1 on all pairs."""
    folder = made_once(write)
    run = api.open_run(folder / "write.db")
    made = source(run, folder / "source")
    (user,) = made.users.values()
    calls = [turn.arguments for each in made.unrelated[user.id] for turn in each.turns if isinstance(turn, PastCall)]
    assert user.interests
    assert all(sum(each.get(name) == value for each in calls) > 1 for name, value in user.interests.items())
    assert made.meta.maker == "written"
    assert len(made.pairs) == 6
    assert len(made.unrelated["u01"]) == 31
    options = {"source": folder / "source", "length": ["2k"], "framework": ["reminder"]}
    played_ = api.play("apollo", path=folder / "played.db", options=options)
    rows = played_.report(tables=["accuracy"]).tables[0].rows
    assert [cell for cell in rows[0] if isinstance(cell, float)] == [], rows
    scores = [
        each.score for episode in played_.episodes() for each in episode.outcome.judgements if each.metric == "accuracy"
    ]
    assert scores == [True] * 6
    output = dialoom("report", "write.db", code=0).stdout
    assert "Rejected drafts by check" in output
    shown = dialoom("show", "write.db", "1", code=0).stdout
    assert "u01: 6 pairs, 37 sessions" in shown


def test_corrected_faults_lose_nothing_and_uncorrected_ones_are_dropped(tmp_path: Path) -> None:
    options = {"users": 1, "pairs": 1, "errands": 0, "offers": 1, "flows": "movie,music,beverage,food"}
    notes = {}
    for model in ("attentive", "generic"):
        models = dict.fromkeys(("writer", "checker"), f"offline/{model}")
        notes[model] = details(api.play("apollo-write", path=tmp_path / f"{model}.db", models=models, options=options))[
            "notes"
        ]
    faulty = {note["id"] for note in notes["attentive"] if note["result"] == "rejected" and note["kind"] == "sessions"}
    assert faulty
    assert not [note for note in notes["attentive"] if note["result"] == "dropped"]
    assert {
        note["id"] for note in notes["generic"] if note["result"] == "dropped" and note["kind"] == "sessions"
    } == faulty
    tries = [note["round"] for note in notes["generic"] if note["id"] in faulty]
    assert tries == [1] * len(faulty) + [2] * len(faulty) + [3] * len(faulty)


@pytest.mark.parametrize(
    ("kind", "reply", "why"),
    [
        ("name", "I would rather not.", "unparsed"),
        ("name", {"name": "Ada", "gender": "woman", "age": 30, "persona": "Mends a bus."}, "leak: 'bus'"),
        ("choice", {"choice": 7, "stories": ["a", "b", "c"]}, "choice: number 7"),
        ("turns", "{", "unparsed"),
        ("turns", {"turns": [], "call": {"name": "teleport", "arguments": {}}}, 'call: there is no tool "teleport"'),
        ("turns", {"turns": [], "call": {"name": "order_food_delivery", "arguments": {"city": 7}}}, "call: order_food"),
        ("turns", {"turns": [], "call": None}, "shape: nothing is said"),
        ("turns", {"turns": [{"speaker": "user", "text": "Hello."}], "call": None}, ("wrong past call", "twin")),
        ("query", {"query": "Order me a meal."}, ("missing", "kind")),
    ],
)
def test_unusable_reply_is_shown_with_its_error_and_rewritten(
    tmp_path: Path, kind: str, reply: Any, why: str | tuple[str, ...]
) -> None:
    players = Players(**{kind: at_first(reply)})
    run = played(tmp_path, players, **FOOD)
    errors = [each for each in players.errors_in_requests(kind) if each != "nothing"]
    assert errors
    assert all(each.startswith(why) for each in errors), errors
    assert len(source(run, tmp_path / "source").pairs) == 3
    assert not dropped_by_check(run)


def test_call_that_was_not_requested_is_refused_before_it_is_run(tmp_path: Path) -> None:
    def spicy(text: str) -> Any:
        so_far = part(text, "so_far")
        values = dict(re.findall(r"<part name=\"(\w+)\" wanted='([^']*)'", text))
        if so_far or json.loads(values["spice_level"]) != "mild":
            return None
        return {
            "turns": [{"speaker": "user", "text": "Food, please."}],
            "call": {
                "name": "order_food_delivery",
                "arguments": {
                    "city": "?",
                    "address": "?",
                    "cuisine": "korean",
                    "spice_level": "hot",
                    "cutlery": True,
                    "payment_method": "wallet",
                },
            },
        }

    players = Players(turns=spicy)
    run = played(tmp_path, players, **FOOD)
    out = dropped_by_check(run)
    assert set(out.values()) == {"call"}
    for id_, row in details(run)["drafts"]["sessions"].items():
        assert ("output" in json.dumps(row)) == (id_ not in out)


def test_text_rejected_in_every_round_is_dropped_and_its_draft_gives_the_reason(tmp_path: Path) -> None:
    players = Players(query=lambda text: leaking(text) if _is_first(text, players) else None)
    run = played(tmp_path, players, **FOOD)
    out = dropped_by_check(run)
    assert set(out.values()) == {"leak"}
    assert len(out) < 3
    assert not out.keys() & source(run, tmp_path / "source").pairs.keys()
    assert players.asked["query"] == 3 + 2 * len(out)
    run.export("drafts", tmp_path / "drafts")
    _, drafts = read_drafts(tmp_path / "drafts")
    assert {draft.id: draft.problem.partition(":")[0] for draft in drafts["u01"].queries if draft.problem} == out


def leaking(text: str) -> Any:
    """Return a query with all that it needs and a leak."""
    start = re.search(r"start: (\w+)", part(text, "occasion"))
    assert start
    who = "I am" if part(text, "kind") == "reactive" else "Tobias is"
    return {"query": f"{who} at {start[1]}. Korean food would do."}


def _is_first(text: str, players: Players) -> bool:
    """Return whether a request is for the same query as the first one."""
    first = next(said for kind, said in players.received if kind == "query")
    return part(first, "occasion") == part(text, "occasion")


def test_session_read_with_another_value_is_rewritten(tmp_path: Path) -> None:
    misread = [True] * 3
    players = Players(
        read=lambda _: {"facets": [], "form": "tone", "verdict": "right"} if misread and misread.pop() else None
    )
    run = played(tmp_path, players, **FOOD)
    errors = [each for each in players.errors_in_requests("turns") if each != "nothing"]
    assert len(errors) >= 3
    assert all(each.startswith("told: from what is said, cuisine reads as None") for each in errors)
    assert not dropped_by_check(run)


def test_text_without_a_checkers_verdict_is_dropped_at_once(tmp_path: Path) -> None:
    players = Players(check=lambda text: "Hm." if "<query>" in text else None)
    run = played(tmp_path, players, **FOOD)
    assert set(dropped_by_check(run).values()) == {"unchecked"}
    assert players.asked["query"] == 3
    assert not details(run)["pairs"]


def test_written_texts_and_sessions_pass_the_gate(tmp_path: Path) -> None:
    def tagged(_text: str) -> dict[str, Any]:
        return {
            "choice": 1,
            "stories": ["<story>A cousin had told her.</story>", "Then it was dear.", "Then she moved."],
        }

    def labelled(text: str) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(Players.said(text))
        if "<so_far>" in text and not part(text, "so_far"):
            made["turns"][0]["text"] = f"User: {made['turns'][0]['text']}"
        return made

    run = played(tmp_path, Players(choice=tagged, turns=labelled), **FOOD)
    (episode,) = run.episodes()
    found = {(fault.role, fault.kind, fault.where) for fault in episode.outcome.faults or ()}
    expected = {("writer", "glued_lines", f"s-u01-food-{number}-1, turn 1") for number in (1, 2, 3)}
    assert found == {("writer", "prompt_leak", "u01-food, story 1"), *expected}
    assert run.report(tables=["faults"]).tables[0].rows
    run.export("drafts", tmp_path / "drafts")
    again = played(tmp_path, name="again", drafts=tmp_path / "drafts")
    assert not any(episode.outcome.faults for episode in again.episodes())


def test_query_answered_without_the_history_is_dropped(tmp_path: Path) -> None:
    wanted: dict[str, list[dict[str, Any]]] = {}

    def noted(text: str) -> None:
        if "<query>" in text:
            values = re.findall(r"<part name=\"(\w+)\" wanted='([^']*)'", text)
            facets = [{"facet": name, "value": json.loads(value)} for name, value in values]
            wanted.setdefault(part(text, "query"), facets)  # another set's request may be in the same words

    answers = [0]

    def solved(text: str) -> Any:
        answers[0] += 1
        return {"facets": wanted[part(text, "request")]} if answers[0] == 2 else None

    run = played(tmp_path, Players(check=noted, solve=solved), verify_leaks=2, **FOOD)
    assert answers[0] == 6
    assert list(dropped_by_check(run).values()) == ["verified leak"]
    assert len(source(run, tmp_path / "source").pairs) == 2


def test_impossible_options_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(api.DialoomError, match="flows: there is no 'tea'; the names are commute-rule"):
        played(tmp_path, flows="tea")
    with pytest.raises(api.DialoomError, match="users 101: only 100 personas"):
        played(tmp_path, users=101)
    run = played(tmp_path, until="users")
    with pytest.raises(api.DialoomError, match="the run ends at the stage users"):
        run.export("apollo-source", tmp_path / "source")


SMALL = {"users": 1, "pairs": 1, "errands": 0, "offers": 1, "flows": "food,music"}


def exported(run: dialoom.Run, folder: Path) -> dict[str, bytes]:
    """Export a run in both formats and return the files."""
    for name in ("apollo-source", "drafts"):
        run.export(name, folder / name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.jsonl")}


def test_killed_and_resumed_run_gives_the_same_bytes(tmp_path: Path) -> None:
    whole = dialoom.play("apollo-write", path=tmp_path / "whole.db", options=SMALL)
    expected = exported(whole, tmp_path / "whole")
    assert len(expected) == 4 + 5
    broken = killed(tmp_path, "INSERT INTO kept_calls", 15, "run", "apollo-write", **SMALL)
    assert exported(dialoom.resume(broken), tmp_path / "resumed") == expected

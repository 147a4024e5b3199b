"""Drafts reviewed by people: unchanged drafts need no calls, and edited ones are checked again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dialoom as api
from dialoom.personas import DataError
from tests.graphs.apollo_write.players import Players, details, played, source

FOOD: dict[str, Any] = {"flows": "food", "errands": 0}
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the drafts of a run of one flow, one query of which a checker has finally rejected."""
    folder = tmp_path_factory.mktemp("drafts")
    refused = {"verdict": "wrong", "explanation": "hm"}
    players = Players(
        check=lambda text: refused if "<query>" in text and "Tobias" in text.split("<query>")[1] else None
    )
    played(folder, players, **FOOD).export("drafts", folder / "drafts")
    return folder / "drafts"


def with_edits(drafts: Path, folder: Path, kind: str, change: Callable[[Rows], object]) -> Path:
    """Copy the drafts and change the rows of a kind; return the copy."""
    made = folder / "with_edits"
    made.mkdir()
    for path in drafts.glob("*.json*"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        if path.stem == kind:
            change(rows)
        (made / path.name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return made


def continued(drafts: Path, folder: Path, **options: Any) -> tuple[api.Run, Players]:
    """Play a run that continues from drafts."""
    players = Players()
    given = {name: value for name, value in options.items() if name in ("until", "verify_leaks")}
    models = dict.fromkeys(("writer", "checker"), players)
    run = api.play("apollo-write", path=folder / "on.db", models=models, options={"drafts": drafts, **given})
    return run, players


def without_problem(rows: Rows) -> dict[str, Any]:
    """Return the first row without a problem."""
    return next(row for row in rows if not row["problem"])


def with_problem(rows: Rows) -> dict[str, Any]:
    """Return the first row with a problem."""
    return next(row for row in rows if row["problem"])


def test_unchanged_drafts_make_no_calls_and_give_the_same_source(drafts: Path, tmp_path: Path) -> None:
    run, players = continued(drafts, tmp_path)
    assert not players.asked
    run.export("drafts", tmp_path / "again")
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").glob("*.json*")} == {
        path.name: path.read_bytes() for path in drafts.glob("*.json*")
    }


def test_edited_query_is_checked_again(drafts: Path, tmp_path: Path) -> None:
    run, players = continued(
        with_edits(drafts, tmp_path, "queries", lambda rows: without_problem(rows).update(_more(rows))), tmp_path
    )
    assert players.asked == {"check": 1}
    assert any("As soon as may be." in pair.query for pair in source(run, tmp_path / "source").pairs.values())


def _more(rows: Rows) -> dict[str, str]:
    return {"query": f"{without_problem(rows)['query']} As soon as may be."}


def test_badly_edited_query_is_rejected_and_kept(drafts: Path, tmp_path: Path) -> None:
    changed = with_edits(
        drafts,
        tmp_path,
        "queries",
        lambda rows: without_problem(rows).update(query=f"{without_problem(rows)['query']} Korean!"),
    )
    run, players = continued(changed, tmp_path)
    assert not players.asked
    (row,) = [row for row in details(run)["drafts"]["queries"].values() if "Korean" in row["query"]]
    assert row["problem"].startswith("leak: 'Korean'")
    assert not details(run)["pairs"]


def test_query_refused_by_a_checker_can_be_accepted(drafts: Path, tmp_path: Path) -> None:
    run, players = continued(
        with_edits(drafts, tmp_path, "queries", lambda rows: with_problem(rows).update(accepted=True)), tmp_path
    )
    assert not players.asked
    before = sum(not row["problem"] for row in map(json.loads, (drafts / "queries.jsonl").read_text().splitlines()))
    assert len(source(run, tmp_path / "source").pairs) == before + 1


def test_accepted_query_that_leaks_is_rejected(drafts: Path, tmp_path: Path) -> None:
    change = {"accepted": True, "query": "Korean food, please."}
    run, players = continued(
        with_edits(drafts, tmp_path, "queries", lambda rows: without_problem(rows).update(change)), tmp_path
    )
    assert not players.asked
    assert [row["problem"][:4] for row in details(run)["drafts"]["queries"].values() if row["accepted"]] in (
        ["kind"],
        ["miss"],
        ["leak"],
    )


def test_deleted_row_is_rewritten(drafts: Path, tmp_path: Path) -> None:
    name = "s-u01-food-1-1"
    changed = with_edits(
        drafts, tmp_path, "sessions", lambda rows: rows.remove(next(row for row in rows if row["id"] == name))
    )
    run, players = continued(changed, tmp_path)
    assert players.asked == {"turns": 2, "read": 1}
    assert details(run)["drafts"]["sessions"][name]["turns"]


def test_changing_a_preference_rewrites_its_texts(drafts: Path, tmp_path: Path) -> None:
    def change(rows: Rows) -> None:
        for each, spice in zip(rows[0]["sets"], ("none", "mild", "hot"), strict=True):
            each["values"]["spice_level"] = spice

    run, players = continued(with_edits(drafts, tmp_path, "preferences", change), tmp_path)
    assert players.asked == {"check": 1 + 3, "turns": 6, "read": 3, "query": 3}
    pairs = source(run, tmp_path / "source").pairs.values()
    assert [pair.values["spice_level"] for pair in pairs] == ["none", "mild", "hot"]


def test_impossible_preferences_are_rejected_with_the_reason(drafts: Path, tmp_path: Path) -> None:
    changes = {
        'values: preference 1: spice_level "salty"': ("salty", "mild", "hot"),
        "apart: ": ("mild", "mild", "hot"),
    }
    for number, (why, values) in enumerate(changes.items()):

        def change(rows: Rows, values: tuple[str, ...] = values) -> None:
            for each, spice in zip(rows[0]["sets"], values, strict=True):
                each["values"]["spice_level"] = spice

        (folder := tmp_path / str(number)).mkdir()
        run, players = continued(with_edits(drafts, folder, "preferences", change), folder)
        (row,) = details(run)["drafts"]["preferences"].values()
        assert row["problem"].startswith(why), row["problem"]
        assert not players.asked
        assert not details(run)["pairs"]


def test_unknown_home_is_reported(drafts: Path, tmp_path: Path) -> None:
    run, players = continued(
        with_edits(drafts, tmp_path, "users", lambda rows: rows[0].update(home="1 Nowhere")), tmp_path
    )
    assert details(run)["drafts"]["users"]["u01"]["problem"].startswith('place: home "1 Nowhere"')
    assert not details(run)["pairs"]
    assert not players.asked


def test_run_stops_after_a_stage_and_continues_from_it(tmp_path: Path) -> None:
    at_once = Players()
    whole = source(played(tmp_path, at_once, **FOOD), tmp_path / "whole")
    players, before = Players(), None
    models = dict.fromkeys(("writer", "checker"), players)
    for stage in ("users", "preferences", "sessions", "complete"):
        options = {"drafts": before} if before else {"users": 1, "pairs": 1, "offers": 1, **FOOD}
        path = tmp_path / f"{stage}.db"
        run = api.play("apollo-write", path=path, models=models, options={**options, "until": stage, "offers": 1})
        run.export("drafts", before := tmp_path / stage)
    assert players.asked == at_once.asked
    made = source(run, tmp_path / "parts")
    assert made.meta == whole.meta
    assert list(made.pairs) == list(whole.pairs)


def test_drafts_that_do_not_fit_are_refused_by_name(drafts: Path, tmp_path: Path) -> None:
    with pytest.raises(api.DialoomError, match="pairs 2: the drafts were made with 1; leave the option out"):
        api.play("apollo-write", path=tmp_path / "run.db", options={"drafts": drafts, "pairs": 2})
    (folder := tmp_path / "a").mkdir()
    changed = with_edits(drafts, folder, "queries", lambda rows: rows[0].update(user="u09"))
    with pytest.raises(DataError, match="there is no user 'u09'"):
        api.play("apollo-write", path=tmp_path / "run.db", options={"drafts": changed})
    (folder := tmp_path / "b").mkdir()
    changed = with_edits(drafts, folder, "sessions", lambda rows: rows[1].update(turns=[{"speaker": "nobody"}]))
    with pytest.raises(DataError, match=r"sessions.jsonl:2: 'turns"):
        api.play("apollo-write", path=tmp_path / "run.db", options={"drafts": changed})
    (folder := tmp_path / "c").mkdir()
    changed = with_edits(drafts, folder, "users", lambda rows: rows[0].update(id="mira", user="mira"))
    with pytest.raises(DataError, match=r"users.jsonl:1: 'mira' is not the id of a user: give u and a number"):
        api.play("apollo-write", path=tmp_path / "run.db", options={"drafts": changed})

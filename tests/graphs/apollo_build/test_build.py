"""`apollo-build`: a run makes a source folder that depends only on the seed, and reports its diversity."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import dialoom as api
from dialoom.graphs.apollo.loop import find_gold_problem
from dialoom.personas.apollo import World, flows
from dialoom.personas.apollo.flows import Flow, FlowError
from dialoom.personas.apollo.source import ApolloSource, read_source, scripted
from dialoom.personas.apollo.source.scripted import UserPart
from dialoom.runs.export.pushing import push_dataset
from tests.conftest import Command, MadeOnce
from tests.personas.test_apollo_source import FOLDER, SOURCE
from tests.processes import CommandProcess
from tests.runs.test_kill_anywhere import KILLER

FILES = ("meta.jsonl", "pairs.jsonl", "sessions.jsonl", "users.jsonl")


def build(dialoom: Command, folder: Path) -> None:  # noqa: ARG001
    """Play a run of one user, as the shipped sample was made with two."""
    dialoom("run", "apollo-build", "--users", "1", "--pairs", "1", "-o", "build.db", code=0)


def exported(dialoom: Command, made: Path, name: str) -> ApolloSource:
    """Export and return the run's source."""
    dialoom("export", "build.db", "--format", "apollo-source", "-o", name, code=0)
    return read_source(made / name)


def test_shipped_source_is_rebuilt_row_for_row(made_once: MadeOnce, dialoom: Command) -> None:
    made = made_once(build)
    source = exported(dialoom, made, "source")
    exported(dialoom, made, "again")
    assert sorted(path.name for path in (made / "source").iterdir()) == sorted(("README.md", *FILES))
    assert all((made / "source" / name).read_bytes() == (made / "again" / name).read_bytes() for name in FILES)
    assert source.meta == SOURCE.meta
    for name in FILES[1:]:
        lines = (made / "source" / name).read_text().splitlines()
        assert lines == [line for line in (FOLDER / name).read_text().splitlines() if _user_of(line) == "u01"]


def test_source_has_a_card_with_a_set_per_file(made_once: MadeOnce, dialoom: Command) -> None:
    made = made_once(build)
    exported(dialoom, made, "source")
    front = yaml.safe_load((made / "source" / "README.md").read_text().split("---")[1])
    assert {each["config_name"] for each in front["configs"]} == {"meta", "pairs", "sessions", "users"}
    assert {str(file) for file in push_dataset(made / "source", "me/source").files} == {"README.md", *FILES}
    assert "5 files" in dialoom("push", "source", "me/source").stdout


def _user_of(line: str) -> str:
    row = json.loads(line)
    return str(row.get("user", row["id"]))


def test_report_describes_the_source(made_once: MadeOnce, dialoom: Command) -> None:
    """The report has pairs by form and kind, and the figures of the paper's appendix A.2."""
    made_once(build)
    output = dialoom("report", "build.db", code=0).stdout
    assert "Diversity of the sessions" in output
    rows = [line.split() for line in output.splitlines()]
    assert ["all", "27", "13", "14"] in rows
    assert ["unrelated", "93", "31", "1.000", "31"] in rows


def test_unknown_users_are_refused(tmp_path: Path) -> None:
    with pytest.raises(api.DialoomError, match="users"):
        api.play("apollo-build", path=tmp_path / "run.db", options={"users": 21})


def test_run_killed_while_writing_its_outcome_gives_the_same_bytes(
    made_once: MadeOnce, dialoom: Command, tmp_path: Path
) -> None:
    made = made_once(build)
    exported(dialoom, made, "source")
    killed = tmp_path / "killed"
    killed.mkdir()
    command = ["run", "apollo-build", "--users", 1, "--pairs", 1, "-o", "run.db"]
    with CommandProcess(killed, "INSERT INTO outcomes", 1, *command, script=KILLER) as process:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    api.resume(killed / "run.db").export("apollo-source", killed / "source")
    assert all((killed / "source" / name).read_bytes() == (made / "source" / name).read_bytes() for name in FILES)


def test_gold_without_a_full_score_in_the_agents_loop_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = next(iter(SOURCE.pairs.values()))
    assert find_gold_problem(SOURCE.world, pair) is None
    first, *others = pair.gold
    nowhere = replace(first, arguments={**first.arguments, "city": "Nowhere"})
    many = pair.model_copy(update={"gold": (first,) * 12})
    wrong = pair.model_copy(update={"gold": (nowhere, *others)})
    assert "not played: the loop ends (turn_limit) after 12 of 12 calls" in (
        find_gold_problem(SOURCE.world, many) or ""
    )
    refused = find_gold_problem(SOURCE.world, wrong) or ""
    assert "not played" in refused and "nowhere" in refused.casefold()
    monkeypatch.setattr("dialoom.graphs.apollo_build.build_user_part", lambda *_: UserPart([], [wrong], {}))
    run = api.play("apollo-build", path=tmp_path / "run.db", options={"users": 1})
    (failed,) = run.episodes()
    assert failed.state == "failed" and f"flow {pair.flow}, pair {pair.id}: not played" in str(failed.error)


def test_flow_without_requests_is_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = flows.find_sets

    def without_hotels(world: World, flow: Flow, *others: Any) -> Any:
        if flow.name == "hotel":
            raise FlowError("flow hotel: idle facet stars")
        return found(world, flow, *others)

    monkeypatch.setattr(scripted, "find_sets", without_hotels)
    run = api.play("apollo-build", path=tmp_path / "run.db", options={"users": 1, "pairs": 1}, folder=tmp_path / "out")
    (episode,) = run.episodes()
    assert episode.state == "done"
    source = read_source(tmp_path / "out")
    shipped = [pair for pair in SOURCE.pairs.values() if pair.user == "u01" and pair.flow != "hotel"]
    assert list(source.pairs.values()) == shipped
    (table,) = [each for each in run.report().tables if each.name == "left-out"]
    assert table.rows == [["u01", "hotel", "flow hotel: idle facet stars"]]

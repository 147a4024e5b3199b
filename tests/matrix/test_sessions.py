"""The cells of the table in docs/sessions.md: each kind of stateful player in each operation on a run."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

import dialoom
from dialoom import DialoomError
from dialoom.roles import restoring
from dialoom.roles.restoring import PLAYER_KINDS, USES, Refusal
from docs.player_tables import kinds, refusals
from tests.conftest import ROOT
from tests.processes import CommandProcess
from tests.runs.workers.local_cluster import local_cluster
from tests.sessions.memories import OTHER_WORDS

STUDY = """
name = "memory"
[people]
rows = [PEOPLE]
[tasks]
rows = [{ goal = "a table for two" }, { goal = "the same table, but on Sunday" }]
[dialogue]
max_turns = 2
in_sequence = true
ends = []
"""
ANN, BO = '{ name = "Ann", style = "brief" }', '{ name = "Bo", style = "wordy" }'
CALLS = 8
"""The calls of Ann's two conversations, of two turns each: the user's have odd numbers, the assistant's even ones."""
LAST_TURN, FIRST_TURN = 2, 4
"""Steps from the end of a conversation to before its last turn, and to before its first one."""

KILLS = f"""
import json, os, sys
from dialoom.cli import main
_, kills, *command = sys.argv
sys.argv[1:] = [*command, command[1] + ".db"]  # import everything before forking
try:
    main()
except SystemExit as end:
    assert not end.code
for path, kill in json.loads(kills):
    copy = os.fork()
    if copy == 0:
        os.environ.update(kill)
        sys.argv[1:] = [*command, path]
        main()
        os._exit(0)
    assert os.waitpid(copy, 0)[1] == {int(signal.SIGKILL)}, f"{{kill}} ended otherwise"
print(len(json.loads(kills)), "killed")
"""
"""A script that plays a run for each kill, in a fork of the process."""

PLAYERS = {
    "in_file": PLAYER_KINDS[0],
    "served": PLAYER_KINDS[1],
    "in_memory": PLAYER_KINDS[2],
    "made": PLAYER_KINDS[2],
    "store_only": PLAYER_KINDS[3],
    "Snapshots": PLAYER_KINDS[4],
    "shared": PLAYER_KINDS[4],
    "Begins": PLAYER_KINDS[5],
    "alone": PLAYER_KINDS[6],
}
"""The kinds of the players in `tests/sessions/memories.py`; `in_memory` has a store besides its checkpointer."""


@dataclass
class Case:
    """A player and the folder of its runs."""

    player: str
    folder: Path
    patch: pytest.MonkeyPatch

    async def play(self, path: str, study: str = "ann.toml", user: str = "customer", **settings: Any) -> dialoom.Run:
        """Play a study."""
        models: dict[str, Any] = {
            "assistant": dialoom.Agent(f"graph:memories.py:{self.player}", stateful=True),
            "user": f"graph:memories.py:{user}",
        }
        return await dialoom.aplay(study, path=path, models=models, options={"judge": False}, **settings)

    def kill(self, study: str, kills: Sequence[Mapping[str, str]]) -> list[str]:
        """Play a study in processes that are killed; return the runs that they leave."""
        models = ("--model", f"assistant=graph:memories.py:{self.player}", "--model", "user=graph:memories.py:customer")
        flags = ("run", study, *models, "--stateful", "assistant", "--no-judge", "-o")
        paths = [f"{study}-{number}.db" for number in range(len(kills))]
        with CommandProcess(
            self.folder, json.dumps([*zip(paths, kills, strict=True)]), *flags, script=KILLS
        ) as process:
            printed, errors = process.communicate()
            assert printed.endswith(f"{len(kills)} killed\n"), errors
        return paths


def export_rows(run: dialoom.Run) -> list[dict[str, Any]]:
    to = run.path.with_suffix(".jsonl")
    run.export("dialogues", to)
    return [json.loads(line) for line in to.read_bytes().splitlines()]


async def load_states(run: dialoom.Run) -> list[Any]:
    """Return the players' states at the ends of a run's conversations."""
    results = []
    for number in range(1, len(export_rows(run)) + 1):
        async with run.look(number) as stepper:
            results.append(normalize_state(stepper.state))
    return results


def normalize_state(state: Mapping[str, Any]) -> Any:
    """Return a player's state without random ids; for a persistent checkpointer, the messages in its checkpoint."""
    player = state["players"].get("assistant")
    if isinstance(player, dict):
        player = json.loads(re.sub(r"person-[0-9a-f]{20}", "person", json.dumps(player)))
    if not isinstance(player, dict) or "checkpoint" not in player:
        return player
    place = {"thread_id": player["thread"], "checkpoint_id": player["checkpoint"], "checkpoint_ns": ""}
    if "values" in player and "items" not in player:
        return [message["content"] for message in player["values"]["messages"]]
    if "values" not in player:
        with closing(sqlite3.connect("agent.db", timeout=30)) as connection:
            saved = SqliteSaver(connection).get_tuple({"configurable": place})
        assert saved is not None
        return [message.content for message in saved.checkpoint["channel_values"]["messages"]]
    return {name: value for name, value in player.items() if name not in ("thread", "checkpoint")}


async def resume(case: Case, is_same: bool) -> None:
    """Resume runs killed in each call; with a persistent checkpointer, also when the agent is ahead of the run.

    One run is killed with two people's conversations in progress.
    """
    whole = await case.play("whole.db")
    kills = [{"DIE_AT": str(number)} for number in range(1, CALLS + 1)]
    if case.player in ("in_file", "served"):
        kills += [{"DIE_AFTER": str(number)} for number in range(1, CALLS // 2 + 1)]
    for number, (path, kill) in enumerate(zip(case.kill("ann.toml", kills), kills, strict=True)):
        resumed = await dialoom.aresume(path, trust=True)
        results = export_rows(resumed)
        attempts = [row.pop("earlier_attempts", 0) for row in results]
        assert results == export_rows(whole), kill
        if is_same:
            assert resumed.path.with_suffix(".jsonl").read_bytes() == whole.path.with_suffix(".jsonl").read_bytes()
            assert await load_states(resumed) == await load_states(whole), kill
        else:  # the conversation in which the player has replied is played again
            assert attempts == [number in (2, 3), number in (6, 7)], kill
    if is_same:
        both = await case.play("both.db", "both.toml")
        (path,) = case.kill("both.toml", [{"DIE_AT": str(CALLS + 3)}])
        resumed = await dialoom.aresume(path, trust=True)
        assert (export_rows(resumed), await load_states(resumed)) == (export_rows(both), await load_states(both))


async def fork(case: Case, is_same: bool) -> None:
    """Check that a branch with another user message equals a run in which it was said from the start."""
    whole, right = await case.play("whole.db"), await case.play("right.db", user="other_customer")
    before = export_rows(whole), await load_states(whole)
    async with whole.step(2) as stepper:
        await stepper.rewind(LAST_TURN)
        branch = await stepper.fork("terrace")
        await branch.say("user", OTHER_WORDS)
        await branch.run()
        end = [line.content for line in (await branch.outcome()).messages], normalize_state(branch.state)
    assert is_same and end == (read_second_messages(right), (await load_states(right))[1])
    assert (export_rows(whole), await load_states(whole)) == before


async def rewind(case: Case, is_same: bool) -> None:
    """Check that a rewind restores the player's state, from which it continues."""
    whole, right = await case.play("whole.db"), await case.play("right.db", user="other_customer")
    async with whole.step(2) as stepper:
        await stepper.rewind(LAST_TURN)
        earlier = normalize_state(stepper.state)
        await stepper.forward(LAST_TURN)
        later = normalize_state(stepper.state)
        await stepper.rewind(LAST_TURN)
        assert normalize_state(stepper.state) == earlier and (earlier is None or earlier != later)
        await stepper.say("user", OTHER_WORDS)
        await stepper.run()
        end = [line.content for line in (await stepper.outcome()).messages], normalize_state(stepper.state)
    assert is_same and end == (read_second_messages(right), (await load_states(right))[1])


async def resample(case: Case, is_same: bool) -> None:
    """Resample an earlier turn and the later ones, in a finished conversation and in one that is resumed afterwards."""
    whole = await case.play("whole.db")
    (path,) = case.kill("ann.toml", [{"DIE_AT": str(CALLS - 1)}])
    unfinished = dialoom.open_run(path, trust=True)
    for run, back in ((whole, LAST_TURN), (whole, FIRST_TURN - 1), (unfinished, 1)):
        async with run.step(2) as stepper:
            for steps in (back, back if run is whole else LAST_TURN):  # the second time from the end of a branch
                await stepper.rewind(steps)
                await stepper.resample()
                end = await stepper.run()
                assert [call.sample > 0 for call in end.calls] == [True]  # the player was asked again
                assert is_same and [
                    line.content for line in (await stepper.outcome()).messages
                ] == read_second_messages(whole)
                assert normalize_state(end.state) == (await load_states(whole))[1]
    resumed = await dialoom.aresume(path, trust=True)
    assert (export_rows(resumed), await load_states(resumed)) == (export_rows(whole), await load_states(whole))


async def play_with_workers(case: Case, is_same: bool) -> None:
    """Play two people's conversations with two workers."""
    whole = await case.play("whole.db", "both.toml")
    local_cluster(case.patch)
    spread = await case.play("spread.db", "both.toml", workers=2)
    assert is_same and (export_rows(spread), await load_states(spread)) == (
        export_rows(whole),
        await load_states(whole),
    )


async def play_on_cluster(case: Case, is_same: bool) -> None:
    """Play them with the workers of a cluster, which may be on other machines."""
    whole = await case.play("whole.db", "both.toml")
    local_cluster(case.patch)
    spread = await case.play("spread.db", "both.toml", ray="auto")
    assert is_same and (export_rows(spread), await load_states(spread)) == (
        export_rows(whole),
        await load_states(whole),
    )


async def play_trials(case: Case, is_same: bool) -> None:
    """Check that the player knows nothing of other trials."""
    whole, tried = await case.play("whole.db"), await case.play("trials.db", trials=3)
    assert is_same
    for trial in (1, 2, 3):
        results = [row for row in export_rows(tried) if row["trial"] == trial]
        assert [row["messages"] for row in results] == [row["messages"] for row in export_rows(whole)]
    assert sorted(map(str, await load_states(tried))) == sorted(map(str, (await load_states(whole)) * 3))


def read_second_messages(run: dialoom.Run) -> list[str]:
    """Return the messages of the second conversation."""
    return [message["content"] for message in export_rows(run)[1]["messages"]]


CELLS: dict[str, Callable[[Case, bool], Awaitable[None]]] = dict(
    zip(USES, (resume, fork, rewind, resample, play_with_workers, play_on_cluster, play_trials), strict=True)
)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("player", PLAYERS)
async def test_cell(player: str, use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "tests" / "sessions" / "memories.py", tmp_path)
    (tmp_path / "ann.toml").write_text(STUDY.replace("PEOPLE", ANN))
    (tmp_path / "both.toml").write_text(STUDY.replace("PEOPLE", f"{ANN}, {BO}"))
    monkeypatch.chdir(tmp_path)
    instead = PLAYERS[player].exceptions.get(use)
    case = Case(player, tmp_path, monkeypatch)
    if not isinstance(instead, Refusal):
        await CELLS[use](case, instead is None)
        return
    with pytest.raises(DialoomError, match=re.sub(r"\\{\w+\\}", ".+", re.escape(instead.message))):
        await CELLS[use](case, True)
    if use in (restoring.WORKERS, restoring.CLUSTER):
        assert not Path("spread.db").exists()
    else:  # nothing was played, and no branch is left
        async with dialoom.open_run("whole.db").look(2) as stepper:
            assert [branch.name for branch in stepper.branches()] == ["main"]


def test_each_kind_has_a_player_and_the_page_has_both_tables() -> None:
    assert {*map(id, PLAYERS.values())} == {*map(id, PLAYER_KINDS)}
    page = (ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")
    assert kinds() in page and refusals() in page
    declared = [value for value in vars(restoring).values() if isinstance(value, Refusal)]
    assert [*restoring.REFUSALS] == declared

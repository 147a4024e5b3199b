"""Looking at a run: whatever has become of a dialogue, at once, and into a pipe."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import dialoom
from dialoom import open_run
from dialoom.runs import RunError
from tests.conftest import Command


def test_a_dialogue_that_is_under_way_is_shown_as_far_as_it_is(dialoom: Command, tmp_path: Path) -> None:
    """And one that has not begun, and one that failed, in every recipe with its own outline."""
    dialoom("run", "personalens", "--limit", 2, "--concurrency", 1, "--max-calls", 4, "-o", "run.db", code=3)
    shown = dialoom("show", "run.db", 1).stdout
    assert shown.count("\nuser\n") == 2
    assert "is not finished yet, this is how far it is; go on with: dialoom resume run.db" in shown
    line = json.loads(dialoom("show", "run.db", 1, "--json").stdout)
    assert (line["state"], line["ended_by"], len(line["messages"])) == ("pending", "", 4)
    assert "is not begun yet" in dialoom("show", "run.db", 2).stdout
    (tmp_path / "sad.py").write_text("async def reply(messages):\n    assert len(messages) < 4\n    return 'fine'\n")
    dialoom("run", "aloe", "--limit", 1, "--model", "preferred=python:sad:reply", "-o", "tree.db", code=1)
    assert "failed: python:sad:reply raised AssertionError" in dialoom("show", "tree.db", 1).stdout


def test_looking_loads_nothing_that_playing_needs(dialoom: Command, tmp_path: Path) -> None:
    """The libraries that take seconds to load are left alone, so that the answer comes at once."""
    dialoom("run", "personalens", "--limit", 1, "-o", "run.db")
    code = (
        "import sys, dialoom.cli as cli\n"
        "sys.argv = ['dialoom', 'show', 'run.db', '1']\n"
        "try: cli.main()\n"
        "except SystemExit as left: assert not left.code\n"
        "print(sorted({'langgraph', 'litellm', 'pandas', 'sqlite_utils'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n"), done.stdout[-300:]


def test_a_table_keeps_its_name_after_a_second_judging(tmp_path: Path) -> None:
    """It is given for each set then; a set's own table has the set's name as well."""
    run = dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 2})
    assert [table.name for table in run.report(tables=["scores"]).tables] == ["scores"]
    run.judge("offline/generic", name="second")
    assert [table.name for table in run.report(tables=["scores"]).tables] == [
        "scores-run",
        "scores-second",
        "scores-panel",
    ]
    assert [table.name for table in run.report(tables=["scores-second"]).tables] == ["scores-second"]
    with pytest.raises(RunError, match="tables 'score': there are"):
        run.report(tables=["score"])


def test_an_export_goes_to_standard_output(dialoom: Command, tmp_path: Path) -> None:
    """Lines and nothing else; what is said of them goes to standard error, and what takes no pipe is refused."""
    dialoom("run", "personalens", "--limit", 2, "-o", "run.db")
    done = dialoom("export", "run.db", "-o", "-")
    assert [json.loads(line)["recipe"] for line in done.stdout.splitlines()] == ["personalens"] * 2
    assert "2 lines written to standard output" in done.stderr
    assert not (tmp_path / "-").exists()
    assert "-o: an open file" in dialoom("export", "run.db", "--as", "parquet", "-o", "-", code=2).stderr
    file = io.StringIO()
    open_run(tmp_path / "run.db").export("sft", file)
    assert len(file.getvalue().splitlines()) == 2


@pytest.mark.parametrize("player", ["python:moody:assistant", "graph:moody.py:GRAPH"])
def test_what_a_player_raises_is_told_with_its_own_lines(
    dialoom: Command, players: list[str], tmp_path: Path, player: str
) -> None:
    """When it fails, in the scenario and in the ledger; nothing of dialoom's or a library's lines, and no key."""
    (tmp_path / "moody.py").write_text(
        "from langgraph.graph import START, MessagesState, StateGraph\n"
        "def look_up(key):\n"
        "    raise LookupError(f'no {key}')\n"
        "async def assistant(messages):\n"
        "    return look_up('sk-abcdefghijklmnopqrstuvwx')\n"
        "GRAPH = StateGraph(MessagesState).add_node(assistant).add_edge(START, 'assistant').compile()\n"
    )
    cast = [*players[:2], "--model", f"assistant={player}", "--no-judge"]
    told = dialoom("run", "personalens", *cast, "--limit", 1, "-o", "run.db", code=1)
    with sqlite3.connect(tmp_path / "run.db") as connection:
        ((ledger,),) = connection.execute("SELECT error FROM calls WHERE error IS NOT NULL").fetchall()
    for text in (told.stderr, dialoom("show", "run.db", 1).stdout, ledger):
        line = " ".join(text.split())
        assert f"{player} raised LookupError: no " in line
        assert "moody.py:5 in assistant: return look_up(" in line
        assert "moody.py:3 in look_up: raise LookupError(" in line
        assert "site-packages" not in line and "callables" not in line
        assert "abcdefghijklmnopqrstuvwx" not in line


def test_the_list_reads_figures_and_no_words(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """It is the same where the words are gone; what asks for lines has them."""
    dialoom("run", "personalens", *players, "--limit", 3, "-o", "run.db")
    ways: list[list[object]] = [[], ["--json"], ["--sort", "turns", "--reverse"], ["--where", "coherence > 1"]]
    listed = [dialoom("show", "run.db", *way).stdout for way in ways]
    assert all(text.count("personalens") + text.count("SD-") for text in listed)
    asked = ["show", "run.db", "--where", "lines > 2 and messages[0].role == 'user'"]
    assert dialoom(*asked).stdout == listed[0]
    with sqlite3.connect(tmp_path / "run.db") as connection:
        connection.execute("DELETE FROM kept_texts")
    assert [dialoom("show", "run.db", *way).stdout for way in ways] == listed

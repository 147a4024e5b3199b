"""What somebody said is shown, and never obeyed: by a terminal, a Markdown viewer or a spreadsheet."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from rich.progress import Progress, TextColumn

import dialoom as door
from dialoom.cli.console import HarmlessConsole
from dialoom.graphs import Table
from dialoom.runs.report import markdown, write
from dialoom.shown import cell_text, csv_cell, harmless, json_line
from tests.conftest import ROOT, Command
from tests.invented import ALARM, profile, write_release

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eback\u2066\x08[bold]x[/y] :cat: end"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
NAME = "openai/[/x]\x1b[2J"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose every player says what a terminal would obey, about a person whose names do, and that fails so."""
    folder = tmp_path_factory.mktemp("hostile")
    person = profile()
    person["affinities"]["Alarm"]["Alarm Sound"] = EVIL
    write_release(folder / "release", person, [dict(ALARM, task_id=f"SD-{EVIL}"), dict(ALARM, task_id="SD-two")])

    async def assistant(messages: list[dict[str, str]]) -> str:
        return f"{EVIL} {len(messages)}"

    async def judge(messages: list[dict[str, str]]) -> str:
        verdict = {"verdict": True} if "Was this goal reached" in messages[-1]["content"] else {"score": 3}
        return json.dumps({**verdict, "explanation": EVIL})

    calls = iter(range(10**6))

    async def user(messages: list[dict[str, str]]) -> str:
        if next(calls) == 0:
            raise ValueError(EVIL)
        return f"{EVIL} {len(messages)}" + " TERMINATE" * (len(messages) > 3)

    players = {"user": user, "assistant": assistant, "judge": judge}
    options = {"profiles": folder / "release"}
    run = door.play("personalens", path=folder / "run.db", models=players, options=options, concurrency=1)
    assert (run.status().done, run.status().failed) == (1, 1)
    with closing(sqlite3.connect(run.path)) as database, database:
        config = json.loads(database.execute("SELECT value FROM run WHERE key = 'config'").fetchone()[0])
        config["models"]["user"]["model"] = NAME
        database.execute("UPDATE run SET value = ? WHERE key = 'config'", (json.dumps(config),))
    return run.path


def test_no_command_lets_a_terminal_obey_what_was_said(dialoom: Command, hostile: Path, tmp_path: Path) -> None:
    """Replies, explanations, errors, ids and models' names; in JSON they are there in whole."""
    pool = tmp_path / "pool.jsonl"
    pool.write_text("".join(json.dumps(f"{EVIL} number {n}") + "\n" for n in range(3)))
    (tmp_path / "script").write_text("next\nlook state\n")
    for command in (
        ["status", hostile],
        ["show", hostile],
        ["show", hostile, 1],
        ["show", hostile, 2],
        ["report", hostile],
        ["report", hostile, "--cost"],
        ["personas", "check", pool],
        ["status", hostile, "--json"],
        ["show", hostile, 1, "--json"],
        ["show", hostile, 2, "--json"],
        ["personas", "check", pool, "--json"],
    ):
        done = dialoom(*command)
        assert not OBEYED.search(done.stdout + done.stderr), command
        assert done.stdout
        if "--json" in command:
            assert json.loads(done.stdout)
    shown = dialoom("show", hostile, 1).stdout + dialoom("show", hostile, 2).stdout
    assert shown.count("[bold]x[/y] :cat: end") >= 4
    assert "openai/[/x]" in dialoom("status", hostile).stdout
    told = [json.loads(dialoom("show", hostile, number, "--json").stdout) for number in (1, 2)]
    assert any(EVIL in line["content"] for each in told for line in each["messages"])


def test_a_running_run_shows_any_models_name() -> None:
    """Rich takes brackets for markup and dies of those that close nothing."""
    out = io.StringIO()
    console = HarmlessConsole(file=out, force_terminal=True, width=100)
    with Progress(TextColumn("{task.fields[figures]}", markup=False), console=console) as bar:
        bar.add_task("", figures=f"{NAME} 1/2 in flight")
    assert "openai/[/x]\N{REPLACEMENT CHARACTER}[2J" in out.getvalue()


def test_everything_is_printed_through_the_terminals_own_modules() -> None:
    """So that what one command shows harmlessly, all do."""
    found = []
    for path in sorted((ROOT / "runs" / "cli").rglob("*.py")):
        if path.name in ("terminal.py", "console.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            if name in ("print", "typer.echo", "Console", "typer.secho", "traceback.print_exc", "sys.stdout.write"):
                found.append(f"{path.name}:{node.lineno}: {name}")
            if name == "TextColumn" and "markup=False" not in ast.unparse(node):
                found.append(f"{path.name}:{node.lineno}: {name} with markup")
    assert found == []


def test_a_page_starts_no_script_and_a_table_no_formula(tmp_path: Path) -> None:
    """Markdown cells and titles are texts; a CSV cell that begins a formula has an apostrophe before it."""
    said = ["<script>alert(1)</script>", '=HYPERLINK("http://x")', "@SUM(1)", "![x](http://x/y.png)", "a|b\x1b[2J"]
    table = Table("../../evil", f"T {said[0]}", ["a", said[0]], [[each, -1] for each in said], [said[3]])
    page = markdown([table], said[0])
    assert "<script" not in page
    assert "](" not in page
    assert not OBEYED.search(page)
    written = write([table], tmp_path / "report", "t")
    assert {path.parent for path in written} == {tmp_path / "report"}
    (table_file,) = (tmp_path / "report").glob("*.csv")
    with table_file.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert [row[0][0] for row in rows[1:]] == ["<", "'", "'", "!", "a"]
    assert {row[1] for row in rows[1:]} == {"-1"}
    assert [cell_text(str(csv_cell(each))) for each in said] == said


def test_what_is_shown_is_otherwise_what_was_said() -> None:
    """Other scripts, joined emoji and line ends stay; JSON gives back every character."""
    kept = "na\u00efve \u0645\u0631\u062d\u0628\u0627 \U0001f468\u200d\U0001f469 tab\tend\n"
    assert harmless(kept) == kept
    assert harmless("a\r\nb") == "a\nb"
    value = {"text": f"{EVIL}{kept}"}
    assert json.loads(json_line(value)) == value
    assert not OBEYED.search(json_line(value))

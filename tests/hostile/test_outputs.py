"""Output files and shown text: no file is overwritten or escapes its folder, no control character is shown."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from rich.progress import Progress, TextColumn

import dialoom as door
from dialoom import DialoomError
from dialoom.cli.console import SafeConsole
from dialoom.graphs import Table
from dialoom.outputs import folder_output, make_file_name, text_output
from dialoom.runs.report import Report, render_markdown
from dialoom.text import escape_csv_cell, format_safe_json, sanitize, unescape_csv_cell
from tests.conftest import ROOT, Command, read_jsonl
from tests.invented import ALARM, profile, write_release
from tests.processes import COMMAND, CommandProcess

OPENERS = {
    "dialoom/outputs.py",
    "dialoom/cli/stepping/editing.py",  # a temporary folder
    "runs/workers/worker.py",  # a temporary folder
}
"""The modules that open files for writing, besides those that open databases."""


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of the run that a test may change."""
    return Path(shutil.copy(finished, tmp_path / "run.db"))


def test_no_command_overwrites_a_run(dialoom: Command, run: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(run, tmp_path / "other.db"))
    (tmp_path / "link.db").symlink_to(run)
    (tmp_path / "hard.db").hardlink_to(run)
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "report.md").hardlink_to(other)
    (tmp_path / "other.jsonl.card.md").hardlink_to(other)
    pools = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    for pool in pools:
        pool.write_text("".join(json.dumps(f"A person who likes {pool.stem} {n}.") + "\n" for n in range(3)))
    (tmp_path / "script").write_text("save script\n")
    (tmp_path / "script2").write_text("save run.db\n")
    before = {path: path.read_bytes() for path in (run, other, *pools, tmp_path / "script")}
    for command in (
        ["export", run, "-o", "run.db"],
        ["export", run, "-o", "link.db"],
        ["export", run, "-o", "hard.db"],
        ["export", run, "-o", other],
        ["export", run, "--format", "sft", "-o", "other.jsonl"],
        ["report", run, "-o", folder],
        ["agree", run, "--sample", 2, "-o", other],
        ["personas", "combine", "a.jsonl", "b.jsonl", "-n", 2, "-o", "a.jsonl"],
        ["personas", "combine", "a.jsonl", "b.jsonl", "-n", 2, "-o", "run.db"],
        ["step", run, 1, "--script", "script"],
        ["step", run, 1, "--script", "script2"],
    ):
        errors = dialoom(*command, code=2).stderr
        assert "overwritten" in errors or "may contain people's labels" in errors
    assert {path: path.read_bytes() for path in before} == before
    with pytest.raises(DialoomError, match="overwritten"):
        door.open_run(run).export("dialogues", run)
    assert not list(tmp_path.glob("**/*.partial"))


def test_wal_file_of_a_run_is_part_of_it(run: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.db-wal"
    log.write_bytes(b"")
    with pytest.raises(DialoomError, match="overwritten"):
        door.open_run(run).export("dialogues", log)


def test_concurrent_writers_of_one_file_each_write_it_whole(tmp_path: Path) -> None:
    target = tmp_path / "set.jsonl"

    def write(number: int) -> None:
        with text_output(target) as file:
            for _ in range(2000):
                file.write(f"{number}\n")
                if number % 3 == 0:
                    file.flush()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    lines = target.read_text().splitlines()
    assert len(lines) == 2000
    assert len(set(lines)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["set.jsonl"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from dialoom.outputs import folder_output, text_output
folder = Path(sys.argv[1])
with text_output(folder / "a.md") as file, folder_output(folder / "set") as made:
    file.write("half")
    with made.text("in", "x.json") as inner:
        inner.write("{")
        inner.flush()
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_temporary_file_of_a_killed_writer_is_removed_by_the_next(
    dialoom: Command, finished: Path, tmp_path: Path
) -> None:
    (folder := tmp_path / "results").mkdir()
    with CommandProcess(tmp_path, folder, script=_KILLED) as process:
        process.communicate()
    assert len(list(folder.glob(".dialoom-*.partial"))) == 2
    with text_output(folder / "b.md") as file:
        file.write("whole")
        assert len(list(folder.iterdir())) == 1
        with folder_output(folder / "more") as other, other.text("y.json") as inner:
            inner.write("{}")
            dialoom("report", finished, "-o", folder / "report")
    assert (folder / "b.md").read_text() == "whole"
    assert (folder / "more" / "y.json").read_text() == "{}"
    assert (folder / "report" / "report.md").exists()
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("arguments", [("export", "-o", "-"), ("status",)])
def test_full_disk_behind_standard_output_is_one_sentence(
    finished: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    redirected = f'import os\nos.dup2(os.open("/dev/full", os.O_WRONLY), 1)\n{COMMAND}'
    command, *options = arguments
    with CommandProcess(tmp_path, command, finished, *options, script=redirected) as process:
        _, errors = process.communicate()
    message = "dialoom: standard output cannot be written: No space left on device\n"
    assert (process.returncode, errors) == (2, message)


def test_second_export_is_added_and_a_repeated_one_changes_nothing(finished: Path, tmp_path: Path) -> None:
    run = door.open_run(finished)
    run.export("personalens", tmp_path / "set")
    dialogues = {path: path.read_bytes() for path in (tmp_path / "set").rglob("*.json")}
    assert len(dialogues) == 2
    for _ in range(2):
        run.export("evaluations", tmp_path / "set")
        run.export("personalens", tmp_path / "set")
    assert {path: path.read_bytes() for path in (tmp_path / "set").rglob("*.json")} == dialogues
    evaluations = list((tmp_path / "set").rglob("*.txt"))
    assert evaluations
    first, *others = dialogues
    first.write_text("mine")
    for path in (*others, *evaluations):
        path.unlink()
    with pytest.raises(DialoomError, match="exists with other content"):
        run.export("personalens", tmp_path / "set")
    assert [path for path in (tmp_path / "set").rglob("*") if path.is_file()] == [first]


def test_files_are_opened_for_writing_in_one_module_only() -> None:
    found = []
    for folder in ("dialoom", "runs", "graphs", "roles", "prompts", "personas"):
        for path in sorted((ROOT / folder).glob("*.py" if folder == "dialoom" else "**/*.py")):
            name = str(path.relative_to(ROOT))
            if name not in OPENERS:
                found += [f"{name}:{line}" for line in _writes(ast.parse(path.read_text(encoding="utf-8")))]
    assert found == []


def _writes(tree: ast.Module) -> list[int]:
    """Return the line numbers of calls that write, rename or create files."""
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        constants = [each.value for each in node.args if isinstance(each, ast.Constant)]
        constants += [each.value.value for each in node.keywords if isinstance(each.value, ast.Constant)]
        is_writing = name == "open" and any(isinstance(each, str) and set(each) & set("wax") for each in constants)
        if is_writing or name in ("write_text", "write_bytes", "rename", "mkdir", "copyfile", "NamedTemporaryFile"):
            lines.append(node.lineno)
    return lines


@pytest.mark.parametrize(
    "id_",
    ["../../../../X", "..", "", "/etc/passwd", "a\0b", "\ud83d", "n" * 250, "CON", "a/b", "C:\\x", ".ssh", "u\u202ev"],
)
def test_no_id_leads_out_of_the_folder(tmp_path: Path, id_: str) -> None:
    with folder_output(tmp_path / "set") as folder:
        for names in ((id_, "x.json"), ("y", f"{id_}_dialogue.json"), ("z", make_file_name(id_))):
            with folder.text(*names) as file:
                file.write("{}")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {path.relative_to(tmp_path / "set").parts[0] for path in files} == {make_file_name(id_), "y", "z"}
    assert len({make_file_name(each) for each in (id_, id_.replace("/", "_"), "plain", "../plain")}) == 3 + ("/" in id_)
    assert make_file_name("SD-Alarm-task-1_dialogue.json") == "SD-Alarm-task-1_dialogue.json"


def test_hostile_release_is_exported_into_its_folder(tmp_path: Path) -> None:
    person, task = profile(), dict(ALARM, task_id="../../x")
    person["demographics"]["user_id"] = "../../../../X"
    write_release(tmp_path / "release", person, [task])
    run = door.play("personalens", path=tmp_path / "r.db", options={"profiles": tmp_path / "release"})
    before = {*tmp_path.iterdir()}
    assert run.export("personalens", tmp_path / "in" / "set") == {"all": 1}
    assert {*tmp_path.iterdir()} - before == {tmp_path / "in"}
    (file,) = (path for path in (tmp_path / "in").rglob("*.json"))
    assert file.is_relative_to(tmp_path / "in" / "set" / "output" / "dialogue")
    content = json.loads(file.read_text())
    assert (content["user_id"], content["task_id"]) == ("../../../../X", "../../x")
    run.export("dialogues", tmp_path / "d.jsonl")
    assert read_jsonl(tmp_path / "d.jsonl")[0]["ended_by"]


EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eback\u2066\x08[bold]x[/y] :cat: end"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
NAME = "openai/[/x]\x1b[2J"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with control characters in every reply, in a person's data, in a model's name and in an error."""
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


def test_no_command_prints_control_characters(dialoom: Command, hostile: Path, tmp_path: Path) -> None:
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
        assert not CONTROL.search(done.stdout + done.stderr), command
        assert done.stdout
        if "--json" in command:
            assert json.loads(done.stdout)
    shown = dialoom("show", hostile, 1).stdout + dialoom("show", hostile, 2).stdout
    assert shown.count("[bold]x[/y] :cat: end") >= 4
    assert "openai/[/x]" in dialoom("status", hostile).stdout
    outcomes = [json.loads(dialoom("show", hostile, number, "--json").stdout) for number in (1, 2)]
    assert any(EVIL in line["content"] for each in outcomes for line in each["messages"])


def test_progress_shows_any_models_name() -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, force_terminal=True, width=100)
    with Progress(TextColumn("{task.fields[figures]}", markup=False), console=console) as bar:
        bar.add_task("", figures=f"{NAME} 1/2 in flight")
    assert "openai/[/x]\N{REPLACEMENT CHARACTER}[2J" in out.getvalue()


def test_everything_is_printed_through_the_terminal_modules() -> None:
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


def test_page_has_no_script_and_table_no_formula(tmp_path: Path) -> None:
    texts = ["<script>alert(1)</script>", '=HYPERLINK("http://x")', "@SUM(1)", "![x](http://x/y.png)", "a|b\x1b[2J"]
    table = Table("../../evil", f"T {texts[0]}", ["a", texts[0]], [[each, -1] for each in texts], [texts[3]])
    page = render_markdown([table], texts[0])
    assert "<script" not in page
    assert "](" not in page
    assert not CONTROL.search(page)
    written = Report("t", [table], ()).write(tmp_path / "report")
    assert {path.parent for path in written} == {tmp_path / "report"}
    (table_file,) = (tmp_path / "report").glob("*.csv")
    with table_file.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert [row[0][0] for row in rows[1:]] == ["<", "'", "'", "!", "a"]
    assert {row[1] for row in rows[1:]} == {"-1"}
    assert [unescape_csv_cell(str(escape_csv_cell(each))) for each in texts] == texts


def test_ordinary_text_is_shown_unchanged() -> None:
    text = "na\u00efve \u0645\u0631\u062d\u0628\u0627 \U0001f468\u200d\U0001f469 tab\tend\n"
    assert sanitize(text) == text
    assert sanitize("a\r\nb") == "a\nb"
    value = {"text": f"{EVIL}{text}"}
    assert json.loads(format_safe_json(value)) == value
    assert not CONTROL.search(format_safe_json(value))

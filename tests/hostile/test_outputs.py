"""What is written takes nothing's place that it should not take, and stays where it belongs."""

from __future__ import annotations

import ast
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import dialoom as door
from dialoom.outputs import OutputError, file_name, folder_output, text_output
from tests.conftest import ROOT, Command, lines_of
from tests.invented import ALARM, profile, write_release
from tests.processes import Started

OPENERS = {
    "dialoom/outputs.py",
    "dialoom/cli/stepping/editing.py",  # a folder of its own that is gone afterwards
    "runs/workers/worker.py",  # the folder of its own files, which goes with them
}
"""The modules that open files to write, beside those that open databases."""


@pytest.fixture
def run(kept: Path, tmp_path: Path) -> Path:
    """A run that a test may lose."""
    return Path(shutil.copy(kept, tmp_path / "run.db"))


def test_no_command_writes_over_a_run(dialoom: Command, run: Path, tmp_path: Path) -> None:
    """Nor over any other database, whatever way leads to it, nor over the files that it reads."""
    other = Path(shutil.copy(run, tmp_path / "other.db"))
    (tmp_path / "link.db").symlink_to(run)
    (tmp_path / "hard.db").hardlink_to(run)
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "report.md").hardlink_to(other)
    (tmp_path / "other.card.md").hardlink_to(other)
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
        said = dialoom(*command, code=2).stderr
        assert "written over" in said or "may hold people's labels" in said
    assert {path: path.read_bytes() for path in before} == before
    with pytest.raises(OutputError, match="written over"):
        door.open_run(run).export("dialogues", run)
    assert not list(tmp_path.glob("**/*.partial"))


def test_what_sqlite_keeps_beside_a_run_is_part_of_it(run: Path, tmp_path: Path) -> None:
    """A log that was written over would be played into the run."""
    log = tmp_path / "run.db-wal"
    log.write_bytes(b"")
    with pytest.raises(OutputError, match="written over"):
        door.open_run(run).export("dialogues", log)


def test_many_may_write_one_file_at_once(tmp_path: Path) -> None:
    """Each writes all of its own, and the last one stays."""
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


def test_what_a_killed_writer_leaves_is_removed_by_the_next_one(dialoom: Command, kept: Path, tmp_path: Path) -> None:
    """Never what somebody alive is writing; also in a folder of results."""
    (folder := tmp_path / "results").mkdir()
    with Started(tmp_path, folder, script=_KILLED) as process:
        process.communicate()
    assert len(list(folder.glob(".dialoom-*.partial"))) == 2
    with text_output(folder / "b.md") as file:
        file.write("whole")
        assert len(list(folder.iterdir())) == 1
        with folder_output(folder / "more") as other, other.text("y.json") as inner:
            inner.write("{}")
            dialoom("report", kept, "-o", folder)
    assert (folder / "b.md").read_text() == "whole"
    assert (folder / "more" / "y.json").read_text() == "{}"
    assert (folder / "report.md").exists()
    assert not list(folder.glob(".*"))


def test_a_second_export_is_added_and_a_repeated_one_changes_nothing(kept: Path, tmp_path: Path) -> None:
    """A file with other content is no repetition: nothing is added then."""
    run = door.open_run(kept)
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
    with pytest.raises(OutputError, match="is there with other content"):
        run.export("personalens", tmp_path / "set")
    assert [path for path in (tmp_path / "set").rglob("*") if path.is_file()] == [first]


def test_nothing_is_opened_to_write_anywhere_else() -> None:
    """So what is refused in one place is refused by every command; databases have their own modules."""
    found = []
    for folder in ("dialoom", "runs", "graphs", "roles", "prompts", "personas"):
        for path in sorted((ROOT / folder).glob("*.py" if folder == "dialoom" else "**/*.py")):
            name = str(path.relative_to(ROOT))
            if name not in OPENERS:
                found += [f"{name}:{line}" for line in _writes(ast.parse(path.read_text(encoding="utf-8")))]
    assert found == []


def _writes(tree: ast.Module) -> list[int]:
    """The lines of calls that write, rename or make files."""
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
    """It is one name there, which a file system takes, and another one than any other id's."""
    with folder_output(tmp_path / "set") as folder:
        for names in ((id_, "x.json"), ("y", f"{id_}_dialogue.json"), ("z", file_name(id_))):
            with folder.text(*names) as file:
                file.write("{}")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 3
    assert {path.relative_to(tmp_path / "set").parts[0] for path in files} == {file_name(id_), "y", "z"}
    assert len({file_name(each) for each in (id_, id_.replace("/", "_"), "plain", "../plain")}) == 3 + ("/" in id_)
    assert file_name("SD-Alarm-task-1_dialogue.json") == "SD-Alarm-task-1_dialogue.json"


def test_a_hostile_release_is_exported_into_its_folder(tmp_path: Path) -> None:
    """Its ids are as they were in the files' content."""
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
    assert lines_of(tmp_path / "d.jsonl")[0]["ended_by"]

"""The commands as a user types them: what they print, write and exit with."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import dialoom
from dialoom import DialoomError, __version__, open_run
from tests.conftest import Command, MadeOnce, read_jsonl, replace_model, write_quick_players
from tests.invented import write_release
from tests.processes import CommandProcess


@pytest.fixture
def run(made_once: MadeOnce) -> Path:
    """Return a finished run: two tasks in two settings."""
    return made_once(_run) / "run.db"


def _run(dialoom: Command, folder: Path) -> None:
    write_release(folder / "release")
    plan = ["run", "personalens", "--profiles", "release", *write_quick_players(folder), "--seed", 3]
    done = dialoom(*plan, "--setting", "base", "--setting", "I", "-o", "run.db")
    assert "planned 4 scenarios" in done.stdout
    assert "1 empty affinity left out" in done.stdout


def test_version(dialoom: Command) -> None:
    assert dialoom("--version").stdout == f"dialoom {__version__}\n"


def test_status_json_has_the_documented_keys(dialoom: Command, run: Path) -> None:
    status = json.loads(dialoom("status", run, "--json").stdout)
    assert status["recipe"] == "personalens"
    assert status["scenarios"] == {"total": 4, "done": 4, "failed": 0, "pending": 0}
    assert set(status["roles"]) == {"user", "assistant", "judge"}
    assert status["calls"] == sum(role["calls"] for role in status["roles"].values()) == 4 * (3 + 3 + 6)
    assert status["cost"] is None, "the price of a Python callable is unknown, which is not 0"
    assert status["tokens"] == {"input": None, "output": None}
    assert status["is_being_written"] is False
    assert "4 done" in dialoom("status", run).stdout


def test_figures_are_not_broken_in_a_narrow_terminal(dialoom: Command, tmp_path: Path) -> None:
    terminal = {**os.environ, "FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "80"}
    named = ["--model", "judge=python:judges_with_a_long_name:a_judge_with_a_very_long_name_that_has_to_be_broken"]
    (tmp_path / "judges_with_a_long_name.py").write_text(
        "async def a_judge_with_a_very_long_name_that_has_to_be_broken(messages):\n    return '{}'\n"
    )
    plan = ["run", "personalens", "--limit", 20, *named]
    dialoom(*plan, "-o", "run.db", code=None)
    for command in (["status", "run.db"], [*plan, "--dry-run"]):
        wide, narrow = (dialoom(*command, env={**terminal, "COLUMNS": width}).stdout for width in ("300", "80"))
        rows = [line.split() for line in wide.splitlines() if line.split()[:1] in (["user"], ["assistant"], ["all"])]
        assert len(rows) == 3 and all(f" {figure} " in f"{narrow} " for row in rows for figure in row[-5:])
        assert max(map(len, (line for line in narrow.splitlines() if "─" in line))) <= 80


def test_printed_configuration_can_be_used_again(dialoom: Command, run: Path, tmp_path: Path) -> None:
    config = dialoom("status", run, "--config").stdout
    (tmp_path / "again.yaml").write_text(config)
    dialoom("run", "personalens", "--config", "again.yaml", "-o", "again.db")
    for name in ("run", "again"):
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
    assert (tmp_path / "run.jsonl").read_bytes() == (tmp_path / "again.jsonl").read_bytes()
    dialoom("run", "personalens", "--config", "again.yaml", "--setting", "S", "-o", "flags.db")
    dialoom("export", "flags.db", "-o", "flags.jsonl")
    assert {line["scenario"]["setting"] for line in read_jsonl(tmp_path / "flags.jsonl")} == {"S"}


def test_dialogues_are_exported_in_plan_order(dialoom: Command, run: Path, tmp_path: Path) -> None:
    dialoom("export", run, "--format", "dialogues", "-o", "out.jsonl")
    lines = read_jsonl(tmp_path / "out.jsonl")
    keys = {"id", "recipe", "scenario", "messages", "ended_by", "judgements", "models", "prompts", "faults"}
    assert [set(line) for line in lines] == [keys] * 4
    assert [(line["scenario"]["task"], line["scenario"]["setting"]) for line in lines] == [
        ("SD-Alarm-task-1", "base"),
        ("SD-Alarm-task-1", "I"),
        ("MD-task-1", "base"),
        ("MD-task-1", "I"),
    ]
    first = lines[0]
    assert first["scenario"]["user"] == "user7"
    assert first["scenario"]["domains"] == ["Alarm"]
    assert [message["role"] for message in first["messages"]] == ["user", "assistant"] * 3
    assert not any("TERMINATE" in message["content"] for message in first["messages"])
    assert first["ended_by"] == "user_terminated"
    scores = {(judgement["metric"], judgement["target"]): judgement for judgement in first["judgements"]}
    assert scores[("task_completion", "assistant")]["score"] is True
    assert scores[("naturalness", "user")]["score"] == 3
    assert set(first["judgements"][0]) == {"metric", "target", "turn", "score", "status", "explanation"}
    assert first["models"]["assistant"] == "python:players:assistant"
    assert "personalens/user" in first["prompts"]


def test_release_layout_and_sft_exports(dialoom: Command, run: Path, tmp_path: Path) -> None:
    dialoom("export", run, "--format", "personalens", "-o", "release-out")
    files = sorted((tmp_path / "release-out").rglob("*_dialogue.json"))
    assert len(files) == 4
    assert files[0].relative_to(tmp_path / "release-out").parts[:3] == ("output", "dialogue", "user7")
    content = json.loads(files[0].read_text())
    assert set(content) == {"user_id", "task_id", "task_description", "user_model", "assistant_model", "dialogue"}
    dialoom("export", run, "--format", "sft", "-o", "sft.jsonl")
    for line, setting in zip(read_jsonl(tmp_path / "sft.jsonl"), ["base", "I"] * 2, strict=True):
        assert set(line) == {"id", "messages"}
        assert line["messages"][0]["role"] == "system"
        assert ("<summary" in line["messages"][0]["content"]) == (setting == "I")
        assert "<affinities" not in line["messages"][0]["content"], "the assistant never sees affinities"
        assert line["messages"][-1]["role"] == "assistant"


def test_show_finds_a_scenario_by_number_id_or_prefix(dialoom: Command, run: Path) -> None:
    header, *listed = dialoom("show", run).stdout.splitlines()
    assert "personalization" in header
    assert len(listed) == 4
    id_ = listed[2].split()[-1]
    shown = [json.loads(dialoom("show", run, name, "--json").stdout) for name in ("3", id_, id_[:22])]
    assert shown[0] == shown[1] == shown[2]
    assert shown[0]["id"] == id_
    text = dialoom("show", run, 3).stdout
    assert "Line 0 of mine." in text
    assert "ended by user_terminated" in text
    assert "it is done" in text


def test_compact_shrinks_the_file_and_loses_nothing(dialoom: Command, run: Path, tmp_path: Path) -> None:
    dialoom("export", run, "-o", "before.jsonl")
    status, size = dialoom("status", run, "--json").stdout, run.stat().st_size
    assert "given back)" in dialoom("compact", run).stdout
    dialoom("export", run, "-o", "after.jsonl")
    assert (tmp_path / "before.jsonl").read_bytes() == (tmp_path / "after.jsonl").read_bytes()
    assert dialoom("status", run, "--json").stdout == status
    assert run.stat().st_size <= size
    assert "0 done, 0 failed" in dialoom("resume", run).stdout


def test_second_judging_is_stored_separately_and_compared(dialoom: Command, run: Path, tmp_path: Path) -> None:
    (tmp_path / "strict.py").write_text(
        "async def judge(messages):\n"
        "    return '{\"verdict\": false}' if 'this goal' in messages[-1]['content'] else '{\"score\": 1}'\n"
    )
    dialoom("export", run, "-o", "before.jsonl")
    dialoom("judge", run, "--model", "judge=python:strict:judge", "--name", "strict")
    dialoom("export", run, "-o", "after.jsonl")
    assert (tmp_path / "before.jsonl").read_bytes() == (tmp_path / "after.jsonl").read_bytes()
    dialoom("export", run, "--judging", "strict", "-o", "strict.jsonl")
    line = read_jsonl(tmp_path / "strict.jsonl")[0]
    assert [judgement["score"] for judgement in line["judgements"]] == [False, 1, 1, 1, 1, 1]
    assert line["models"]["judge"] == "python:strict:judge"
    report = dialoom("report", run).stdout
    assert "Judgements 'run' and 'strict' on the same dialogues" in report
    again = dialoom("judge", run, "--model", "judge=python:strict:judge", "--name", "strict")
    assert "0 done, 0 failed" in again.stdout
    refused = dialoom("judge", run, "--model", "judge=python:players:judge", "--name", "strict", code=2)
    assert "--name 'strict': the existing set with that name was made by python:strict:judge" in refused.stderr


def test_failing_assistant_fails_its_scenario_only(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """The failure is stored with its error, the exit code is 1, and the scenario can be retried."""
    write_release(tmp_path / "release")
    (tmp_path / "moody.py").write_text(
        "import os\n"
        "async def assistant(messages):\n"
        "    if len(messages) > 4 and 'Line 2' in messages[-1]['content'] and not os.path.exists('calm'):\n"
        "        raise RuntimeError('not in the mood')\n"
        "    return 'fine'\n"
    )
    cast = [*players[:2], *players[4:], "--model", "assistant=python:moody:assistant"]
    dialoom("run", "personalens", "--profiles", "release", *cast, "-o", "r.db", code=1)
    dialoom("export", "r.db", "-o", "r.jsonl")
    lines = read_jsonl(tmp_path / "r.jsonl")
    assert [line["ended_by"] for line in lines] == ["error", "error"]
    assert "not in the mood" in lines[0]["error"]
    assert len(lines[0]["messages"]) == 5, "the messages up to the failure are kept"
    dialoom("resume", "r.db", code=1)
    (tmp_path / "calm").touch()
    assert "2 failed scenarios are retried" in dialoom("resume", "r.db", "--retry-failed").stdout
    dialoom("export", "r.db", "-o", "r.jsonl")
    assert [line["ended_by"] for line in read_jsonl(tmp_path / "r.jsonl")] == ["user_terminated"] * 2


def test_every_call_is_a_row_and_each_text_is_stored_once(run: Path) -> None:
    with sqlite3.connect(run) as connection:
        connection.row_factory = sqlite3.Row
        calls = connection.execute("SELECT * FROM calls ORDER BY id").fetchall()
        texts = {row["id"]: row["content"] for row in connection.execute("SELECT * FROM texts")}
    assert len(calls) == 48
    assert len(set(texts.values())) == len(texts)
    for call in calls:
        request = [(role, texts[id_]) for role, id_ in json.loads(call["messages"])]
        assert request[0][0] == "system", "every request can be reconstructed"
        assert texts[call["reply"]]
        assert call["attempts"] == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--users", "user99"], "there is no 'user99'"),
        (["--users", "5"], "users must be from 1 to 1 (the number of people), got 5"),
        (["--tasks", "SD-Chess-task-1"], "has the task 'SD-Chess-task-1'"),
        (["--tasks", "doubles"], "'doubles' is not a task id"),
        (["--setting", "B"], "--setting must be one of "),
        (["--limit", "0"], "--limit must be at least 1, got 0"),
        (["--trials", "10001"], "--trials must be at most 10,000, got 10001"),
        (["--limit", "x"], "--limit must be a whole number, got 'x'"),
        (["--model", "referee=offline/attentive"], "unknown role 'referee'"),
        (["--model", "assistant=offline/clever"], "unknown model 'offline/clever'"),
        (["--model", "assistant=python:nowhere:f"], "module 'nowhere'"),
        (["--model", "assistant=python:players:nobody"], "no 'nobody'"),
        (["--model", "assistant=graph:none.py:g"], "no file 'none.py'"),
        (["--temperature", "user=hot"], "--temperature of user must be a number, got 'hot'"),
        (["--profiles", "nowhere"], "data/profile"),
        (["--prompts", "nowhere"], "no such folder"),
        (["--config", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_bad_options_get_one_line_and_write_nothing(
    dialoom: Command, players: list[str], tmp_path: Path, arguments: list[str], expected: str
) -> None:
    """The exit code is 2, the message names the value and the remedy, and no file is written."""
    write_release(tmp_path / "release")
    cast = replace_model(players, arguments[-1])
    done = dialoom("run", "personalens", "--profiles", "release", *cast, *arguments, "-o", "r.db", code=2)
    assert expected in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.glob("r.db*"))


@pytest.mark.parametrize("command", ["resume", "status", "show", "report"])
@pytest.mark.parametrize(
    ("content", "message"), [(None, "no run file"), (b"hello " * 99, "not a run of dialoom"), (b"", "is empty")]
)
def test_file_that_is_not_a_run_is_refused(
    dialoom: Command, tmp_path: Path, command: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "x.db").write_bytes(content)
    assert message in dialoom(command, "x.db", code=2).stderr


def test_foreign_sqlite_file_is_refused_unchanged(dialoom: Command, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    before = (tmp_path / "x.db").read_bytes()
    assert "not a run of dialoom" in dialoom("resume", "x.db", code=2).stderr
    assert (tmp_path / "x.db").read_bytes() == before


def test_existing_run_is_not_overwritten(dialoom: Command, run: Path, players: list[str]) -> None:
    before = run.read_bytes()
    done = dialoom("run", "personalens", "--profiles", "release", *players, "-o", run, code=2)
    assert "dialoom resume" in done.stderr
    assert run.read_bytes() == before


def test_unknown_names_are_refused_with_the_known_ones(dialoom: Command, run: Path) -> None:
    assert "personalens" in dialoom("run", "persona", "-o", "x.db", code=2).stderr
    assert "has no scenario 'nobody'" in dialoom("show", run, "nobody", code=2).stderr
    assert "prefix of several" in dialoom("show", run, "user7", code=2).stderr
    assert (
        "the formats are dialogues, personalens, evaluations, sharegpt, sft"
        in dialoom("export", run, "--format", "x", "-o", "x", code=2).stderr
    )
    assert "no judgements named 'x'" in dialoom("report", run, "--judging", "x", code=2).stderr
    assert "--table must be among scores, domains" in dialoom("report", run, "--table", "x", code=2).stderr


def test_full_disk_gives_one_message(players: list[str], tmp_path: Path) -> None:
    limited = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
        "from dialoom.cli import main\n"
        "main()\n"
    )
    write_release(tmp_path / "release")
    arguments = ["run", "personalens", "--profiles", "release", *players, "-o", "full.db"]
    with CommandProcess(tmp_path, *arguments, script=limited) as process:
        _, errors = process.communicate()
        assert process.returncode == 2
    assert "free disk space" in errors.lower()
    assert len(errors.strip().splitlines()) == 1
    assert not list(tmp_path.glob("full.db*"))


def test_custom_recipe_is_given_by_file_and_name(dialoom: Command) -> None:
    assert "path/to/file.py:NAME" in " ".join(dialoom("run", "--help").stdout.split())
    refused = dialoom("run", "lesson.py", "-o", "run.db", code=2)
    assert refused.stderr == "dialoom: recipe 'lesson.py' is a file; name the recipe in it: lesson.py:NAME\n"


def test_new_recipe_passes_its_test_and_is_played(dialoom: Command, tmp_path: Path) -> None:
    dialoom("new", "recipe", "web-shop")
    folder = tmp_path / "web-shop"
    assert {path.name for path in folder.iterdir()} == {"web_shop.py", "test_web_shop.py", "README.md"}
    readme = (folder / "README.md").read_text()
    assert sum(bool(line.strip()) for line in readme.splitlines()) <= 10 and "web_shop.py:RECIPE" in readme
    script = "import sys, pytest\nsys.exit(pytest.main(['-q', '-p', 'no:cacheprovider']))\n"
    with CommandProcess(folder, script=script) as tested:
        printed, _ = tested.communicate()
    assert tested.returncode == 0 and "passed" in printed, printed
    dialoom("run", "web-shop/web_shop.py:RECIPE", "-o", "run.db")
    assert "resolved %" in dialoom("report", "run.db").stdout


@pytest.mark.parametrize("name", ["Web-shop", "web_shop", "-shop", "../shop", "taken"])
def test_new_recipe_that_cannot_be_written_is_refused(dialoom: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "note.txt").write_text("mine")
    errors = dialoom("new", "recipe", "--", name, code=2).stderr
    assert ("exists already" if name == "taken" else "lower-case words") in errors
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["note.txt"]


def test_unfinished_dialogue_is_shown_up_to_its_current_state(dialoom: Command, tmp_path: Path) -> None:
    dialoom("run", "personalens", "--limit", 2, "--concurrency", 1, "--max-calls", 4, "-o", "run.db", code=3)
    shown = dialoom("show", "run.db", 1).stdout
    assert shown.count("\nuser\n") == 2
    assert "is not finished yet; its current state is shown; continue with: dialoom resume run.db" in shown
    for chosen, rest in (((), ""), (("--table", "scores"), ", so there is no table 'scores'")):
        told = dialoom("report", "run.db", *chosen, code=2).stderr
        assert told == f"dialoom: run.db has no finished scenarios yet{rest}; continue with 'dialoom resume run.db'\n"
    line = json.loads(dialoom("show", "run.db", 1, "--json").stdout)
    assert (line["state"], line["ended_by"], len(line["messages"])) == ("pending", "", 4)
    assert "is not begun yet" in dialoom("show", "run.db", 2).stdout
    (tmp_path / "sad.py").write_text("async def reply(messages):\n    assert len(messages) < 4\n    return 'fine'\n")
    dialoom("run", "aloe", "--limit", 1, "--model", "preferred=python:sad:reply", "-o", "tree.db", code=1)
    assert "failed: python:sad:reply raised AssertionError" in dialoom("show", "tree.db", 1).stdout


def test_show_imports_no_libraries_for_playing(dialoom: Command, tmp_path: Path) -> None:
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


def test_table_keeps_its_name_after_a_second_judging(tmp_path: Path) -> None:
    run = dialoom.play("personalens", path=tmp_path / "run.db", options={"limit": 2})
    assert [table.name for table in run.report(tables=["scores"]).tables] == ["scores"]
    run.judge("offline/generic", name="second")
    assert [table.name for table in run.report(tables=["scores"]).tables] == [
        "scores-run",
        "scores-second",
        "scores-panel",
    ]
    assert [table.name for table in run.report(tables=["scores-second"]).tables] == ["scores-second"]
    with pytest.raises(DialoomError, match=r"tables must be among .*, got 'score'; did you mean scores-"):
        run.report(tables=["score"])


def test_export_to_standard_output_prints_only_lines(dialoom: Command, tmp_path: Path) -> None:
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
def test_error_of_a_player_is_shown_with_its_own_lines(
    dialoom: Command, players: list[str], tmp_path: Path, player: str
) -> None:
    (tmp_path / "moody.py").write_text(
        "from langgraph.graph import START, MessagesState, StateGraph\n"
        "def look_up(key):\n"
        "    raise LookupError(f'no {key}')\n"
        "async def assistant(messages):\n"
        "    return look_up('sk-abcdefghijklmnopqrstuvwx')\n"
        "GRAPH = StateGraph(MessagesState).add_node(assistant).add_edge(START, 'assistant').compile()\n"
    )
    cast = [*players[:2], "--model", f"assistant={player}", "--no-judge"]
    done = dialoom("run", "personalens", *cast, "--limit", 1, "-o", "run.db", code=1)
    with sqlite3.connect(tmp_path / "run.db") as connection:
        ((ledger,),) = connection.execute("SELECT error FROM calls WHERE error IS NOT NULL").fetchall()
    for text in (done.stderr, dialoom("show", "run.db", 1).stdout, ledger):
        line = " ".join(text.split())
        assert f"{player} raised LookupError: no " in line
        assert "moody.py:5 in assistant: return look_up(" in line
        assert "moody.py:3 in look_up: raise LookupError(" in line
        assert "site-packages" not in line and "callables" not in line
        assert "abcdefghijklmnopqrstuvwx" not in line


def test_list_of_scenarios_reads_no_texts(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    dialoom("run", "personalens", *players, "--limit", 3, "-o", "run.db")
    variants: list[list[object]] = [[], ["--json"], ["--sort", "turns", "--reverse"], ["--where", "coherence > 1"]]
    listed = [dialoom("show", "run.db", *options).stdout for options in variants]
    assert all(text.count("personalens") + text.count("SD-") for text in listed)
    assert " naturalness.assistant naturalness.user " in listed[0].splitlines()[0]
    exported = [json.loads(line) for line in dialoom("export", "run.db", "-o", "-").stdout.splitlines()]
    for line, episode in zip(listed[1].splitlines(), exported, strict=True):
        scores = json.loads(line)["scores"]
        for each in episode["judgements"]:
            if each["turn"] is None and each["metric"] in {"naturalness", "coherence"}:
                assert scores[f"{each['metric']}.{each['target']}"] == each["score"]
    asked = ["show", "run.db", "--where", "lines > 2 and messages[0].role == 'user'"]
    assert dialoom(*asked).stdout == listed[0]
    with sqlite3.connect(tmp_path / "run.db") as connection:
        connection.execute("DELETE FROM kept_texts")
    assert [dialoom("show", "run.db", *options).stdout for options in variants] == listed


def test_the_next_command_after_a_new_study_can_be_copied(dialoom: Command) -> None:
    last = dialoom("new", "study", "my shop").stdout.splitlines()[-1]
    assert last == "next: dialoom run 'my shop/study.toml' -o my-shop.db"


def test_a_file_in_place_of_a_module_is_refused_with_the_module(dialoom: Command) -> None:
    arguments = ["run", "personalens", "--model", "assistant=python:my/agent.py:reply", "-o", "run.db"]
    assert "give the module's name instead of its file: python:my.agent:reply" in dialoom(*arguments, code=2).stderr


def test_a_new_study_runs_offline(dialoom: Command, tmp_path: Path) -> None:
    *files, last = dialoom("new", "study", "shop").stdout.splitlines()
    assert files == ["shop/study.toml", "shop/README.md", "shop/people.csv"]
    assert last == "next: dialoom run shop/study.toml -o shop.db"
    dialoom("run", "shop/study.toml", "-o", "run.db")
    assert "gave_number %" in dialoom("report", "run.db").stdout
    assert sum(bool(line.strip()) for line in (tmp_path / "shop" / "README.md").read_text().splitlines()) <= 10


@pytest.mark.parametrize(
    ("content", "lines", "count", "found"),
    [
        (
            "email;style;Goal\na@x;brief;a kettle\nb@x;wordy;an address\n",
            ['id = "email"', 'portrait = ["style"]'],
            2,
            "email, style, Goal; id: email; goal: Goal; portrait: style",
        ),
        (
            "name,age\nAda,34\nAda,35\n",
            ['portrait = ["name", "age"]', "{{ task.goal }}"],
            4,
            "name, age; id: none; goal: none, so the study's tasks are used; portrait: name, age",
        ),
        (
            "Name;age\nAda;34\nBo;35\n",
            ['id = "Name"', 'portrait = ["Name", "age"]'],
            4,
            "Name, age; id: Name; goal: none, so the study's tasks are used; portrait: Name, age",
        ),
    ],
)
def test_a_new_study_is_filled_in_from_a_file(
    dialoom: Command, tmp_path: Path, content: str, lines: list[str], count: int, found: str
) -> None:
    (tmp_path / "my people.csv").write_text(content)
    output = dialoom("new", "study", "my/shop", "--from", "my people.csv").stdout
    assert output.startswith(f"my people.csv: 2 people; columns: {found}\n")
    assert output.endswith("next: dialoom run my/shop/study.toml -o shop.db\n")
    text = (tmp_path / "my" / "shop" / "study.toml").read_text()
    assert all(line in text for line in ['file = "../../my people.csv"', *lines])
    output = dialoom("run", "my/shop/study.toml", "-o", "run.db").stdout
    assert f"{count} done, 0 failed" in output

"""`dialoom step` and `dialoom replay` without a terminal: with scripts, pipes and JSON output."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dialoom.runs.report.cost import cost_table
from dialoom.runs.store import RunStore
from tests.conftest import ROOT, Command, MadeOnce, read_jsonl, write_quick_players
from tests.processes import CommandProcess

Stepped = Callable[..., str]


@pytest.fixture
def run(dialoom: Command, made_once: MadeOnce) -> Command:
    """Make `run.db`, a finished run of two dialogues; return the command."""
    made_once(_run)
    return dialoom


def _run(dialoom: Command, folder: Path) -> None:
    dialoom("run", "personalens", "--limit", 2, *write_quick_players(folder), "--seed", 3, "-o", "run.db")


@pytest.fixture
def stepped(run: Command, tmp_path: Path) -> Stepped:
    """Return a function that runs lines on the run's first scenario, or as given, and returns the output."""

    def play(*lines: str, arguments: tuple[object, ...] = ("run.db", 1), code: int = 0) -> str:
        (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        done = run("step", *arguments, "--script", "lines.txt", code=code)
        return done.stdout if code == 0 else done.stderr

    return play


def answers(text: str) -> list[dict[str, Any]]:
    """Return the objects of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


def calls_in(path: Path) -> int:
    """Return the number of answered calls in a run file."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM calls WHERE reply IS NOT NULL").fetchone()[0])


EVERY = [
    ("where", "main 8 · turn 3"),
    ("back 2", "main 6 · turn 3 · user ran"),
    ("forward", "main 7 · turn 3 · assistant ran"),
    ("goto turn 2", "main 4 · turn 2 · user ran"),
    ("history", "(main)"),
    ("transcript", "user: Line 1 of mine."),
    ("calls", "user: <instruction>"),
    ("state messages[0].content", "Line 0 of mine."),
    ("prompt", "assistant is called by assistant"),
    ("next", " · turn 2 · assistant ran"),
    ("set messages[-1].content Of course!", '"Reply to: Line 1 of mine." -> "Of course!"'),
    ("say user Rather by train.", "user: Rather by train."),
    ("break judge", "breakpoint 1: judge"),
    ("breaks", "1  judge"),
    ("until turn 3", " · turn 3 · assistant ran"),
    ("continue", "next: judge_"),
    ("clear 1", "cleared: judge"),
    ("model judge offline/attentive", "judge is now played by offline/attentive on b1"),
    ("continue", "the end: no further steps"),
    ("promote", "now comes from b1 with 6 judgements"),
    ("fork other", "other "),
    ("resample", "on other: new replies are requested from now on"),
    ("switch main", "main 8 · turn 3"),
    ("forks", "b1 (the outcome)"),
    ("diff b1", "in common"),
    ("save case.json", "'dialoom replay case.json' replays them"),
    ("full on", "stops show everything"),
    ("help say", "play the next step with this text"),
    ("quit", ""),
]
KEYS = {
    "next": "n", "continue": "c", "until": "u", "break": "b", "breaks": "B", "clear": "x", "back": "<", "forward": ">",
    "goto": "g", "history": "h", "where": ".", "transcript": "t", "calls": "i", "state": "s", "set": "e", "say": "y",
    "prompt": "p", "model": "m", "resample": "r", "fork": "f", "switch": "w", "forks": "F", "diff": "d", "promote": "P",
    "save": "S", "full": "v", "help": "?", "quit": "q",
}  # fmt: skip


def test_recorded_replies_of_changed_code_are_announced(run: Command, tmp_path: Path) -> None:
    """Recorded replies are used until new ones are requested, as the notice says."""
    players = tmp_path / "players.py"
    players.write_text(players.read_text().replace("Reply to: ", "New reply to: "))
    done = run("step", "run.db", 1, input="goto turn 2\nfork fixed\nnext\ngoto 4\nresample\nnext\n")
    notice = "run.db: recorded replies of the old players.py are used; 'resample' requests replies from the new code"
    assert notice in done.stderr.splitlines()
    before, after = done.stdout.split("> resample")
    assert "New reply to: " not in before and "New reply to: " in after


@pytest.mark.parametrize("form", ["name", "key"])
def test_every_step_command_works_in_a_script(stepped: Stepped, tmp_path: Path, form: str) -> None:
    lines = [line if form == "name" else " ".join([KEYS[line.split()[0]], *line.split()[1:]]) for line, _ in EVERY]
    shown = re.split(r"^[\w-]+> ", stepped(*lines, "not reached"), flags=re.MULTILINE)
    assert "not reached" not in "".join(shown)
    for line, (_, expected), answer in zip(lines, EVERY, shown[1:], strict=True):
        assert answer.startswith(f"{line}\n")
        assert expected in answer
    assert {line.split()[0] for line, _ in EVERY} == set(KEYS)
    assert json.loads((tmp_path / "case.json").read_text())["recipe"] == "personalens"


def test_help_lists_every_step_command_with_its_key(stepped: Stepped) -> None:
    (listed,) = answers(stepped("help", arguments=("run.db", 1, "--json")))
    assert {each["name"]: each["key"] for each in listed["commands"]} == KEYS
    assert len(set(KEYS.values())) == len(KEYS)


def test_each_command_is_answered_with_one_json_line(stepped: Stepped) -> None:
    lines = [line for line, _ in EVERY if line != "quit"]
    found = answers(stepped("# all of them", "", *lines, arguments=("run.db", 1, "--json")))
    assert [(each["line"], each["ok"]) for each in found] == [(line, True) for line in lines]
    by_line = {each["line"]: each for each in found}
    assert by_line["goto turn 2"]["counts"] == {"turn": 2}
    assert by_line["calls"]["calls"][0]["reply"] == "Line 1 of mine."
    assert by_line["calls"]["calls"][0]["request"][-1]["role"] == "user"
    assert [[stop["ran"] for stop in each["passed"]] for each in found if each["line"] == "continue"] == [
        [["user"]],
        [],
    ]
    assert by_line["continue"]["next"] == []
    assert {each["branch"]: each["is_outcome"] for each in by_line["forks"]["branches"]} == {
        "main": False,
        "b1": True,
        "other": False,
    }
    assert {"same": True, "left": None, "right": None} not in by_line["diff b1"]["lines"]
    assert [each["number"] for each in by_line["history"]["history"]] == list(range(9))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("leap", "there is no command 'leap'; 'help' lists them"),
        ("rewind 2", "there is no command 'rewind'; did you mean 'back'? 'help' lists them"),
        ("next", "main has no further steps; go back first"),
        ("next some", "'some' is not a valid number of steps; give a whole number of at least 1"),
        ("back 99", "there are 8 steps before this one; give a number from 1 to 8"),
        ("goto 99", "there is no checkpoint '99'; the history has 0 to 8"),
        ("goto", "goto takes a checkpoint's number ('history' shows them), or a condition as for 'until'"),
        ("goto messages[-1].content == 'a-b-c-d'", "'a-b-c-d' is not met anywhere on main; its last checkpoint is 8"),
        ("goto rounds > 3", "there is no 'rounds'; the state has messages, judgements, ended_by"),
        (
            "goto messages|length > 30",
            "messages|length > 30 is not met anywhere on main; its last checkpoint is 8, turn 3",
        ),
        ("set ended_by", "set takes a path and a value"),
        ("set ended_by 3", "ended_by is a string"),
        ("set tunrs 3", "the state has no 'tunrs'"),
        ("state messages[99]", "messages"),
        ("say user", "say takes a role and its text"),
        ("say user Hello", "main has no further steps; go back first"),
        ("say usher Hello", "there is no such role as 'usher'; the roles are user, assistant, judge"),
        ("prompt edit", "the next step calls no role"),
        ("prompt edit user now", "prompt takes 'edit' and a role or a node"),
        ("model assistant", "model takes a role and a model"),
        ("model usher offline/generic", "there is no role 'usher'; the roles are user, assistant, judge"),
        ("model user generic", "unknown model 'generic'"),
        ("fork", "fork takes a name for the new branch"),
        ("fork by/train", "'by/train' is not a valid name for a branch"),
        ("fork main", "a branch 'main' exists already"),
        ("switch", "switch takes the name of a branch"),
        ("switch b7", "there is no branch 'b7'; the branches are main"),
        ("diff b7", "there is no branch 'b7'; the branches are main"),
        ("diff a b c", "diff takes two branches"),
        ("promote b7", "there is no branch 'b7'"),
        ("save", "save takes a file"),
        ("save lines.txt", "lines.txt is an input of this command"),
        ("save players.py", "players.py exists and is not a saved case, so it is not replaced; give another file"),
        ("save missing/case.json", "missing/case.json cannot be written: there is no folder missing; create it first"),
        ("break", "is not a condition"),
        ("clear 3", "there is no breakpoint 3; 'breaks' lists them"),
        ("full maybe", "full takes on or off, got 'maybe'"),
        ("resample 3", "resample takes no further argument, got '3'"),
        ("help leap", "there is no command 'leap'"),
    ],
)
def test_failing_line_is_reported_in_one_line(stepped: Stepped, line: str, complaint: str) -> None:
    """The message names the script, the line's number and the command; the exit code is 2."""
    errors = stepped("# first", line, code=2)
    assert errors.startswith(f"lines.txt, line 2 ({line}): ")
    assert complaint in errors
    assert errors.count("\n") == 1


def test_steps_before_a_failing_line_are_kept(stepped: Stepped, run: Command) -> None:
    lines = ("goto turn 2", "fork mine", "say assistant As you like.", "leap")
    assert stepped(*lines, code=2).startswith("lines.txt, line 4 (leap): ")
    results = answers(run("step", "run.db", 1, "--script", "lines.txt", "--json", code=2).stdout)
    assert results[-1] == {"line": "fork mine", "ok": False, "error": results[-1]["error"]}
    assert "a branch 'mine' exists already" in results[-1]["error"]
    assert "assistant: As you like." in stepped("continue", "transcript", arguments=("run.db", 1, "--branch", "mine"))


def test_lines_are_read_from_a_pipe(run: Command) -> None:
    done = run("step", "run.db", "2", input="# look\n\n  back 2  \nhistory\n")
    assert "main> back 2\nmain 6" in done.stdout
    assert "(main)" in done.stdout
    marked = run("step", "run.db", "2", "--json", input="\ufeffgoto turn 2\nsay\tassistant  Well.\nforks\n").stdout
    assert [each["ok"] for each in answers(marked)] == [True] * 3
    failed = run("step", "run.db", input="leap\n", code=2)
    assert failed.stderr.startswith("standard input, line 1 (leap): there is no command 'leap'")
    assert run("step", "run.db", input="").stdout == ""


@pytest.mark.usefixtures("run")
def test_program_gets_an_answer_to_each_line(tmp_path: Path) -> None:
    with CommandProcess(tmp_path, "step", "run.db", 1, "--json") as process:
        for line, branch in (("goto turn 1", "main"), ("next", "main"), ("state ended_by", None), ("forward 99", None)):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert (answer["line"], answer.get("branch")) == (line, branch)
        process.communicate()
    assert answer["ok"] is False
    assert process.returncode == 2


def test_output_without_a_terminal_has_no_colours_or_trailing_spaces(stepped: Stepped) -> None:
    printed = stepped("goto turn 2", "say assistant Well.", "continue", "forks", "diff", "history", "help", "prompt")
    assert "\x1b" not in printed
    assert not [line for line in printed.splitlines() if line != line.rstrip()]
    assert max(len(line) for line in printed.splitlines()) <= 120


def test_ledger_distinguishes_lines_of_people_from_calls(stepped: Stepped, dialoom: Command, tmp_path: Path) -> None:
    stepped("goto turn 2", "say assistant Well.", "continue")
    rows = {(row[0], row[1]): row for row in cost_table(tmp_path / "run.db").rows}
    assert rows["assistant", "said"][2:5] == [1, 0, 0], "calls, replayed, from cache"
    assert "a person wrote" in " ".join(cost_table(tmp_path / "run.db").notes)
    models = json.loads(dialoom("status", "run.db", "--json").stdout)["roles"]["assistant"]["models"]
    assert models == ["python:players:assistant", "said"]
    assert "python:players:assistant, said" in " ".join(dialoom("status", "run.db").stdout.split())


def test_escape_sequences_of_a_model_are_removed(stepped: Stepped, tmp_path: Path) -> None:
    reply = "\x1b]0;mine\x07\x1b[2JAll is well."
    (tmp_path / "cunning.py").write_text(f"async def assistant(messages):\n    return {reply!r}\n")
    lines = (
        "goto turn 2",
        "model assistant python:cunning:assistant",
        "next",
        "calls",
        "transcript",
        "history",
        "diff",
    )
    printed = stepped(*lines)
    assert "All is well." in printed
    assert not set(printed) & {"\x1b", "\x07"}
    results = answers(stepped(*lines[:3], arguments=("run.db", 1, "--json")))
    assert results[-1]["calls"][0]["reply"] == reply


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nowhere.db",), "there is no run file nowhere.db"),
        (("players.py",), "players.py is not a run of dialoom"),
        (("run.db", 99), "run.db has no scenario '99'"),
        (("run.db", 1, "--branch", "b7"), "there is no branch 'b7'; the branches are main"),
        (("run.db", 1, "--max-calls", "few"), "few"),
        (("run.db", 1, "--script", "missing.txt"), "missing.txt: there is no such file"),
    ],
)
def test_unopenable_input_is_reported_in_one_line(run: Command, arguments: tuple[object, ...], complaint: str) -> None:
    """A missing run, scenario, branch or script gives exit code 2 and one line."""
    errors = run("step", *arguments, code=2).stderr
    assert complaint in errors
    assert errors.startswith("dialoom: ")
    assert errors.count("\n") == 1


def test_run_being_written_is_not_stepped(run: Command, tmp_path: Path) -> None:
    with RunStore(tmp_path / "run.db"):
        assert "being written by another task or thread" in run("step", "run.db", code=2).stderr
    run("step", "run.db", input="where\n")


def test_step_that_fails_at_its_provider_exits_with_one(stepped: Stepped, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text("async def assistant(messages):\n    raise RuntimeError('out of order')\n")
    errors = stepped("goto turn 2", "model assistant python:failing:assistant", "continue", code=1)
    assert errors.startswith("lines.txt, line 3 (continue): ")
    assert "out of order" in errors
    assert errors.count("\n") == 1
    mended = stepped("model assistant offline/generic", "continue", arguments=("run.db", 1, "--branch", "b1"))
    assert "b1> continue" in mended
    assert "the end: no further steps" in mended


def test_bug_in_a_recipe_is_shown_with_its_place(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs/examples/larder", tmp_path / "game")
    recipe = tmp_path / "game" / "larder.py"
    recipe.write_text(recipe.read_text().replace('utterances(state["messages"])', 'utterances(state["nothing"])'))
    step = ["step", "game/larder.py:RECIPE", "--larders", "1"]
    with CommandProcess(tmp_path, *step, "-o", "one.db") as process:
        _, shown = process.communicate("next\n")
        assert process.returncode == 1
    assert "in clerk" in shown
    assert shown.endswith("standard input, line 1 (next): unexpected KeyError: 'nothing'\n")
    with CommandProcess(tmp_path, *step, "-o", "two.db", "--json") as process:
        (result,) = answers(process.communicate("next\n")[0])
    assert (result["ok"], result["error"]) == (False, "unexpected KeyError: 'nothing'")
    recipe.write_text(recipe.read_text().replace("nothing", "sk-0123456789abcdef"))
    with CommandProcess(tmp_path, *step, "-o", "three.db") as process:
        _, shown = process.communicate("next\n")
    assert shown.endswith("unexpected KeyError: '[key]'\n") and "0123456789" not in shown


def test_script_that_uses_up_the_budget_exits_with_three(stepped: Stepped, tmp_path: Path) -> None:
    made = calls_in(tmp_path / "run.db")
    lines = ("goto turn 2", "resample", "continue")
    errors = stepped(*lines, arguments=("run.db", 1, "--max-calls", made + 2), code=3)
    assert errors.startswith("lines.txt, line 3 (continue): ")
    assert "max-calls" in errors
    assert calls_in(tmp_path / "run.db") == made + 2
    done = stepped("continue", arguments=("run.db", 1, "--branch", "b1", "--max-calls", "none"))
    assert "the end: no further steps" in done
    assert calls_in(tmp_path / "run.db") == made + 9


def test_interrupted_script_exits_with_three(run: Command, tmp_path: Path) -> None:
    (tmp_path / "pondering.py").write_text(
        "import asyncio, pathlib\n"
        "async def assistant(messages):\n"
        "    if not pathlib.Path('go').exists():\n"
        "        print('let me think', flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "    return 'There you are.'\n"
    )
    (tmp_path / "lines.txt").write_text("goto turn 2\nmodel assistant python:pondering:assistant\ncontinue\n")
    with CommandProcess(tmp_path, "step", "run.db", 1, "--script", "lines.txt") as process:
        while "let me think" not in (printed := process.stdout.readline()):
            assert printed, "the process ended early"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 3
    assert errors == "lines.txt, line 3 (continue): interrupted; recorded replies are kept\n"
    (tmp_path / "go").touch()
    assert "assistant: There you are." in run("step", "run.db", 1, "--branch", "b1", input="next\n").stdout


def test_long_answer_is_shortened_at_a_stop_and_whole_in_calls(stepped: Stepped, tmp_path: Path) -> None:
    reply = "\\n".join(f"Point {number}." for number in range(1, 41))
    (tmp_path / "wordy.py").write_text(f"async def assistant(messages):\n    return '{reply}'\n")
    printed = stepped("goto turn 2", "model assistant python:wordy:assistant", "next")
    assert "... 28 more lines: 'calls' shows all" in printed
    for line in ("calls", "full on\nwhere"):
        shown = stepped(line, arguments=("run.db", 1, "--branch", "b1")).partition("answered:\n")[2]
        assert shown.startswith("  " * (line != "calls") + "  Point 1.\n")
        assert "Point 40." in shown
        assert "more lines" not in shown


def test_replay_only_makes_no_call(stepped: Stepped, tmp_path: Path) -> None:
    made = calls_in(tmp_path / "run.db")
    only = ("run.db", 1, "--replay-only")
    assert "the end: no further steps" in stepped("goto turn 1", "continue", arguments=only)
    errors = stepped("goto turn 1", "resample", "continue", arguments=only, code=2)
    assert errors.startswith("lines.txt, line 3 (continue): ")
    assert calls_in(tmp_path / "run.db") == made


def test_new_run_is_made_for_a_recipe(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("next 3\ncontinue\nforks\n")
    plan = ["personalens", "--limit", 1, *players, "--seed", 3]
    done = dialoom("step", *plan, "--script", "lines.txt")
    assert "main 4 · turn 2 · user ran" in done.stdout
    assert "main (the outcome)" in done.stdout
    assert json.loads(dialoom("status", "step-personalens.db", "--json").stdout)["scenarios"]["done"] == 1
    dialoom("run", *plan, "-o", "run.db")
    dialoom("export", "run.db", "-o", "run.jsonl")
    dialoom("export", "step-personalens.db", "-o", "step.jsonl")
    assert read_jsonl(tmp_path / "run.jsonl") == read_jsonl(tmp_path / "step.jsonl")
    assert "step-personalens.db exists" in dialoom("step", *plan, "--script", "lines.txt", code=2).stderr


def test_prompt_is_edited_without_a_terminal(run: Command, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("goto turn 2\nprompt edit\ncalls\n")
    environment = {**os.environ, "EDITOR": "sed -i s/of.mine/of.yours/"}
    done = run("step", "run.db", 1, "--script", "lines.txt", env=environment)
    assert " · turn 2 · assistant ran" in done.stdout
    assert "asked (written by a person):" in done.stdout
    assert "Reply to: Line 1 of.yours." in done.stdout


def test_prompt_is_edited_by_an_editor_with_line_breaks_of_windows(run: Command) -> None:
    environment = {**os.environ, "EDITOR": r"sed -i -e s/of.mine/of.yours/ -e 's/$/\r/'"}
    done = run("step", "run.db", 1, "--json", input="goto turn 2\nprompt edit\n", env=environment)
    (call,) = answers(done.stdout)[-1]["calls"]
    assert call["request"][-1]["content"] == "Line 1 of.yours."
    assert not any("\r" in message["content"] for message in call["request"])


def test_only_newlines_end_the_lines_of_a_script(stepped: Stepped) -> None:
    line = "say assistant One.\u2028Two."
    found = answers(stepped("goto turn 2", line, arguments=("run.db", 1, "--json")))
    assert found[-1]["transcript"][-1]["content"] == "One.\u2028Two."


@pytest.fixture
def case(stepped: Stepped, tmp_path: Path) -> Path:
    """Return a saved case with an edited state and a line said by a person."""
    stepped("goto turn 2", "say assistant Well.", "set messages[0].content Good morning.", "continue", "save case.json")
    return tmp_path / "case.json"


def test_case_replays_the_same_path(run: Command, case: Path, tmp_path: Path) -> None:
    """The exit code is 0 and the number of steps is printed; the run is not needed."""
    (tmp_path / "run.db").unlink()
    steps = len(json.loads(case.read_text())["steps"])
    assert run("replay", "case.json").stdout.startswith(f"case.json: the same path, {steps} steps with ")
    (result,) = answers(run("replay", "case.json", "--json").stdout)
    assert (result["steps"], result["departures"]) == (steps, [])


def test_case_is_saved_over_an_earlier_one_only_with_notice(stepped: Stepped, case: Path) -> None:
    steps = len(json.loads(case.read_text())["steps"])
    first = stepped("save other.json", arguments=("run.db", 1, "--branch", "b1"))
    assert f"{steps} steps of b1 saved in other.json; 'dialoom replay" in first
    second = stepped("goto turn 1", "save other.json")
    assert "1 steps of main saved in other.json, replacing an earlier case; 'dialoom replay" in second


def test_case_of_an_unfinished_conversation_is_saved_with_notice(run: Command) -> None:
    shown = run("step", "run.db", 1, input="goto turn 2\nsave cut.json\ncontinue\nsave whole.json\n").stdout
    cut, whole = " ".join(shown.split()).partition("saved in whole.json")[::2]
    notice = "The conversation is unfinished; to save all of main, 'continue' to its end and save again"
    assert "saved in cut.json; 'dialoom replay cut.json' replays them. " + notice in cut
    assert "'dialoom replay whole.json' replays them" in whole
    assert notice not in whole
    output = run("step", "run.db", 1, "--json", input="goto turn 2\nsave other.json\ncontinue\nsave all.json\n").stdout
    assert [each["is_end"] for each in answers(output) if "file" in each] == [False, True]


def test_run_in_place_of_a_case_is_recognized(run: Command) -> None:
    errors = run("replay", "run.db", code=2).stderr
    assert errors == (
        "dialoom: run.db is a run, not a saved case; "
        "'save FILE' in 'dialoom step run.db' saves one of its conversations as a case\n"
    )


def test_say_for_a_role_that_is_not_next_names_the_next_one(stepped: Stepped) -> None:
    errors = stepped("goto turn 2", "say user Well.", code=2)
    assert (
        "the next step calls assistant, not 'user'; 'back' leads to earlier steps, and 'until user' plays on" in errors
    )


def test_changed_case_names_each_difference(run: Command, case: Path) -> None:
    """Each difference has a line, and the exit code is 1."""
    held = json.loads(case.read_text())
    first = next(step for step in held["steps"] if step["calls"])
    first["calls"][0]["request"] = "0" * 64
    held["outcome"]["ended_by"] = "boredom"
    case.write_text(json.dumps(held))
    *departures, last = run("replay", "case.json", code=1).stdout.splitlines()
    assert len(departures) == 2
    assert departures[0] == "step 1: user sent user a request that differs from the recorded one"
    assert departures[1].startswith("the outcome: ended_by")
    assert last.startswith("case.json: not the same path, ")
    (result,) = answers(run("replay", "case.json", "--json", code=1).stdout)
    assert result["departures"] == departures


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "nothing.json: there is no such file"),
        ("{", "nothing.json:1: not JSON"),
        ('{"format": "another"}', "format: Input should be 'dialoom case, version 1'"),
    ],
)
def test_file_that_is_not_a_case_is_refused(
    dialoom: Command, tmp_path: Path, content: str | None, complaint: str
) -> None:
    """The exit code is 2, and one line names the error."""
    if content is not None:
        (tmp_path / "nothing.json").write_text(content)
    errors = dialoom("replay", "nothing.json", code=2).stderr
    assert complaint in errors
    assert errors.count("\n") == 1


def test_step_help_lists_exit_codes(dialoom: Command) -> None:
    assert "3 stopped early (budget, Ctrl-C)" in " ".join(dialoom("step", "--help").stdout.split())
    assert "1 otherwise" in " ".join(dialoom("replay", "--help").stdout.split())
    of_recipe = " ".join(dialoom("step", "personalens", "--help").stdout.split())
    assert "--script" in of_recipe
    assert "--setting" in of_recipe

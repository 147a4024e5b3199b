"""`dialoom step` in a terminal."""

from __future__ import annotations

import os
import re
import shutil
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
from pexpect.fdpexpect import fdspawn

from tests.conftest import ROOT, Command, MadeOnce, read_jsonl
from tests.processes import COMMAND, TIMEOUT_SECONDS, start
from tests.server import completion, serving, silence

_KEY_INTERVAL = 0.5
"""Seconds after which a key without effect is pressed again."""

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A pseudoterminal in which `dialoom step` runs.

    Args:
        folder: The working directory.
        arguments: The arguments of `dialoom step`.
        environment: Additional environment variables.
        columns: The width of the terminal.
    """

    def __init__(self, folder: Path, arguments: tuple[object, ...], environment: dict[str, str], columns: int) -> None:
        bare = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        own, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (50, columns))
        self.process = start(
            folder,
            ["step", *map(str, arguments)],
            COMMAND,
            {**bare, "TERM": "xterm", "INPUTRC": os.devnull, **environment},
            (theirs, theirs, theirs),
            has_terminal=True,
        )
        os.close(theirs)
        self.child: fdspawn[str] = fdspawn(own, encoding="utf-8", timeout=TIMEOUT_SECONDS)
        self.child.delaybeforesend = None
        self.raw = ""

    def shown(self, branch: str) -> str:
        """Return the output up to a branch's prompt, without colours: the answer to the last line typed."""
        self.child.expect(_prompt(branch))
        return self._before()

    def _before(self) -> str:
        self.raw = self.child.before or ""
        return _COLOURS.sub("", self.raw).replace("\r\n", "\n")

    def tell(self, line: str, branch: str) -> str:
        """Type a line; return the output up to the next prompt, that of the given branch."""
        self.child.sendline(line)
        return self.shown(branch)

    def interrupt_typing(self, text: str, branch: str) -> str:
        """Type a part of a line, then press Ctrl-C until the prompt returns; return the output before it.

        Python checks for signals while it waits for a key, not while it reads one: a Ctrl-C too soon after a key has no
        effect before the next key.
        """
        self.child.send(text)
        self.child.expect_exact(text)
        for _ in range(int(TIMEOUT_SECONDS / _KEY_INTERVAL)):
            self.press("C")
            if self.child.expect([_prompt(branch), pexpect.TIMEOUT], timeout=_KEY_INTERVAL) == 0:
                return self._before()
        raise AssertionError("Ctrl-C has no effect")

    def left(self) -> int:
        """Wait for the end of the process and return its exit code."""
        self.child.expect(pexpect.EOF)
        self.process.join()
        assert isinstance(self.process.exitcode, int)
        assert self.process.exitcode >= 0, f"ended by signal {-self.process.exitcode}"
        return self.process.exitcode

    def close(self) -> None:
        """Kill the process if it is still running."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.child.close()

    def press(self, key: str) -> None:
        """Press a key together with Ctrl."""
        self.child.send(chr(ord(key) - ord("@")))


def _prompt(branch: str) -> str:
    return rf"(?<=\n){re.escape(branch)}> |^{re.escape(branch)}> "


Open = Callable[..., Terminal]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    """Yield a function that opens a terminal with `dialoom step` and the given arguments."""
    opened: list[Terminal] = []

    def open_(*arguments: object, columns: int = 80, **environment: str) -> Terminal:
        opened.append(Terminal(tmp_path, arguments, environment, columns))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


@pytest.fixture
def run(dialoom: Command, made_once: MadeOnce) -> Command:
    """Make `run.db`, a finished dialogue played offline; return the command."""
    made_once(_run)
    return dialoom


def _run(dialoom: Command, _folder: Path) -> None:
    dialoom("run", "personalens", "--limit", 1, "--seed", 3, "-o", "run.db")


@pytest.mark.parametrize("columns", [80, 120])
def test_finished_dialogue_is_rewound_changed_compared_and_promoted(
    run: Command, terminal: Open, tmp_path: Path, columns: int
) -> None:
    at = terminal("run.db", 1, columns=columns)
    assert "the end: no further steps" in at.shown("main")
    assert "\x1b[" in at.raw
    stop = at.tell("goto turn 1", "main")
    assert "main 2 · turn 1 · user ran" in stop
    stop = at.tell("forward", "main")
    assert "next: user (after_assistant chose it after assistant)" in stop
    stop = at.tell("say user Wake me at 6:15, please.", "b1")
    assert "turn 2 · user ran" in stop
    assert "user (said): nothing was sent" in stop
    assert "user: Wake me at 6:15, please." in stop
    end = at.tell("c", "b1")
    assert "the end: no further steps" in end
    beside = at.tell("diff", "b1")
    assert "... 2 equal lines" in beside
    assert re.search(r"│ user: Wake me at 6:15, please\. *\n", beside)
    assert "since the fork" in beside
    history = at.tell("h", "b1")
    assert "(main)" in history
    assert "(b1, here)" in history
    for answer in (stop, end, beside, history):
        assert max(len(line) for line in answer.splitlines()) <= columns
    assert "now comes from b1 with 6" in at.tell("promote", "b1")
    at.child.sendline("q")
    assert at.left() == 0
    shown = run("show", "run.db", 1).stdout
    assert "user\nWake me at 6:15, please." in shown
    assert "branch: b1, made in the step debugger (1 said by a person)" in shown
    run("export", "run.db", "-o", "run.jsonl")
    (dialogue,) = read_jsonl(tmp_path / "run.jsonl")
    assert dialogue["branch"] == {"name": "b1", "models": {}, "replaced": {}, "edits": 0, "said": 1, "prompts": 0}


def test_failed_dialogue_is_finished_by_another_model(dialoom: Command, terminal: Open, tmp_path: Path) -> None:
    (tmp_path / "frail.py").write_text(
        "async def assistant(messages):\n"
        "    if len(messages) > 3:\n"
        "        raise RuntimeError('out of order')\n"
        "    return 'Fine.'\n"
    )
    frail = ["--model", "assistant=python:frail:assistant"]
    dialoom("run", "personalens", "--limit", 1, "--seed", 3, *frail, "-o", "run.db", code=1)
    at = terminal("run.db")
    begun = at.shown("main")
    assert "in run.db: failed, python:frail:assistant raised RuntimeError: out of order" in begun
    assert "main 4 · turn 2 · user ran" in begun
    assert "b1 4 · turn 2" in at.tell("next", "b1") + at.tell("where", "b1")
    at.tell("model assistant offline/attentive", "b1")
    assert "the end: no further steps" in at.tell("continue", "b1")
    assert "now comes from b1" in at.tell("promote", "b1")
    at.child.sendline("q")
    assert at.left() == 0
    assert '"done": 1, "failed": 0' in dialoom("status", "run.db", "--json").stdout


def test_tree_is_forked_and_both_branches_continue(dialoom: Command, terminal: Open) -> None:
    at = terminal("aloe", "--limit", 1, "--rounds", 2, "--branching", 1, "--seed", 3)
    assert "next: user (the conversation begins with this node)" in at.shown("main")
    assert "user ran" in at.tell("next", "main")
    assert "other 2" in at.tell("fork other", "other")
    assert "next: preferred" in at.tell("until preferred", "other")
    assert "preferred (said): nothing was sent" in at.tell("say preferred I see.", "other")
    assert "round 2" in at.tell("continue", "other")
    assert "main 2" in at.tell("switch main", "main")
    assert "the end: no further steps" in at.tell("continue", "main")
    forks = [line.split() for line in at.tell("forks", "main").splitlines()]
    assert ["@", "main", "(the", "outcome)"] in [row[:4] for row in forks]
    assert ["other", "main"] in [row[:2] for row in forks]
    history = at.tell("history", "main")
    assert "|\\\n" in history
    assert "(other)" in history
    assert "preferred: I see." in at.tell("diff main other", "main")
    at.child.sendline("quit")
    assert at.left() == 0
    assert '"state": "done"' in dialoom("show", "step-aloe.db", "--json").stdout


@pytest.mark.usefixtures("run")
def test_ctrl_c_at_a_running_call_returns_to_the_prompt(terminal: Open, tmp_path: Path) -> None:
    (tmp_path / "pondering.py").write_text(
        "import asyncio, pathlib\n"
        "async def assistant(messages):\n"
        "    if not pathlib.Path('go').exists():\n"
        "        print('pondering', flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "    return 'There you are.'\n"
    )
    at = terminal("run.db", 1)
    at.shown("main")
    at.tell("goto turn 1", "main")
    at.tell("model assistant python:pondering:assistant", "b1")
    at.child.sendline("next")
    at.child.expect_exact("pondering")
    at.press("C")
    assert "interrupted at b1 2; recorded replies are kept" in at.shown("b1")
    assert "b1 2 · turn 1" in at.tell("where", "b1")
    (tmp_path / "go").touch()
    stop = at.tell("next", "b1")
    assert "assistant: There you are." in stop
    at.child.sendline("q")
    assert at.left() == 0


@pytest.mark.usefixtures("run")
def test_ctrl_c_at_a_network_call_returns_to_the_prompt(terminal: Open) -> None:
    answers: Any = [silence(), completion("Back again.")]
    with serving(lambda _body, number: answers[min(number, 2) - 1]) as server:
        at = terminal("run.db", 1, OPENAI_API_BASE=server.url, OPENAI_API_KEY="none")
        at.shown("main")
        at.tell("goto turn 1", "main")
        at.tell("model assistant openai/house", "b1")
        at.child.sendline("next")
        while not server.requests:
            assert at.process.is_alive()
        at.press("C")
        assert "interrupted at b1 2" in at.shown("b1")
        assert "assistant: Back again." in at.tell("next", "b1")
        at.child.sendline("q")
        assert at.left() == 0


@pytest.mark.usefixtures("run")
def test_ctrl_c_at_the_prompt_and_end_of_input(terminal: Open) -> None:
    at = terminal("run.db", 1)
    at.shown("main")
    assert "'quit' leaves" in at.interrupt_typing("promote nothi", "main")
    at.press("D")
    assert at.left() == 0


@pytest.mark.usefixtures("run")
def test_mistake_at_the_prompt_is_reported_in_a_line(terminal: Open) -> None:
    at = terminal("run.db", 1)
    at.shown("main")
    assert at.tell("leap", "main").splitlines() == ["leap", "there is no command 'leap'; 'help' lists them"]
    assert at.tell("", "main").strip() == ""
    assert at.tell("# thinking", "main").splitlines() == ["# thinking"]
    assert "there is no branch 'b7'; the branches are main" in at.tell("switch b7", "main")


@pytest.fixture
def editors(tmp_path: Path) -> Path:
    """Write editors that need no user: they change or empty the text, fail, or leave it unchanged."""
    for name, script in {
        "changing": 'sed -E -i "s/^(Hi|Hello|My phone|After).*alarm.*/I usually get up at 6:15. Set my alarm./" "$1"',
        "failing": "exit 3",
        "idle": 'touch "$1"',
        "emptying": ': > "$1"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.mark.usefixtures("run")
def test_prompt_is_edited_and_played(terminal: Open, editors: Path) -> None:
    at = terminal("run.db", 1, EDITOR=str(editors / "changing"), VISUAL="")
    at.shown("main")
    at.tell("goto turn 1", "main")
    stop = at.tell("prompt edit", "b1")
    assert "asked (written by a person):" in stop
    assert "user: I usually get up at 6:15. Set my alarm." in stop
    assert "6:15" in stop.partition("answered:")[2]


@pytest.mark.parametrize(
    ("editor", "expected"),
    [
        ("failing", "ended with exit code 3, so nothing was changed"),
        ("idle", "the prompt is unchanged, so nothing was played"),
        ("emptying", "there is no message; begin each message with a line such as '=== user'"),
        ("missing", "cannot be started: "),
        ("", "no editor is set: set the variable EDITOR, e.g. EDITOR=nano"),
    ],
)
@pytest.mark.usefixtures("run")
def test_editor_without_a_new_prompt_changes_nothing(terminal: Open, editors: Path, editor: str, expected: str) -> None:
    at = terminal("run.db", 1, EDITOR=str(editors / editor) if editor else "", VISUAL="")
    at.shown("main")
    at.tell("goto turn 1", "main")
    assert expected in " ".join(at.tell("prompt edit", "main").split())
    assert "b1" not in at.tell("forks", "main")


@pytest.mark.usefixtures("run")
def test_breakpoints_stop_and_are_cleared(terminal: Open) -> None:
    at = terminal("run.db", 1)
    at.shown("main")
    at.tell("goto 1", "main")
    assert "breakpoint 1: assistant" in at.tell("break assistant", "main")
    assert "breakpoint 2: turn 3" in at.tell("break turn 3", "main")
    assert "breakpoint 3: messages | length == 4" in at.tell("b messages | length == 4", "main")
    listed = at.tell("breaks", "main").splitlines()[1:]
    assert listed == ["1  assistant", "2  turn 3", "3  messages | length == 4"]
    assert "turn 1 · user ran" in at.tell("continue", "main")
    assert "cleared: assistant" in at.tell("clear 1", "main")
    assert "turn 2 · assistant ran" in at.tell("continue", "main")
    assert "turn 3 · user ran" in at.tell("c", "main")
    assert "the end: no further steps" in at.tell("c", "main")  # turn 3 was reached before
    assert "main 2 ·" in at.tell("goto 2", "main")
    assert "turn 2 · assistant ran" in at.tell("c", "main")
    assert "turn 3 · user ran" in at.tell("c", "main")
    assert "all breakpoints are cleared" in at.tell("clear", "main")
    assert "the end: no further steps" in at.tell("c", "main")


def test_debugger_survives_an_exception_in_a_recipe(terminal: Open, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs/examples/larder", tmp_path / "game")
    recipe = tmp_path / "game" / "larder.py"
    recipe.write_text(recipe.read_text().replace('utterances(state["messages"])', 'utterances(state["nothing"])'))
    at = terminal("game/larder.py:RECIPE", "--larders", "1", "-o", "game.db")
    at.shown("main")
    output = at.tell("next", "main")
    assert "KeyError: 'nothing'" in output
    assert output.endswith("unexpected KeyError: 'nothing'\n")
    assert "next: clerk (the conversation begins with this node)" in at.tell("where", "main")

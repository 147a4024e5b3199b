"""Help and completion: commands in the order of use, what exit codes mean, and what a shell can complete."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from dialoom.cli.app import build_app
from dialoom.cli.command_list import SECTIONS
from tests.conftest import Command

LISTED = [name for section in SECTIONS.values() for name in section]


def test_commands_stand_in_the_order_of_use(dialoom: Command) -> None:
    """Each in a section, with a line that is not cut."""
    assert [*typer.main.get_command(build_app([])).list_commands(None)] == LISTED  # type: ignore[attr-defined]
    text = dialoom("--help", variables={"COLUMNS": "80"}).stdout
    places = [text.index(f"\n  {name} ") for name in LISTED]
    assert places == sorted(places)
    assert "More commands" not in text
    assert "..." not in text.partition("Get ready")[2]


def test_a_command_that_is_named_is_built_alone() -> None:
    """The others would take longer than many a command does; an unknown word is looked for among all of them."""
    for arguments, built in ((["status", "run.db"], ["status"]), (["step"], ["step"]), (["sttaus"], LISTED)):
        assert [*typer.main.get_command(build_app(arguments)).list_commands(None)] == built  # type: ignore[attr-defined]


def test_run_says_what_each_recipe_is_and_how_one_names_ones_own(dialoom: Command) -> None:
    """Without the name of any."""
    text = " ".join(dialoom("run", "--help").stdout.split())
    assert "personalens Task-oriented dialogues of simulated users" in text
    assert "FILE.py:RECIPE One of your own" in text


@pytest.mark.parametrize(
    "command",
    [[name] for name in LISTED if name not in ("run", "personas")]
    + [["run", "personalens"], ["personas", "build"], ["personas", "check"]],
)
def test_every_help_says_what_the_exit_codes_mean(dialoom: Command, command: list[str]) -> None:
    """Those that it can end with."""
    assert "Exit codes: 0 " in dialoom(*command, "--help").stdout


def _completed(dialoom: Command, *words: object) -> list[str]:
    """What bash is told when the last of the words is to be completed."""
    line = {"COMP_WORDS": " ".join(map(str, ("dialoom", *words))), "COMP_CWORD": str(len(words))}
    return dialoom(variables={"_DIALOOM_COMPLETE": "complete_bash", **line}).stdout.split()


def test_commands_recipes_options_and_what_a_run_has_are_completed(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    """Formats, tables, metrics and sets of judgements are those of the run that the line names."""
    dialoom("run", "personalens", *players, "--limit", 1, "-o", "run.db")
    assert _completed(dialoom, "re") == ["resume", "retry", "replay", "review", "report"]
    assert _completed(dialoom, "run", "personal") == ["personalens", "personalens-people"]
    assert _completed(dialoom, "run", "personalens", "--sett") == ["--setting"]
    run = tmp_path / "run.db"
    assert {"dialogues", "personalens", "sft"} <= {*_completed(dialoom, "export", run, "--format", "")}
    assert "scores" in _completed(dialoom, "report", run, "--table", "s")
    assert "personalization" in _completed(dialoom, "agree", run, "--metric", "p")
    assert _completed(dialoom, "show", run, "--judging", "r") == ["run"]
    assert _completed(dialoom, "report", tmp_path / "none.db", "--table", "s") == []


def test_completing_runs_no_code_of_a_file(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    """Neither that of a recipe which the line names, nor that of one which a run's file names."""
    source = "from dialoom.graphs.personalens.recipe import PersonaLens\nRECIPE = PersonaLens()\n"
    (tmp_path / "mine.py").write_text(source)
    dialoom("run", "mine.py:RECIPE", *players, "--limit", 1, "-o", "run.db")
    (tmp_path / "mine.py").write_text("open('trace', 'w').close()\n" + source)
    assert _completed(dialoom, "run", "mine.py:RECIPE", "--sett") == []
    run = tmp_path / "run.db"
    assert _completed(dialoom, "export", run, "--format", "") == []
    assert _completed(dialoom, "report", run, "--table", "s") == []
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("words", [("r",), ("run", "a"), ("agree", "run.db", "--metric", "")])
def test_completing_imports_nothing_heavy(words: tuple[str, ...], tmp_path: Path) -> None:
    """A person waits for it with a finger on the key. Pydantic is what Typer itself reads values with."""
    script = (
        "import sys; from dialoom.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('litellm', 'langgraph', 'langchain_core', 'numpy', 'httpx') if m in sys.modules])"
    )
    line = {"COMP_WORDS": " ".join(("dialoom", *words)), "COMP_CWORD": str(len(words))}
    environment = {**os.environ, "_DIALOOM_COMPLETE": "complete_bash", **line}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "[]"

"""Help, completion, `dialoom doctor`, `--dry-run` and progress."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from dialoom.cli.app import build_app
from dialoom.cli.command_list import SECTIONS
from dialoom.cli.console import SafeConsole
from dialoom.cli.progress import ProgressDisplay, format_figures
from dialoom.roles.gateway.limits import LimitState
from dialoom.runs.store import Usage
from tests.conftest import Command
from tests.invented import write_release
from tests.server import completion, error, serving

LISTED = [name for section in SECTIONS.values() for name in section]


def test_help_names_the_stand_ins_of_all_recipes(dialoom: Command) -> None:
    output = " ".join(dialoom("run", "personalens", "--help").stdout.replace("│", " ").split())
    assert "offline/attentive, or offline/placeholder in roles that it cannot play" in output


def test_commands_are_listed_in_order_of_use(dialoom: Command) -> None:
    assert [*typer.main.get_command(build_app([])).list_commands(None)] == LISTED  # type: ignore[attr-defined]
    text = dialoom("--help", variables={"COLUMNS": "80"}).stdout
    places = [text.index(f"\n  {name} ") for name in LISTED]
    assert places == sorted(places)
    assert "More commands" not in text
    assert "..." not in text.partition("Set up")[2]


def test_named_command_is_built_alone() -> None:
    for arguments, built in ((["status", "run.db"], ["status"]), (["step"], ["step"]), (["sttaus"], LISTED)):
        assert [*typer.main.get_command(build_app(arguments)).list_commands(None)] == built  # type: ignore[attr-defined]


def test_help_of_run_explains_recipes(dialoom: Command) -> None:
    text = " ".join(dialoom("run", "--help").stdout.split())
    assert "personalens Task-oriented dialogues of simulated users" in text
    assert "FILE.py:RECIPE Your own recipe" in text


@pytest.mark.parametrize(
    "command",
    [[name] for name in LISTED if name not in ("run", "personas")]
    + [["run", "personalens"], ["personas", "build"], ["personas", "check"]],
)
def test_every_help_lists_the_exit_codes(dialoom: Command, command: list[str]) -> None:
    assert "Exit codes: 0 " in dialoom(*command, "--help").stdout


PANELS = ("personalens", "Models", "Limits", "Output", "Advanced")


def test_help_lists_the_recipes_own_options_first_then_panels(dialoom: Command) -> None:
    text = dialoom("run", "personalens", "--help", variables={"COLUMNS": "100"}).stdout
    titles = [line.strip("╭─╮ ") for line in text.splitlines() if line.startswith("╭")]
    assert titles == list(PANELS)
    places = [text.index(option) for option in ("--tasks ", "--model ", "--rpm ", "--out ", "--replay-only ")]
    assert [text[:place].count("╭") for place in places] == [1, 2, 3, 4, 5]
    assert "[ROLE=]MODEL" in text and "[default: 16]" in text, "brackets are not markup"


def _completed(dialoom: Command, *words: object) -> list[str]:
    """Return bash's completions of the last word."""
    line = {"COMP_WORDS": " ".join(map(str, ("dialoom", *words))), "COMP_CWORD": str(len(words))}
    return dialoom(variables={"_DIALOOM_COMPLETE": "complete_bash", **line}).stdout.split()


def test_commands_options_and_parts_of_a_run_are_completed(
    dialoom: Command, players: list[str], tmp_path: Path
) -> None:
    dialoom("run", "personalens", *players, "--limit", 1, "-o", "run.db")
    assert _completed(dialoom, "re") == ["resume", "retry", "replay", "review", "report", "require"]
    assert _completed(dialoom, "run", "personal") == ["personalens", "personalens-people"]
    assert _completed(dialoom, "run", "personalens", "--sett") == ["--setting"]
    run = tmp_path / "run.db"
    assert {"dialogues", "personalens", "sft"} <= {*_completed(dialoom, "export", run, "--format", "")}
    assert "scores" in _completed(dialoom, "report", run, "--table", "s")
    assert "personalization" in _completed(dialoom, "agree", run, "--metric", "p")
    assert _completed(dialoom, "show", run, "--judging", "r") == ["run"]
    assert _completed(dialoom, "report", tmp_path / "none.db", "--table", "s") == []


def test_completion_runs_no_code_of_a_file(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    source = "from dialoom.graphs.personalens import PersonaLens\nRECIPE = PersonaLens()\n"
    (tmp_path / "mine.py").write_text(source)
    dialoom("run", "mine.py:RECIPE", *players, "--limit", 1, "-o", "run.db")
    (tmp_path / "mine.py").write_text("open('trace', 'w').close()\n" + source)
    assert _completed(dialoom, "run", "mine.py:RECIPE", "--sett") == []
    run = tmp_path / "run.db"
    assert _completed(dialoom, "export", run, "--format", "") == []
    assert _completed(dialoom, "report", run, "--table", "s") == []
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("words", [("r",), ("run", "a"), ("agree", "run.db", "--metric", "")])
def test_completion_imports_nothing_heavy(words: tuple[str, ...], tmp_path: Path) -> None:
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


KEY = "sk-planted-0a1b2c3d4e5f6a7b8c9d"


def doctor_checks(dialoom: Command, *arguments: object, code: int = 0, **variables: str) -> list[dict[str, Any]]:
    """Return the checks of `dialoom doctor`."""
    done = dialoom("doctor", *arguments, "--json", code=code, variables=variables)
    assert KEY not in done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] is (code == 0)
    checks: list[dict[str, Any]] = found["checks"]
    return checks


def states(checks: list[dict[str, Any]], about: str) -> Mapping[str, str]:
    """Return the states of the checks of one kind, by name."""
    return {check["name"]: check["state"] for check in checks if check["about"] == about}


def test_doctor_without_a_model_sends_nothing(dialoom: Command) -> None:
    with serving(lambda _body, _number: completion("Hello.")) as server:
        checks = doctor_checks(dialoom, OPENAI_API_BASE=server.url, OPENAI_API_KEY=KEY)
        assert server.requests == []
    assert set(states(checks, "python").values()) == {"ok"}
    assert {"dialoom", "litellm", "langgraph", "tenacity"} <= states(checks, "package").keys()
    assert set(states(checks, "package").values()) == {"ok"}
    assert "st" in states(checks, "extra")
    assert "dev" not in states(checks, "extra"), "this extra is not for users"
    assert not states(checks, "model")
    (keys,) = [check for check in checks if check["about"] == "keys"]
    assert "OPENAI_API_KEY" in keys["detail"]


def test_doctor_prints_one_line_a_check(dialoom: Command) -> None:
    printed = dialoom("doctor", "--model", "offline/attentive").stdout
    assert "ok       model offline/attentive" in printed
    assert "ok       structured output offline/attentive" in printed
    assert "\nall required checks passed\n" in printed


def test_doctor_lists_missing_extras_by_purpose(dialoom: Command) -> None:
    found = states(doctor_checks(dialoom), "extra")
    assert "all" not in found, "this extra combines the others"
    output = dialoom("doctor").stdout
    above, _, optional = output.partition(
        "optional, not installed; some commands need them (pip install 'dialoom[NAME]'):\n"
    )
    assert above.endswith("all required checks passed\n"), "the list of optional extras follows the verdict"
    shown = {name for line in optional.splitlines() for name in line.partition(": ")[2].split(", ")}
    assert shown == {name for name, state in found.items() if state == "missing"}
    assert {"frames", "datasets", "plots", "studio", "training"} <= found.keys()


def test_doctor_calls_a_model_three_times(dialoom: Command) -> None:
    answers = {1: completion("I am ready."), 2: completion('{"verdict": true, "explanation": "it is set"}')}
    for third, state in (("A quiet street.", "missing"), ('{"verdict": true, "explanation": "a street"}', "ok")):
        answers[3] = completion(third)
        with serving(lambda _body, number: answers[number]) as server:
            where = ["--model", "openai/house-model", "--api-base", server.url]
            checks = doctor_checks(dialoom, *where, OPENAI_API_KEY=KEY)
            assert len(server.requests) == 3
        assert states(checks, "shape") == {"openai/house-model": state}
        assert "JSON schema" in checks[-1]["detail"]
    assert states(checks, "model") == states(checks, "structured output") == {"openai/house-model": "ok"}
    asked = next(check for check in checks if check["about"] == "model")
    assert asked["latency"] > 0
    assert "10 + 5 tokens at an unknown price" in asked["detail"]


def test_doctor_requests_the_form_that_the_run_will_use(dialoom: Command) -> None:
    verdict = '{"verdict": true, "explanation": "it is set"}'
    found = {}
    answers = {1: completion("I am ready."), 2: completion(verdict), 3: completion('{"sight": "a street"}')}
    for how in ("schema", "json", "prompt"):
        with serving(lambda _body, number: answers[number]) as server:
            where = ["--model", "openai/house-model", "--api-base", server.url, "--structured", how]
            checks = doctor_checks(dialoom, *where, code=1 if how == "schema" else 0, OPENAI_API_KEY=KEY)
            asked = [(body.get("response_format") or {}).get("type") for body in server.requests]
        found[how] = (states(checks, "shape")["openai/house-model"], asked)
    assert found == {
        "schema": ("failed", [None, "json_schema", "json_schema"]),
        "json": ("ok", [None, "json_object", "json_object"]),
        "prompt": ("missing", [None, None]),
    }
    assert (
        "--structured must be one of auto, schema, json or prompt, got"
        in dialoom("doctor", "--structured", "tight", code=2).stderr
    )


def test_doctor_fails_a_model_without_structured_output(dialoom: Command) -> None:
    with serving(lambda _body, _number: completion("I would rather chat.")) as server:
        where = ["--model", "openai/house-model", "--api-base", server.url]
        checks = doctor_checks(dialoom, *where, code=1, OPENAI_API_KEY=KEY)
    assert states(checks, "model") == {"openai/house-model": "ok"}
    assert states(checks, "structured output") == {"openai/house-model": "failed"}
    assert "rather chat" in next(each["detail"] for each in checks if each["about"] == "structured output")


def test_doctor_calls_a_refusing_model_once_and_hides_its_key(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "keys.env").write_text(f"OPENAI_API_KEY={KEY}\n")
    with serving(lambda _body, _number: error(401, f"Incorrect API key provided: {KEY}")) as server:
        where = ["--model", "openai/house-model", "--api-base", server.url, "--env-file", "keys.env"]
        checks = doctor_checks(dialoom, *where, code=1)
        assert server.keys == [f"Bearer {KEY}"]
    assert states(checks, "model") == {"openai/house-model": "failed"}
    assert not states(checks, "structured output")


def test_doctor_names_an_unknown_model(dialoom: Command) -> None:
    checks = doctor_checks(dialoom, "--model", "offline/clever", "--model", "offline/generic", code=1)
    assert states(checks, "model") == {"offline/clever": "failed", "offline/generic": "ok"}


def files_in(folder: Path) -> set[Path]:
    """Return all files and folders below a folder."""
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_estimate_calls_no_model_and_leaves_no_file(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=10)
    (tmp_path / "never.py").write_text("async def reply(messages):\n    raise AssertionError('it was asked')\n")
    (tmp_path / "temporary").mkdir()
    before = files_in(tmp_path)
    cast = ["--model", "openai/gpt-4o-mini", "--model", "judge=python:never:reply"]
    plan = ["run", "personalens", "--profiles", "release", *cast]
    temporary = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    done = dialoom(*plan, "--dry-run", "--max-calls", 7, "-o", "run.db", env=temporary)
    assert files_in(tmp_path) == before, "neither the run nor the temporary run file is left"
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert rows["20"][0] == "scenarios;"
    assert rows["judge"][0] == "python:never:reply"
    assert rows["judge"][1] == "120", "six judgements of each scenario"
    assert rows["judge"][-1] == "unknown"
    assert float(rows["user"][-1].removeprefix("$")) > 0, "at the real model's price"
    assert rows["all"][-1] == "unknown", "a sum with an unknown part is unknown"
    assert "8 of the scenarios" in done.stdout
    assert "--price python:never:reply=IN,OUT" in done.stdout
    assert "--max-calls 7 would be exceeded" in done.stdout


def test_estimate_of_offline_models_is_exact(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=2)
    plan = ["run", "personalens", "--profiles", "release", "--model", "offline/attentive"]
    estimated = dialoom(*plan, "--dry-run").stdout
    dialoom(*plan, "-o", "run.db")
    total = next(line for line in dialoom("status", "run.db").stdout.splitlines() if line.split()[:1] == ["all"])
    calls, _, _, input_tokens, output_tokens, cost = total.split()[1:]
    assert f"{calls} {input_tokens} {output_tokens} {cost}" in " ".join(estimated.split())


@pytest.fixture
def custom_recipe(tmp_path: Path) -> None:
    """Write a recipe whose roles have no understudies."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "asker.md").write_text(
        "---\nid: asker\nversion: 1\nrole: asker\ninputs: []\nreply: verdict\n---\n=== user ===\nName a number.\n"
    )
    (tmp_path / "odd.py").write_text(
        """
from pathlib import Path
from langgraph.graph import END, START, StateGraph
from typing import TypedDict
from dialoom.graphs import Outcome, Recipe, Scenario, Stage, WithPrompts, node

class State(TypedDict):
    said: str

class Odd(Scenario):
    number: int
    @property
    def label(self): return "odd"
    def facets(self): return {}

async def ask(state, scene):
    return {"said": str(await scene.ask("asker"))}

class OddRecipe(Recipe, WithPrompts):
    name = "odd"
    summary = "Odd."
    roles = {"asker": 0.0}
    prompts = ("asker",)
    templates = Path(__file__).parent / "prompts"
    scenario_type = Odd
    def scenarios(self, options, draw, note):
        yield Odd(number=1)
    def graph(self, options):
        builder = StateGraph(State, context_schema=Stage)
        builder.add_node("ask", node(ask))
        builder.add_edge(START, "ask")
        builder.add_edge("ask", END)
        return builder
    def initial(self, scenario): return {"said": ""}
    def outcome(self, scenario, state, failed=False):
        return Outcome(messages=(), ended_by="error" if failed else "done")

RECIPE = OddRecipe()
"""
    )


@pytest.mark.usefixtures("custom_recipe")
def test_recipe_without_understudies_is_estimated_with_the_placeholder(dialoom: Command) -> None:
    assert "offline/placeholder" in dialoom("run", "odd.py:RECIPE", "--dry-run").stdout


@pytest.mark.usefixtures("custom_recipe")
def test_option_with_the_name_of_a_setting_is_refused(dialoom: Command, tmp_path: Path) -> None:
    clash = (
        "from odd import *\nfrom dialoom.graphs import RecipeOptions\n"
        "class Options(RecipeOptions):\n    max_calls: int = 3\n"
        "OddRecipe.options_type = Options\n"
    )
    (tmp_path / "clash.py").write_text(clash)
    refused = dialoom("run", "clash.py:RECIPE", "-o", "clash.db", code=2).stderr
    assert "recipe 'odd': the option 'max_calls' has the name of a setting of every run; rename it" in refused
    assert not (tmp_path / "clash.db").exists()


USAGE = Usage(calls=9000, input_tokens=1_200_000, output_tokens=34_000, cost=1.5)
LIMITS = {"openai/gpt-4o-mini": LimitState(limit=64, in_flight=16, waiting=0, throttled=3, paused=12.0)}


def _progress_lines(width: int, *notices: str) -> list[str]:
    """Return the lines of the progress display in a terminal of the given width."""
    console = SafeConsole(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    display = ProgressDisplay("playing", 4800, console, lambda: notices)
    display.show(120, format_figures(120, 7, 4800, 11, 60.0, USAGE, LIMITS))
    with console.capture() as captured:
        console.print(display.get_renderable())
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_rate_errors_and_time_left_fit_every_terminal(width: int) -> None:
    (line,) = _progress_lines(width)
    assert len(line) <= width
    for part in ("120/4800", "2.0/s", "7 failed", "11 unparsed", "0:39:00 left"):
        assert part in line
    assert ("$1.50" in line, "1,234k tokens" in line) == (width >= 80, width >= 120)
    assert ("openai/gpt-4o-mini 16/64 in flight" in line) == (width == 200)


def test_reasons_for_waiting_are_below_the_progress_line() -> None:
    lines = _progress_lines(50, "waiting for openai.com", "a call to openai/gpt-4o-mini has been under way for 4m10s")
    assert lines[1] == "  waiting for openai.com"
    assert lines[2].startswith("  a call to openai/gpt-4o-mini has")
    assert len(lines) == 3
    assert len(lines[2]) == 50


def test_time_left_is_unknown_before_anything_is_finished() -> None:
    assert "-:--:-- left" in format_figures(0, 0, 10, 0, 5.0, Usage(), {})

"""Examples, outputs, figures and links in the docs: they work and are current."""

from __future__ import annotations

import ast
import contextlib
import csv
import json
import math
import random
import re
import shlex
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dialoom import open_run
from dialoom.graphs import WithJudging, WithRoles
from dialoom.runs.configuration.recipes import load_recipe

from .conftest import ROOT, Command, MadeOnce
from .processes import CommandProcess


def read(name: str) -> str:
    """Return the text of a file at the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def test_documented_checkpointer_works_in_a_custom_graph(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    with CommandProcess(tmp_path, script=example) as process:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
    assert out.startswith("['Ada', 'Hello for the 1. time.', 'Ben', 'Hello for the 3. time.']\nCompacted(before=")


def test_examples_of_the_python_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    compared = 0
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        for statement in ast.parse(block).body:
            source = ast.get_source_segment(block, statement)
            assert source is not None
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), "docs/python.md", "exec"), names)
                continue
            value = eval(compile(ast.Expression(statement.value), "docs/python.md", "eval"), names)
            line = block.splitlines()[(statement.end_lineno or 1) - 1]
            with contextlib.suppress(SyntaxError, ValueError):
                expected = ast.literal_eval(line.rpartition("  # ")[2].partition(":")[0].strip() or "none")
                assert value == expected, source
                compared += 1
    assert compared >= 6


def test_python_example_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def reply(_: Any) -> str:
        return "I have noted it."

    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"my_async_function": reply}
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, "README.md", "exec"), names)
    assert names["run"].status().done == 8


def test_library_example_of_debugging(dialoom: Command, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    made = re.search(r"^    dialoom (run .* -o talk\.db)$", text, re.MULTILINE)
    assert made is not None
    dialoom(*made[1].split())
    with CommandProcess(tmp_path, script=example) as process:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
    assert "Pair(left=('assistant', 'Thank you for the information." in out
    assert "Your alarm is set for 3:30 PM." in out


def test_tutorial_on_adding_a_system_works(tmp_path: Path, dialoom: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = read("docs/new-recipe.md")
    recipe, options, pivots, test = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    imported, declared = pivots.split("\n\n", 1)
    indented = "".join(f"    {line}\n" for line in declared.splitlines())
    place = "\n    def scenarios("
    files = {
        "## 1.": recipe,
        "## 3.": f"{recipe}\n\n{options}",
        "## 4.": f"{imported}\n{recipe.replace(place, f'{indented}{place}', 1)}\n\n{options}",
    }
    shown = {}
    for section in re.split(r"^(?=## \d)", text.partition("## With a real model")[0], flags=re.MULTILINE):
        if section[:5] in files:
            (tmp_path / "support.py").write_text(files[section[:5]])
        for line in re.findall(r"^ {4}dialoom ([^#\n]*)", section, re.MULTILINE):
            code = 3 if "--max-calls 4" in line else 0
            shown[section[:5], line.strip()] = dialoom(*shlex.split(line), code=code, input="quit\n").stdout
    assert "track-a-parcel" in shown["## 3.", "show chosen.db"]
    assert "ended by the caller %" in shown["## 4.", "report support.db --table scores"]
    assert open_run("stopped.db").status().done == 2
    written: dict[str, Any] = {}
    exec(compile(test, "test_support.py", "exec"), written)
    written["test_every_conversation_ends_and_is_scored"](tmp_path)


def test_documented_graph_can_be_played(tmp_path: Path, dialoom: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = read("docs/recipes.md").partition("## A graph of your own")[2]
    (tmp_path / "expert.py").write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0])
    (command,) = re.findall(r"^ {4}dialoom (run expert.py.*)$", text, re.MULTILINE)
    dialoom(*command.split())
    spoken = [[line.role for line in each.outcome.messages] for each in open_run("expert.db").episodes()]
    assert len(spoken) == 2 and any("expert" in roles for roles in spoken)


def test_documented_study_can_be_played_with_all_extensions_of_the_page(
    tmp_path: Path, dialoom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = read("docs/studies.md")
    study, variety, role = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (people,) = re.findall(r"```csv\n(.*?)```", text, re.DOTALL)
    function, program = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "people.csv").write_text(people)
    (tmp_path / "checks.py").write_text(function)
    python = '[[check]]\nmetric = "named"\npython = "checks.py:gave_number"\n'
    keyword = 'max_turns = 6\nends = ["user_satisfied", { keyword = "GOODBYE", by = "assistant" }]'
    (tmp_path / "support.toml").write_text(study)
    (tmp_path / "more.toml").write_text(f"{study.replace('max_turns = 6', keyword)}\n{variety}\n{role}\n{python}")
    for name in ("support", "more"):
        dialoom("run", f"{name}.toml", "-o", f"{name}.db")
    assert "gave_number %" in dialoom("report", "support.db").stdout
    assert "named %" in dialoom("report", "more.db").stdout
    exec(compile(program, "docs/studies.md", "exec"), {"__name__": "__main__"})
    assert {each.metric for each in next(open_run("simulated.db").episodes()).outcome.judgements} == {
        "resolved",
        "check-1",
    }
    assert len(text.split()) <= 1000


def test_commands_of_the_first_dataset_work_offline(
    tmp_path: Path, dialoom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = read("docs/first-dataset.md")
    people, tasks = re.findall(r"```csv\n(.*?)```", text, re.DOTALL)
    more = "".join(f"Person {number},{number},calm,baker\n" for number in range(20, 28))
    (tmp_path / "people.csv").write_text(people + more)
    (tmp_path / "tasks.csv").write_text(tasks)
    lines = re.findall(r"^ {4}dialoom (.*)$", text, re.MULTILINE)
    server = "--model openai/local --api-base http://localhost:8000/v1"
    assert sum(server in line for line in lines) == 2
    for line in lines:
        done = dialoom(*shlex.split(line.replace(server, "")))
        if line.startswith("new study"):
            study = tmp_path / "shop" / "study.toml"
            study.write_text(re.sub(r"^rows = .*$", 'file = "../tasks.csv"', study.read_text(), flags=re.MULTILINE))
    assert "nothing was sent; --yes sends them to me/shop-dialogues" in done.stdout
    assert len(open_run("shop.db")) == 20
    assert len(text.split()) <= 900


def _lines(text: str) -> int:
    """Return the number of lines that are not blank."""
    return sum(bool(line.strip()) for line in text.splitlines())


def test_smallest_documented_recipe_has_all_functions(tmp_path: Path, dialoom: Command) -> None:
    """A recipe of 30 lines can be played offline, resumed, judged again, reported, exported, labelled and stepped."""
    recipe = re.findall(r"```python\n(.*?)```", read("docs/new-recipe.md"), re.DOTALL)[0]
    assert _lines(recipe) <= 30
    (tmp_path / "support.py").write_text(recipe)
    dialoom("run", "support.py:RECIPE", "--max-calls", 1, "--concurrency", 1, "-o", "support.db", code=3)
    assert open_run(tmp_path / "support.db").status().pending
    dialoom("resume", "support.db", "--max-calls", "none")
    run = open_run(tmp_path / "support.db")
    assert run.status().done == len(run) == 2
    dialoom("judge", "support.db", "--model", "offline/placeholder", "--name", "again")
    assert [each.name for each in run.judgement_sets] == ["run", "again"]
    assert "resolved %" in dialoom("report", "support.db").stdout
    dialoom("export", "support.db", "-o", "rows.jsonl")
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2
    dialoom("agree", "support.db", "--sample", 4, "-o", "labels.csv")
    assert "resolved" in (tmp_path / "labels.csv").read_text()
    assert "the end: no further steps" in dialoom("step", "support.db", 1, input="back\nnext\nquit\n").stdout


def test_twenty_questions_is_short_and_quoted_in_full() -> None:
    """Its Python and prompts have at most 110 lines."""
    example, page = ROOT / "docs" / "examples" / "twenty_questions", read("docs/twenty-questions.md")
    counted = [example / "recipe.py", *sorted(example.glob("prompts/*/*.md"))]
    for path in (*counted, example / "words.toml"):
        assert f"\n{path.read_text(encoding='utf-8').rstrip()}\n```" in page, path.name
    assert sum(_lines(path.read_text(encoding="utf-8")) for path in counted) <= 110


@dataclass(frozen=True)
class Excerpt:
    """A command's output as a page shows it.

    Attributes:
        page: The file.
        first: The first line: the command after `$ dialoom`, or else the first line of the output.
        text: The output, with `...` for what is left out.
    """

    page: str
    first: str
    text: str

    @property
    def pieces(self) -> list[str]:
        """Return the parts between the omissions, with single spaces between words and figures.

        In a table whose header ends with `...`, columns are left out of every line.
        """
        shown: list[str] = []
        lacks_columns = False
        for line in self.text.splitlines():
            lacks_columns = bool(line.strip()) and (lacks_columns or re.search(r"\S {2,}\S.*\.\.\.$", line) is not None)
            shown += [*_words(line), *(["..."] if lacks_columns else [])]
        return f" {' '.join(shown)} ".split("...")

    def differs(self, output: str) -> str | None:
        """Return the first piece that the output lacks after the preceding ones; `None` if it has all."""
        printed, place = f" {' '.join(_words(output))} ", 0
        for piece in filter(str.strip, self.pieces):
            found = printed.find(piece, place)
            if found < 0:
                return piece
            place = found + len(piece.rstrip())
        return None


def _words(text: str) -> list[str]:
    """Return the words and figures of a text, without the rules of tables; times of day and seconds are masked."""
    text = re.sub(r"\b\d\d:\d\d:\d\d\b", "TIME", re.sub(r"\bin [\d.]+ s\b", "in SECONDS", text))
    return [word for word in text.split() if word.strip("─")]


def excerpts() -> list[Excerpt]:
    """Return the outputs shown on the pages: fenced blocks without a language, split at the commands in them."""
    found = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        page = path.relative_to(ROOT).as_posix()
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for language, block in blocks:
            for part in re.split(r"^\$ dialoom ", block, flags=re.MULTILINE):
                if part.strip() and not language:
                    first, _, rest = part.partition("\n")
                    found.append(Excerpt(page, first, rest if block.startswith("$") else part))
    return found


def _demo(dialoom: Command, folder: Path) -> None:
    """Play the run of `make demo`; label a sample as two annotators who sometimes disagree with the judge.

    In `mislabelled/` one label is off the scale.
    """
    made = re.search(r"dialoom (run .* -o demo/run\.db)$", read("Makefile"), re.MULTILINE)
    assert made is not None
    (folder / "demo").mkdir()
    dialoom(*made[1].split())
    metrics = ("--metric", "personalization", "--metric", "naturalness")
    dialoom("agree", "demo/run.db", "--sample", 80, *metrics, "--annotators", "anna,ben", "-o", "labels.csv")
    scores = {
        f"{episode.id}/{each.metric}/{each.target}": int(each.score or 0)
        for episode in open_run(folder / "demo" / "run.db").episodes()
        for each in episode.outcome.judgements
    }
    draw = random.Random(0)
    with (folder / "labels.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for name in ("label:anna", "label:ben"):
            most = 4 if "/personalization/" in row["item"] else 5
            score = min(most, max(1, scores[row["item"]] + draw.choice((0, 0, 0, 0, -1, 1))))
            row[name] = str(score) if draw.random() < 0.95 else ""
    _write_rows(folder / "labels.csv", rows)
    (folder / "mislabelled").mkdir()
    _write_rows(folder / "mislabelled" / "labels.csv", [*rows[:10], {**rows[10], "label:anna": "6"}, *rows[11:]])


def _write_rows(path: Path, rows: Sequence[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def _swapped(dialoom: Command, folder: Path) -> None:
    """Play a dialogue in which the user offers help."""
    line = "Of course! How can I help you today? I am here to assist you with it."
    (folder / "cast.py").write_text(f"async def user(messages):\n    return {line!r}\n")
    dialoom("run", "personalens", "--users", 1, "--limit", 1, "--model", "user=python:cast:user", "-o", "run.db")


def _received(dialoom: Command, folder: Path) -> None:
    """Create a run file that this machine has no record of."""
    example = ROOT / "docs" / "examples" / "twenty_questions"
    (folder / "evil.py").write_text((example / "recipe.py").read_text())
    (folder / "words.toml").write_text((example / "words.toml").read_text())
    (folder / "prompts").symlink_to(example / "prompts")
    dialoom("run", "evil.py:RECIPE", "--words", "heron", "-o", "run.db")
    with closing(sqlite3.connect(folder / "run.db")) as connection, connection:
        connection.execute("UPDATE run SET value = 'ffff' WHERE key = 'id'")


def _one_system(dialoom: Command, folder: Path) -> None:  # noqa: ARG001
    """Write the shipped suite with PersonaLens alone."""
    suite = yaml.safe_load((ROOT / "graphs" / "suites" / "personalization.yaml").read_text())
    suite["systems"] = suite["systems"][:1]
    (folder / "suite.yaml").write_text(yaml.safe_dump(suite))


def _first_test(dialoom: Command, folder: Path) -> None:
    """Follow the page about a first test, with the assistant before and after the correction."""
    text = read("docs/first-test.md")
    before, check, after = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (study,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    agent, added = folder / "shop_agent.py", f"\n{study}"
    agent.write_text(before)
    for line in re.findall(r"^ {4}dialoom (new .*|run .* -o \w+\.db)$", text, re.MULTILINE):
        if line.endswith("second.db"):
            agent.write_text(after)
        sys.modules.pop("shop_agent", None)
        dialoom(*line.split())
        if line.startswith("new"):
            (folder / "shop" / "checks.py").write_text(check)
            with (folder / "shop" / "study.toml").open("a") as file:
                file.write(added)


def _debugged(dialoom: Command, folder: Path) -> None:
    """Play the run of the page about debugging, and write its scripts."""
    text = read("docs/first-debug.md")
    (made,) = re.findall(r"^ {4}dialoom (run .* -o talk\.db)$", text, re.MULTILINE)
    dialoom(*made.split())
    for name, script in zip(("look", "try", "hand"), re.findall(r"```text\n(.*?)```", text, re.DOTALL), strict=True):
        (folder / f"{name}.txt").write_text(script)


def _support(dialoom: Command, folder: Path) -> None:
    """Play the recipe of the page about adding a system."""
    recipe = re.findall(r"```python\n(.*?)```", read("docs/new-recipe.md"), re.DOTALL)[0]
    (folder / "support.py").write_text(recipe)
    dialoom("run", "support.py:RECIPE", "-o", "support.db")


def _commands(*lines: str) -> Callable[[Command, Path], None]:
    """Return a function that runs the given command lines."""

    def make(dialoom: Command, folder: Path) -> None:  # noqa: ARG001
        for line in lines:
            dialoom(*line.split())

    return make


_WRITTEN = "run apollo-write --users 1 --pairs 1 --errands 2 -o write.db --folder my-source"
_TOOLS = "run apollo --source my-source --length 2k --length 4k --framework function-calling --framework reminder"
_PEOPLE = "run personalens-people --people 3 --single-tasks 1 --multi-tasks 2 --seed 7 -o people.db"
_PAIRS = "run prefeval-pairs --topics travel_hotel --keep 5 -o pairs.db"
_write = _commands(_WRITTEN, f"{_TOOLS} --sample 24 -o tools.db")
_people, _pairs, _nothing = _commands(_PEOPLE), _commands(_PAIRS), _commands()

COMPARED: Mapping[tuple[str, str], tuple[Callable[[Command, Path], None], str]] = {
    ("README.md", "show demo/run.db 5"): (_demo, "show demo/run.db 5"),
    ("README.md", "report demo/run.db --table scores"): (_demo, "report demo/run.db --table scores"),
    ("docs/agreement.md", "agree demo/run.db --labels labels.csv"): (_demo, "agree demo/run.db --labels labels.csv"),
    ("docs/agreement.md", "dialoom: labels.csv:547: label of anna: '6' is not a whole number from 1 to 4"): (
        _demo,
        "agree demo/run.db --labels mislabelled/labels.csv",
    ),
    ("docs/apollo-writing.md", "Drafts by the attempt in which they passed all checks"): (_write, "report write.db"),
    ("docs/apollo-writing.md", "Accuracy by length of the history"): (_write, "report tools.db"),
    **{
        ("docs/first-debug.md", line): (_debugged, line)
        for line in (
            "show talk.db 1",
            *(f"step talk.db 1 --script {name}.txt" for name in ("look", "try", "hand")),
            "replay alarm.json",
        )
    },
    **{
        ("docs/first-test.md", line): (_first_test, line)
        for line in ("report first.db --table scores", "show first.db 1", "report first.db second.db")
    },
    ("docs/gate.md", "user"): (_swapped, "show run.db 1"),
    ("docs/judges.md", "report demo/run.db --calibrated --labels labels.csv --table calibrated"): (
        _demo,
        "report demo/run.db --calibrated --labels labels.csv --table calibrated",
    ),
    **{
        ("docs/new-recipe.md", line): (_support, line)
        for line in ("report support.db --table scores", "show support.db 1")
    },
    ("docs/personalens-people.md", "Rejected drafts by check"): (_people, "report people.db"),
    ("docs/personalens-people.md", "Drafts by the attempt in which they passed all checks"): (
        _people,
        "report people.db",
    ),
    ("docs/personas.md", "personas build --target 71 --threshold 0.25 -o p.jsonl"): (
        _nothing,
        "personas build --target 71 --threshold 0.25 -o p.jsonl",
    ),
    ("docs/prefeval-pairs.md", "Rejected drafts by check"): (_pairs, "report pairs.db"),
    ("docs/scorecard.md", "scorecard --model assistant=offline/attentive --model assistant=offline/generic -o card"): (
        _one_system,
        "scorecard --suite suite.yaml --model assistant=offline/attentive --model assistant=offline/generic -o card",
    ),
    ("docs/security.md", "report run.db"): (_received, "report run.db"),
}
"""For each excerpt the function that prepares its files and the command whose output it is."""

ELSEWHERE: Mapping[tuple[str, str], str] = {
    **dict.fromkeys(
        (
            ("docs/first-dataset.md", "status shop.db"),
            ("docs/first-dataset.md", "report shop.db --table faults"),
            (
                "docs/first-dataset.md",
                "export shop.db --only sound --test-share 0.2 --card --license cc-by-4.0 -o dataset",
            ),
            ("docs/first-dataset.md", "push dataset me/shop-dialogues"),
        ),
        "a local server with canned replies; the commands are played offline above",
    ),
    ("docs/apollo-data.md", "user: On 12 March I have time for a film. Would you book me a seat?"): (
        "the shipped sample, compared below"
    ),
    (
        "docs/local-models.md",
        "ok       shape openai/smollm2              enforced, requested as JSON schema",
    ): ("llama.cpp's server with SmolLM2-135M-Instruct, as `make test-llm` starts it"),
    ("docs/ci.md", "met: task_completion >= 80.0 %: 100.0 % [64.5 %, 100.0 %] n=12"): "tests/cli/test_require.py",
    (
        "docs/ci.md",
        "NOT MET: cancelled >= 100.0 %: 0.0 % [0.0 %, 79.3 %] n=1: the value is too low",
    ): "tests/api/test_expecting.py",
    ("docs/local-models.md", "user"): "SmolLM2-135M-Instruct on llama.cpp; its samples differ from machine to machine",
    ("docs/recipes.md", "---"): "a prompt file, and no output",
    (
        "docs/running.md",
        "provider openai at http://127.0.0.1:8000/v1 cannot be reached (connection refused): paused, next attempt in "
        "1s, patience 10m",
    ): "a provider that is down and comes back; tests/runs/test_provider_away.py plays it with a virtual clock",
    ("docs/sessions.md", "| run | scenarios | remembered % | offline |"): "tests/sessions plays the example",
    ("docs/studio.md", "studio demo/run.db"): "the studio, an extra; tests/studio starts it",
}
"""Excerpts that this test does not compare, and their sources."""

FIGURES: Mapping[tuple[str, str], str] = {
    ("docs/aloe.md", "The tree (`dialoom run aloe`)"): "the recipe's settings, compared below",
    **{
        ("docs/benchmarks.md", heading): f"benchmarks/{program}"
        for heading, program in {
            "Benchmarks": "the programs named in the table",
            "Planning": "planning.py",
            "Checkpointer": "checkpointing.py",
            "Orchestration": "orchestration.py",
            "Size of the run file": "prefeval.py --size",
            "Gateway": "gateway.py, and tests/runs/test_long_requests.py",
            "Workers": "scale.py",
            "Studio": "studio.py",
            "Resuming an agent with a memory": "resuming.py, with an environment for inspect_ai",
        }.items()
    },
    ("docs/environments.md", "A shop"): "tests/runs/test_environments.py plays the shop",
    (
        "docs/first-dataset.md",
        "How long it takes",
    ): "one run of each program by hand, dated on the page",
    ("docs/gate.md", "On the dialogues of a real model"): "recomputed by tests/test_labelled.py",
    ("docs/gate.md", "What is found"): "recomputed by tests/graphs/gate/test_rules.py",
    ("docs/local-models.md", "Similarity with a sentence embedder"): "a sentence embedder, named above the table",
    (
        "docs/local-models.md",
        "What is read again, and what is not",
    ): "SmolLM2-135M-Instruct on llama-cpp-python's server",
    ("docs/local-models.md", "Short prompts"): "SmolLM2-135M-Instruct on llama-cpp-python's server",
    ("docs/local-models.md", "Former and current prompts"): "SmolLM2-135M-Instruct on llama.cpp's server",
    ("docs/local-models.md", "What to expect of a small model"): "SmolLM2-135M-Instruct on llama-cpp-python's server",
    ("docs/personalens.md", "Judgements"): "the scales of the recipe, compared below",
    ("docs/personalens.md", "One dialogue"): "the recipe's settings, compared below",
    ("docs/prefeval-results.md", "Charts"): "the numbers of the paper's figures",
    ("docs/prefeval.md", "The offline model"): "the rule in the same row, computed below",
}
"""Tables of figures that are no output of a command, by page and heading, and their sources."""


def test_every_excerpt_is_compared_or_has_a_source() -> None:
    shown = {(each.page, each.first) for each in excerpts()}
    assert shown == COMPARED.keys() | ELSEWHERE.keys()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        outputs = r"^ {4}(?:\$ dialoom .*|dialoom: .*|ok {3,}.*|user: .*|provider .*|\d\d:\d\d:\d\d .*)$"
        assert re.findall(outputs, text, re.MULTILINE) == [], path.name


@pytest.mark.parametrize("made", dict.fromkeys(made for made, _ in COMPARED.values()))
def test_excerpts_are_what_the_commands_print(
    made: Callable[[Command, Path], None], made_once: MadeOnce, dialoom: Command
) -> None:
    folder = made_once(made)
    printed: dict[str, str] = {}
    for each in excerpts():
        of_page, command = COMPARED.get((each.page, each.first), (None, ""))
        if of_page is not made:
            continue
        if command not in printed:
            done = dialoom(*command.split(), code=None)
            text = (done.stderr + done.stdout).replace("mislabelled/", "")
            printed[command] = re.sub(
                r"/\S+/(?=evil\.py)", "/home/me/mail/", text.replace(str(folder), "/home/me/mail")
            )
        assert each.differs(printed[command]) is None, f"{each.page}: {each.first}\n{printed[command]}"


def test_commands_of_compared_examples_are_on_their_pages() -> None:
    for page, lines in {
        "docs/apollo-writing.md": (_WRITTEN, f"{_TOOLS} --sample 24 -o tools.db"),
        "docs/personalens-people.md": (_PEOPLE,),
        "docs/prefeval-pairs.md": (_PAIRS,),
    }.items():
        assert [line for line in lines if f"    dialoom {line}\n" not in read(page)] == []


def _anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as the site and GitHub form them."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = (re.sub(r"\[(.*?)\]\(.*?\)", r"\1", found) for found in re.findall(r"^#+ (.*)$", prose, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_links_to_headings_have_a_heading() -> None:
    broken, checked = [], 0
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        for file, anchor in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", text):
            checked += 1
            target = page.parent / file if file else page
            if not target.is_file() or anchor not in _anchors(target.read_text(encoding="utf-8")):
                broken.append(f"{page.relative_to(ROOT)}: {file}#{anchor}")
    assert broken == []
    assert checked > 50


def test_documented_apollo_pair_is_in_the_sample() -> None:
    sample = ROOT / "personas" / "samples" / "apollo"
    rows = {
        name: map(json.loads, (sample / f"{name}.jsonl").read_text().splitlines()) for name in ("sessions", "pairs")
    }
    pair = next(row for row in rows["pairs"] if row["id"] == "u02-movie-1-1")
    session = next(row for row in rows["sessions"] if row["id"] == pair["session"])
    lines = [f"{turn['speaker']}: {turn['text']}" for turn in session["turns"] if "speaker" in turn]
    calls = [
        f"{call['name']}({', '.join(f'{key} {value}' for key, value in call['arguments'].items())})"
        for call in pair["gold"]
    ]
    written = "\n".join([*lines, f"query: {pair['query']}", f"gold: {' '.join(calls)}"])
    (shown,) = [each for each in excerpts() if each.page == "docs/apollo-data.md"]
    assert shown.differs(written) is None


def test_tables_of_figures_have_a_source() -> None:
    found = set()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        heading = ""
        for line in re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.M).splitlines():
            heading = line.lstrip("# ") if line.startswith("#") else heading
            cells = [cell.strip(" *`") for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
            if any(re.match(r"[-~<]?\d[\d.,]*(?: ?%| |$)", cell) for cell in cells):
                found.add((path.relative_to(ROOT).as_posix(), heading))
    assert found == FIGURES.keys()


def test_tables_of_settings_are_those_of_the_recipes() -> None:
    for name in ("aloe", "personalens"):
        recipe = load_recipe(name)
        rows = re.findall(r"^\| (\w+) \| ([\d.]+) \|(?: ([\d,]+) tokens \|)?", read(f"docs/{name}.md"), re.MULTILINE)
        assert len(rows) >= 3
        for role, temperature, limit in rows:
            assert recipe.roles[role] == float(temperature), role
            assert not limit or WithRoles.of(recipe).reply_limits[role] == int(limit.replace(",", "")), role
    scales = re.findall(r"^\| `(\w+)` \|.*?\| (\d) to (\d) \|", read("docs/personalens.md"), re.MULTILINE)
    assert {metric: (int(low), int(high)) for metric, low, high in scales} == WithJudging.of(
        load_recipe("personalens")
    ).scales
    rules = re.findall(r"\| ([\d, ]+) \| (\d+) - (\d+) floor\(log2\(1 \+ t\)\) \|", read("docs/prefeval.md"))
    assert len(rules) == 4
    for reach, start, step in rules:
        assert reach == ", ".join(str(max(0, int(start) - int(step) * int(math.log2(1 + t)))) for t in (0, 8, 68))

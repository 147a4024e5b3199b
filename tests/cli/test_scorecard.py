"""`dialoom scorecard`: playing, continuing, combining and comparing scorecards, and refused input."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from dialoom import open_run, open_scorecard, scorecard
from dialoom.runs.scorecard import read_suite, shipped_suites
from tests.conftest import Command, MadeOnce
from tests.invented import ALARM, TWO_ASSISTANTS, write_release
from tests.processes import CommandProcess

CAST = (
    TWO_ASSISTANTS
    + """
async def strict(messages):
    if "Was this goal reached" in str(messages):
        return '{"verdict": false}'
    return '{"score": 1}'
"""
)

SUITE = """
suite: ours
version: 3
about: Two systems with people of our own.
models: {user: "python:cast:user", judge: "python:cast:judge"}
systems:
  - recipe: personalens
    title: Tasks
    options: {profiles: release}
    full: {options: {settings: [base, I]}}
    headlines:
      - {name: P, table: scores, column: P, scale: [1, 4]}
      - {name: TCR %, table: scores, column: TCR %, scale: [0, 1]}
    contrasts:
      - {name: how personal, metric: personalization}
  - recipe: aloe-eval
    name: rounds
    seed: 5
    options: {personas: people.jsonl}
    quick: {options: {rounds: 2}}
    headlines:
      - {name: AL, table: improvement, column: average AL, scale: [1, 5]}
    contrasts:
      - {name: alignment, metric: alignment}
    charts: [alignment]
"""

BOTH = ["--suite", "ours.yaml", "--model", "assistant=python:cast:plain", "--model", "assistant=python:cast:kind"]


def _sources(folder: Path) -> None:
    write_release(folder / "release", users=5, tasks=[ALARM])
    people = [{"id": name, "profile": f"{name} keeps bees.", "personality": "Patient."} for name in "ABCDE"]
    (folder / "people.jsonl").write_text("".join(json.dumps(person) + "\n" for person in people))
    (folder / "cast.py").write_text(CAST)
    (folder / "ours.yaml").write_text(SUITE)


def _card(command: Command, folder: Path) -> None:
    _sources(folder)
    command("scorecard", *BOTH, "-o", "card")


@pytest.fixture
def card(made_once: MadeOnce) -> Path:
    """Return a folder with a finished scorecard of two assistants and its sources."""
    return made_once(_card)


def _json(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "scorecard.json").read_text())
    return found


def _calls(folder: Path) -> int:
    counts = []
    for path in sorted(folder.glob("*.db")):
        with closing(sqlite3.connect(path)) as connection:
            counts.append(connection.execute("SELECT count(*) FROM calls").fetchone()[0])
    return sum(counts)


def _figures(folder: Path) -> dict[tuple[str, str], Any]:
    return {(each["name"], each["assistant"][12:]): each["value"] for each in _json(folder)["figures"]}


def test_scorecard_has_intervals_and_corrected_paired_differences(card: Path) -> None:
    found = _json(card / "card")
    health = found["tables"]["judge-health"]["rows"]
    assert ["personalens: python:cast:plain", "personalization (assistant)"] in [row[:2] for row in health]
    assert {row[-1] for row in health if row[0].startswith("personalens")} >= {"the same score every time"}
    p = {"n": 5, "mean": 2.0, "low": 2.0, "high": 2.0, "is_constant": True, "is_doubtful": False}
    assert _figures(card / "card")["P", "plain"] == p
    assert "2.00† [2.00, 2.00] n=5" in (card / "card" / "scorecard.md").read_text()
    assert any(note.startswith("† Constant") for note in found["tables"]["personalens"]["notes"])
    assert _figures(card / "card")["AL", "kind"]["mean"] == 3.0
    rows = [dict(zip(found["tables"]["differences"]["columns"], row, strict=True)) for row in _rows(found)]
    assert [(row["system"], row["of"], row["difference"]["mean"]) for row in rows] == [
        ("personalens", "how personal", 1.0),
        ("rounds", "alignment", 1.0),
    ]
    assert [row["p"] for row in rows] == [pytest.approx(2 * 2 / 2001)] * 2, "p is corrected for two rows"
    assert found["suite"] == {"name": "ours", "version": 3, "hash": read_suite(card / "ours.yaml").hash}
    run = open_run(card / "card" / "rounds--python-cast-plain.db")
    assert (run.config.seed, run.config.options["rounds"]) == (5, 2)


def test_contrasts_of_equal_names_are_shown_in_their_own_unit(card: Path, dialoom: Command) -> None:
    other = SUITE.split("systems:")[1].split("  - recipe: aloe-eval")[0].replace("recipe:", "name: other\n    recipe:")
    other = other.replace("metric: personalization", "metric: task_completion")
    (card / "equal.yaml").write_text(
        f"{SUITE.split('  - recipe: aloe-eval')[0]}{other}".replace("suite: ours", "suite: e")
    )
    dialoom("scorecard", "--suite", "equal.yaml", *BOTH[2:], "-o", "equal")
    text = (card / "equal" / "scorecard.md").read_text().partition("## Differences")[2]
    rows = [line.split(" | ")[:5] for line in text.splitlines() if "how personal" in line and line.startswith("|")]
    assert [[row[1], *row[3:]] for row in rows] == [
        ["how personal", "2.00", "3.00"],
        ["how personal %", "100.0", "100.0"],
    ]


def _rows(found: dict[str, Any]) -> list[Any]:
    rows: list[Any] = found["tables"]["differences"]["rows"]
    return rows


def test_scorecard_page_is_self_contained(card: Path) -> None:
    page, markdown = (card / "card" / "index.html").read_text(), (card / "card" / "scorecard.md").read_text()
    assert (
        "default-src &#x27;none&#x27;" in page
        and "<script" not in page
        and 'src="' not in page
        and 'href="http' not in page
    )
    assert page.count("<figure") == 2, "one chart of headlines and one of the rounds; a single headline has no chart"
    assert page.index('id="personalens"') < page.index("<figure") < page.index('id="rounds"')
    latex = (card / "card" / "scorecard.tex").read_text()
    assert latex.count("\\toprule") == latex.count("\\bottomrule") == len(_json(card / "card")["tables"])
    charts = sorted(path.name for path in (card / "card").glob("*.pdf"))
    assert charts == ["personalens.pdf", "rounds.pdf"], "a file for each chart of the page"
    assert "must not be averaged" in page and "Two systems with people of our own." in page
    assert markdown.count("| python:cast:kind |") >= 4 and "worth" not in markdown


def test_interrupted_scorecard_continues_without_repeated_calls(card: Path, dialoom: Command) -> None:
    """Stopped by its total budget or killed, a scorecard continues to the same figures without repeating calls.

    This includes calls of an earlier assistant when another one is added.
    """
    one = [*BOTH[:2], *BOTH[4:]]
    stopped = dialoom("scorecard", *one, "-o", "again", "--max-calls", 40, code=3)
    assert "Continue with: dialoom scorecard" in stopped.stdout
    assert _json(card / "again")["scenarios"]["pending"] > 0
    assert "are pending" in (card / "again" / "index.html").read_text()
    assert 30 <= _calls(card / "again") <= 40
    (card / "again" / "index.html").unlink()
    with CommandProcess(card, "scorecard", *one, "-o", "again", "--max-calls", "none") as process:
        assert any(line.startswith("2 of 2") for line in process.stdout)
    assert not (card / "again" / "index.html").exists()
    dialoom("scorecard", *one, "-o", "again")
    whole, first = _json(card / "card"), _json(card / "again")
    assert first["figures"] == [each for each in whole["figures"] if each["assistant"] == "python:cast:kind"]
    assert _calls(card / "again") == _calls(card / "card") / 2
    dialoom("scorecard", *BOTH[:4], "-o", "again")  # adds the other assistant
    both = _json(card / "again")
    assert both["assistants"] == ["python:cast:kind", "python:cast:plain"]
    assert [row for row in both["tables"]["cost"]["rows"] if "kind" in row[1]] == first["tables"]["cost"]["rows"]
    assert _calls(card / "again") == _calls(card / "card")


def test_scorecards_of_one_suite_are_combined(card: Path, dialoom: Command) -> None:
    whole = (card / "card" / "record.json").read_text()
    for name, kept in (("one", 0), ("two", 1)):
        shutil.copytree(card / "card", card / name)
        record = json.loads(whole)
        record["assistants"] = [record["assistants"][kept]]
        (card / name / "record.json").write_text(json.dumps(record))
    dialoom("scorecard", "one", "two", "-o", "both")
    assert _json(card / "both") == _json(card / "card")
    assert "python:cast:kind" in dialoom("scorecard", "two").stdout
    twice = open_scorecard(card / "one", card / "card").assistants
    assert twice == [f"python:cast:plain ({card / 'one'})", f"python:cast:plain ({card / 'card'})", "python:cast:kind"]
    record["suite"]["version"] = 4
    (card / "two" / "record.json").write_text(json.dumps(record))
    assert "only scorecards of the same suite and size" in dialoom("scorecard", "one", "two", code=2).stderr
    assert "release contains no scorecard" in dialoom("scorecard", "one", "release", code=2).stderr
    assert "options for playing do not apply" in dialoom("scorecard", "one", "--full", code=2).stderr


def test_folder_of_another_scorecard_is_not_changed(card: Path, dialoom: Command) -> None:
    (card / "other.yaml").write_text(SUITE.replace("rounds: 2", "rounds: 3"))
    errors = dialoom("scorecard", "--suite", "other.yaml", *BOTH[2:], "-o", "card", code=2).stderr
    assert "-o card contains a scorecard of ours 3" in errors and "give another folder" in errors
    assert "quick, not of ours 3" in dialoom("scorecard", *BOTH, "--full", "-o", "card", code=2).stderr
    errors = dialoom("scorecard", *BOTH, "--model", "judge=python:cast:strict", "-o", "card", code=2).stderr
    assert "judge model: 'python:cast:judge' then, 'python:cast:strict' now" in errors


@pytest.mark.parametrize(
    ("was", "is_now", "message"),
    [
        (
            "recipe: aloe-eval",
            "recipe: aloha",
            "--suite 'ours', rounds: unknown recipe 'aloha'; the registered recipes are",
        ),
        ("rounds: 2", "round: 2", "--suite 'ours', rounds: options: aloe-eval has no option 'round'; its options are"),
        ("rounds: 2", "rounds: 0", "--suite 'ours', rounds: rounds must be at least 1, got 0"),
        ("people.jsonl", "nobody.jsonl", "--suite 'ours', rounds: "),
        ("metric: alignment", "metric: charm", "unknown metric 'charm'; the metrics are alignment"),
        ("metric: personalization", "metric: personalization, where: sitting == 1", "--suite 'ours', personalens: "),
        ("contrasts:", "contrast:", "--suite ours.yaml: system personalens: contrast: Extra inputs are not permitted"),
        ("name: TCR %", "name: TCR", "--suite ours.yaml: system personalens: headlines: 1: name 'TCR' and column"),
        ("name: rounds", "name: personalens", "'personalens' is listed twice"),
        ("recipe: aloe-eval", "recipe: aloe", "--suite 'ours', rounds: recipe 'aloe' has no role under evaluation"),
        ("suite: ours", "- a", "ours.yaml:3: not YAML"),
        ("user: ", "usher: ", "--suite 'ours': models: unknown role 'usher'; the roles are user, assistant, judge"),
    ],
)
def test_malformed_suite_gives_one_message_and_writes_nothing(
    dialoom: Command, tmp_path: Path, was: str, is_now: str, message: str
) -> None:
    _sources(tmp_path)
    (tmp_path / "ours.yaml").write_text(SUITE.replace(was, is_now, 1))
    errors = dialoom("scorecard", *BOTH, "-o", "card", code=2).stderr
    assert message in errors and len(errors.splitlines()) == 1
    assert not list(tmp_path.glob("card/*"))


def test_scorecard_judges_form_a_panel_with_agreement(tmp_path: Path) -> None:
    _sources(tmp_path)

    async def mine(messages: Any) -> str:
        return f"As ever: {len(messages)}."

    suite = yaml.safe_load(SUITE)
    system = suite["systems"][0] | {"options": {"profiles": str(tmp_path / "release")}}
    judges = [f"python:tests.api.players:{name}" for name in ("judge", "sterner")]
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(suite | {"systems": [system], "models": {}}))
    cast: Any = {"assistant": mine, "user": "python:tests.api.players:user", "judge": judges}
    card = scorecard(tmp_path / "card", suite=tmp_path / "one.yaml", models=cast)
    assert card.is_complete and card.assistants == ["object:mine"]
    assert [figure.value.mean for figure in card.figures] == [2.5, 1.0]  # type: ignore[union-attr]
    rows = {row[3]: row[4:] for row in card["agreement"].rows}
    assert rows["personalization (assistant)"][0] == 5
    assert rows["task_completion (assistant)"][2].mean == 1.0  # type: ignore[union-attr]
    again = scorecard(tmp_path / "card", suite=tmp_path / "one.yaml", models=cast)
    assert again.as_json()["figures"] == card.as_json()["figures"]


def test_unparsed_judgements_are_those_of_all_judges_of_a_panel(dialoom: Command, tmp_path: Path) -> None:
    _sources(tmp_path)
    with (tmp_path / "cast.py").open("a") as file:
        file.write("\nasync def mumbling(messages):\n    return 'Hm.'\n")
    judges = [f"--model=judge=python:cast:{name}" for name in ("judge", "mumbling")]
    dialoom("scorecard", "--suite", "ours.yaml", "--model", "assistant=python:cast:plain", *judges, "-o", "card")
    soundness = _json(tmp_path / "card")["tables"]["soundness"]["rows"]
    runs = {path.name.partition("--")[0]: open_run(path) for path in (tmp_path / "card").glob("*.db")}
    counted = {row[0]: row[4] for row in soundness}
    assert counted == {name: run.unparsed("python:cast:mumbling") for name, run in runs.items()}
    assert all(counted.values())


def test_shipped_suite_has_all_figures_and_names_offline_models(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "copied.yaml").write_text(dialoom("scorecard", "--show-suite").stdout)
    (shipped,) = shipped_suites()
    assert read_suite(tmp_path / "copied.yaml").hash == read_suite(shipped).hash
    suite = yaml.safe_load((tmp_path / "copied.yaml").read_text())
    for system in suite["systems"]:
        system["quick"] = {"options": {**system.get("quick", {}).get("options", {}), "limit": 2}}
    (tmp_path / "little.yaml").write_text(yaml.safe_dump(suite))
    dialoom("scorecard", "--suite", "little.yaml", "-o", "card")
    found = _json(tmp_path / "card")
    notes = {name: table["notes"] for name, table in found["tables"].items()}
    assert not [note for each in notes.values() for note in each if re.search("has no (table|column)", note)]
    offline = "Made with an offline model"
    assert all(any(note.startswith(offline) for note in each) for each in notes.values())
    assert read_suite(tmp_path / "card" / "suite.yaml").hash == read_suite(tmp_path / "little.yaml").hash
    assert found["suite"]["hash"] == read_suite(tmp_path / "little.yaml").hash


RESUMING = """
from pathlib import Path

import dialoom
from dialoom.graphs.personalens import PersonaLens


class Resuming(PersonaLens):
    def tables(self, episodes):
        found = super().tables(episodes)
        folder = Path(__file__).parent
        if (asked := folder / "resume").exists():
            asked.unlink()
            for path in (folder / "card").glob("*.db"):
                dialoom.resume(path, budget=dialoom.Budget(max_calls=10_000))
        return found


RECIPE = Resuming()
"""


def test_figures_of_a_scorecard_are_of_one_moment(dialoom: Command, tmp_path: Path) -> None:
    """The first table that is built resumes all runs."""
    _sources(tmp_path)
    (tmp_path / "resuming.py").write_text(RESUMING)
    suite = yaml.safe_load(SUITE)
    suite["systems"] = [{**suite["systems"][0], "recipe": "resuming.py:RECIPE", "name": "tasks"}]
    (tmp_path / "ours.yaml").write_text(yaml.safe_dump(suite))
    dialoom("scorecard", *BOTH, "-o", "card", "--max-calls", 30, code=3)
    before = open_scorecard(tmp_path / "card").as_json()
    (tmp_path / "resume").touch()
    assert open_scorecard(tmp_path / "card").as_json() == before
    assert not (tmp_path / "resume").exists() and before["scenarios"]["pending"]
    assert not open_scorecard(tmp_path / "card").pending

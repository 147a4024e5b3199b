"""`dialoom export`: encodings, splits, filters and cards, for any recipe."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import yaml

from dialoom import DialoomError, import_transcripts, open_run
from tests.conftest import Command, read_jsonl
from tests.graphs.aloe.players import PEOPLE, PLAYERS, cast
from tests.invented import ALARM, write_release
from tests.processes import CommandProcess

RECIPE = """
from pathlib import Path
from typing import Any
from langgraph.graph import END, START, StateGraph
from dialoom.graphs import Exporter, ExportOptions, Outcome, Recipe, Scenario, Stage, WithExports

class Number(Scenario):
    n: int
    label = property(lambda self: f"number {self.n}")
    def facets(self): return {"n": self.n}

class Only(ExportOptions):
    from_n: int = 0

def rows(episode, scenario, prompts, models, *, options):
    for n in range(100 * scenario.n, 100 * scenario.n + 100):
        if n >= options.from_n:
            # First no value, then whole numbers, finally fractions.
            value = None if n < 1100 else n if n < 1150 else n / 2
            yield {"n": n, "value": value, "kinds": [] if n % 2 else [{"odd": False}]}

def mixed(episode, scenario, prompts, models):
    yield {"value": "text" if scenario.n else 1}

class Numbers(Recipe, WithExports):
    name = "numbers"
    summary = "Counts."
    roles = {}
    prompts = ()
    scenario_type = Number
    def scenarios(self, options, draw, note): return (Number(n=n) for n in range(12))
    def graph(self, options):
        builder = StateGraph(dict, context_schema=Stage)
        builder.add_node("count", lambda state: {})
        builder.add_edge(START, "count")
        builder.add_edge("count", END)
        return builder
    def initial(self, scenario): return {}
    def outcome(self, scenario, state, failed=False): return Outcome(messages=(), ended_by="counted")
    formats = {"rows": Exporter("rows", "lines", rows, Only), "mixed": Exporter("mixed", "lines", mixed)}

RECIPE = Numbers()
"""


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of twelve verified trees that fork once; it is made once and only read."""
    folder = tmp_path_factory.mktemp("trees")
    (folder / "players.py").write_text(PLAYERS)
    people = [
        {**person, "id": f"{person['id']}{number}", "profile": f"{person['profile']} One of {number}."}
        for number in range(4)
        for person in PEOPLE
    ]
    (folder / "people.jsonl").write_text("".join(json.dumps(person) + "\n" for person in people))
    roles = cast("user", "induction", "preferred", "rejected", "judge")
    options = ["--rounds", "4", "--branching", "1", "--verify-pairs", "--seed", "5"]
    command = ["run", "aloe", "--personas", "people.jsonl", *roles, *options, "-o", "tree.db"]
    with CommandProcess(folder, *command) as process:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    return folder / "tree.db"


def columns(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file."""
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    return rows


@pytest.mark.parametrize("format_", ["dialogues", "aloe", "sft", "dpo", "kto", "reward", "tree"])
def test_parquet_and_jsonl_are_equal_and_reproducible(trees: Path, tmp_path: Path, format_: str) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with open_run(trees) as run:
            counts = [
                run.export(format_, tmp_path / name / "set.jsonl"),
                run.export(format_, tmp_path / name / "set.parquet", encoding="parquet"),
            ]
    rows = read_jsonl(tmp_path / "one" / "set.jsonl")
    assert columns(tmp_path / "one" / "set.parquet") == rows
    assert counts == [{"all": len(rows)}] * 2
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    assert set(files) == {"set.jsonl", "set.parquet"} | (
        set() if format_ == "dialogues" else {"set.jsonl.card.md", "set.parquet.card.md"}
    )


def test_split_keeps_each_persona_on_one_side(trees: Path, tmp_path: Path) -> None:
    with open_run(trees) as run:
        run.export("tree", tmp_path / "whole.jsonl")
        said_by = {tree["rounds"][0]["user"]: tree["id"] for tree in read_jsonl(tmp_path / "whole.jsonl")}
        assert len(said_by) == 12
        tested: dict[str, set[str]] = {}
        for name, format_, share in (("a", "dpo", 0.25), ("b", "kto", 0.25), ("c", "sft", 0.5)):
            total = run.export(format_, tmp_path / name, test_share=share)
            run.export(format_, tmp_path / f"{name}.jsonl")
            sides = {side: read_jsonl(tmp_path / name / f"{side}.jsonl") for side in ("train", "test")}
            who = {side: {said_by[row["prompt"][0]["content"]] for row in rows} for side, rows in sides.items()}
            assert not who["train"] & who["test"]
            assert len(who["test"]) == round(12 * share)
            whole = read_jsonl(tmp_path / f"{name}.jsonl")
            assert sorted(map(json.dumps, sides["train"] + sides["test"])) == sorted(map(json.dumps, whole))
            assert sum(total.values()) == len(whole)
            tested[name] = who["test"]
    assert tested["a"] == tested["b"] < tested["c"]


def test_split_parquet_files_share_a_schema(dialoom: Command, trees: Path, tmp_path: Path) -> None:
    done = dialoom("export", trees, "--format", "tree", "--as", "parquet", "--test-share", 0.1, "-o", "set")
    assert "12 rows written to set: train 11, test 1" in done.stdout
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == ["README.md", "test.parquet", "train.parquet"]
    schemas = [pyarrow.parquet.read_schema(tmp_path / "set" / f"{side}.parquet") for side in ("train", "test")]
    assert schemas[0] == schemas[1]


def test_card_describes_how_the_set_was_made(dialoom: Command, trees: Path, tmp_path: Path) -> None:
    options = ["--round-range", "2-3", "--verified-only", "--test-share", 0.25]
    dialoom("export", trees, "--format", "dpo", *options, "-o", "set")
    card = (tmp_path / "set" / "README.md").read_text()
    front = yaml.safe_load(card.split("---")[1])
    assert (front["license"], front["language"]) == ("unknown", ["en"])
    assert (front["task_categories"], front["size_categories"]) == (["text-generation"], ["n<1K"])
    assert "as JSON Lines" in card
    assert front["configs"][0]["data_files"] == [
        {"split": "train", "path": "train.jsonl"},
        {"split": "test", "path": "test.jsonl"},
    ]
    count = len(read_jsonl(tmp_path / "set" / "train.jsonl"))
    assert f"| train.jsonl | {count} |" in card
    assert "`round_range=2-3, verified_only`" in card
    assert "seed 5" in card
    assert "with dialoom 0." in card
    assert "12 planned, 12 done, 0 failed, 0 pending" in card
    assert "| preferred | `python:players:preferred` | 0.7 |" in card
    hash_ = next(iter(lines_of_dialogues(dialoom, trees, tmp_path)))["prompts"]["aloe/preferred"]
    assert f"| `aloe/preferred` | `{hash_}` |" in card
    assert "`personas`: people.jsonl" in card
    assert str(trees.parent) not in card
    assert "offline" not in card


def test_card_names_parquet_and_a_stated_licence(dialoom: Command, trees: Path, tmp_path: Path) -> None:
    dialoom("export", trees, "--format", "aloe", "--as", "parquet", "--license", "cc-by-4.0", "-o", "set.parquet")
    card = (tmp_path / "set.parquet.card.md").read_text()
    front = yaml.safe_load(card.split("---")[1])
    assert front["license"] == "cc-by-4.0"
    assert front["configs"][0]["data_files"] == [{"split": "train", "path": "set.parquet"}]
    assert "as Parquet" in card
    assert "JSON" not in card
    assert "No licence is stated" not in card


def lines_of_dialogues(dialoom: Command, run: Path, folder: Path) -> list[dict[str, Any]]:
    """Return the run's dialogues."""
    dialoom("export", run, "-o", "dialogues.jsonl")
    return read_jsonl(folder / "dialogues.jsonl")


def test_card_of_an_offline_set_has_a_notice(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    dialoom("run", "personalens", "--profiles", "release", "--no-judge", "-o", "r.db")
    dialoom("export", "r.db", "--format", "sft", "-o", "sft.jsonl")
    assert "Made with an offline model (user, assistant)" in (tmp_path / "sft.jsonl.card.md").read_text()


def test_filters_select_examples(dialoom: Command, trees: Path, tmp_path: Path) -> None:
    dialoom("export", trees, "--format", "tree", "-o", "tree.jsonl")
    rounds = [each for tree in read_jsonl(tmp_path / "tree.jsonl") for each in tree["rounds"]]
    verified = [each for each in rounds if each["verified"]]
    assert 0 < len(verified) < len(rounds)
    dialoom("export", trees, "--format", "sft", "--verified-only", "-o", "verified.jsonl")
    completions = [row["completion"][0]["content"] for row in read_jsonl(tmp_path / "verified.jsonl")]
    assert completions == [each["preferred"] for each in verified]
    dialoom("export", trees, "--format", "sft", "--round-range", "2-3", "-o", "range.jsonl")
    assert {len(row["prompt"]) for row in read_jsonl(tmp_path / "range.jsonl")} == {3, 5}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--format", "aloe", "--verified-only"],
            "--verified-only: format 'aloe' has no such option; sft, dpo, kto, reward, sharegpt have",
        ),
        (["--round-range", "1-2"], "--round-range: format 'dialogues' has no such option"),
        (
            ["--format", "dpo", "--round-range", "9-3"],
            "--round-range: must be a range of rounds from 1, such as 3-10, got '9-3'",
        ),
        (["--format", "dpo", "--round-range", "9-10"], "round_range=9-10 selects no row of 12 finished scenarios"),
        (["--format", "dpo", "--test-share", "1"], "a share must be between 0 and 1"),
        (
            ["--format", "dpo", "--test-share", "0.1", "--round-range", "9"],
            "round_range=9 selects no row of 12 finished scenarios; nothing was written",
        ),
        (
            ["--format", "dpo", "--test-share", "0.1", "--where", "number == 1"],
            "split has no rows with where number == 1; 12 scenarios are done, and the test split is made of 1 ",
        ),
        (["--format", "cpo"], "the formats are dialogues, aloe, sft, dpo, kto, reward, tree"),
    ],
)
def test_impossible_export_gives_one_line_and_writes_nothing(
    dialoom: Command, trees: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    """The exit code is 2, and nothing is written."""
    before = sorted(tmp_path.iterdir())
    done = dialoom("export", trees, *arguments, "-o", "out", code=2)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


def test_help_lists_formats_and_flags_of_the_run(dialoom: Command, trees: Path) -> None:
    known = dialoom("export", trees, "--help").stdout
    assert "--round-range" in known
    assert "kto" in known
    anyone = dialoom("export", "--help").stdout
    assert "--test-share" in anyone
    assert "--round-range" not in anyone


def test_missing_run_is_named_whatever_the_options(dialoom: Command) -> None:
    done = dialoom("export", "none.db", "--format", "dpo", "--verified-only", "-o", "x.jsonl", code=2)
    assert "there is no run file none.db" in done.stderr


def test_formats_of_other_recipes_are_split_and_encoded(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release", users=2)
    dialoom("run", "personalens", "--profiles", "release", *players, "-o", "r.db")
    with open_run(tmp_path / "r.db") as run:
        wanted: list[dict[str, Any]] = [{"encoding": "parquet"}, {"test_share": 0.5}]
        for arguments in wanted:
            with pytest.raises(DialoomError, match="writes a folder of its own files"):
                run.export("personalens", tmp_path / "out", **arguments)
        run.export("sft", tmp_path / "set", test_share=0.5)
        run.export("dialogues", tmp_path / "d.parquet")
    refused = dialoom("export", "r.db", "--format", "sft", "-o", "rows/", code=2)
    assert "rows.jsonl" in refused.stderr, "a trailing slash names a folder, not a file"
    assert not (tmp_path / "rows").exists()
    refused = dialoom("export", "r.db", "--format", "sft", "-o", "nowhere/rows.jsonl", code=2)
    assert "there is no folder nowhere" in refused.stderr
    sides = [read_jsonl(tmp_path / "set" / f"{side}.jsonl") for side in ("train", "test")]
    assert [len(side) for side in sides] == [2, 2]
    scores = [judgement["score"] for row in columns(tmp_path / "d.parquet") for judgement in row["judgements"]]
    assert set(scores) == {1.0, 3.0}, "a verdict in a column with numbers is 1 or 0"


def test_export_has_the_layout_of_the_release(dialoom: Command, players: list[str], tmp_path: Path) -> None:
    write_release(tmp_path / "release", tasks=[ALARM])
    source = (tmp_path / "players.py").read_text()
    unread = "    if 'a human would write' in str(messages):\n        return 'fair'\n"
    (tmp_path / "players.py").write_text(
        source.replace("async def judge(messages):\n", f"async def judge(messages):\n{unread}")
    )
    dialoom("run", "personalens", "--profiles", "release", *players, "-o", "r.db")
    assert "1 file written" in dialoom("export", "r.db", "--format", "personalens", "-o", "out").stdout
    assistant = "python_players_assistant-base"
    dialogue = json.loads(
        (tmp_path / "out/output/dialogue/user7" / assistant / "SD-Alarm-task-1_dialogue.json").read_text()
    )
    assert (dialogue["user_id"], dialogue["task_description"]) == (7, ALARM["User Intent"])
    dialoom("export", "r.db", "--format", "evaluations", "-o", "judged")
    judged = tmp_path / "judged/output/evaluation/user7" / assistant
    found = {str(path.relative_to(judged)): path.read_text().split("\n")[0] for path in judged.rglob("*.txt")}
    assert found == {
        "task_completion/python_players_judge/SD-Alarm-task-1.txt": "VERDICT: True",
        "personalization/python_players_judge/SD-Alarm-task-1.txt": "Personalization Score: 3",
        "coherence/python_players_judge/SD-Alarm-task-1_user.txt": "Coherence Score: 3",
        "coherence/python_players_judge/SD-Alarm-task-1_asst.txt": "Coherence Score: 3",
    }
    dialoom("report", "r.db", "-o", "report")
    with (tmp_path / "report/scores.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["TCR %"], row["TCR % high"], row["P"]) == ("100.0", "100.0", "3.0"), "a column of % has percentages"


def test_export_into_a_pipe(dialoom: Command, trees: Path) -> None:
    piped = dialoom("export", trees, "--format", "dpo", "-o", "/dev/stdout", env={**os.environ}).stdout.splitlines()
    assert set(json.loads(piped[0])) == {"id", "prompt", "chosen", "rejected"}
    assert not list(trees.parent.glob("*.md"))


def test_redirected_output_is_not_replaced(trees: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dialoom", "export", str(trees), "--format", "dpo", "-o", "/dev/stdout"]
    with (tmp_path / "out.jsonl").open("w") as out:
        subprocess.run(command, stdout=out, check=True)
    assert "chosen" in (tmp_path / "out.jsonl").read_text()
    assert Path("/dev/stdout").is_symlink()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    open_run(trees).export("dpo", tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink() and (tmp_path / "real.jsonl").is_file()


def test_existing_folder_is_not_changed(dialoom: Command, trees: Path, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "notes.txt").write_text("mine")
    arguments = ["export", trees, "--format", "dpo", "--test-share", 0.5, "-o", "set"]
    assert "is not an empty folder" in dialoom(*arguments, code=2).stderr
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["notes.txt"]
    (tmp_path / "set" / "notes.txt").unlink()
    for _ in range(2):
        dialoom(*arguments)
    (tmp_path / "set" / "train.jsonl").write_text("{}")
    assert "set/train.jsonl exists with other content" in dialoom(*arguments, code=2).stderr


def test_own_recipe_has_its_own_formats_and_flags(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(RECIPE)
    dialoom("run", "counting.py:RECIPE", "-o", "n.db")
    assert "2 lines" in dialoom("export", "n.db", "--format", "rows", "--from-n", 1198, "-o", "n.jsonl").stdout
    assert "`from_n=1198`" in (tmp_path / "n.jsonl.card.md").read_text()
    foreign = dialoom("export", "n.db", "--format", "mixed", "--from-n", 3, "-o", "x.jsonl", code=2).stderr
    assert "--from-n: format 'mixed' has no such option; rows has" in foreign
    assert not (tmp_path / "x.jsonl").exists()


def test_parquet_type_fits_all_rows(dialoom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counting.py").write_text(RECIPE)
    dialoom("run", "counting.py:RECIPE", "-o", "n.db")
    monkeypatch.chdir(tmp_path)
    with open_run(tmp_path / "n.db") as run:
        run.export("rows", tmp_path / "n.parquet", encoding="parquet")
        rows = columns(tmp_path / "n.parquet")
        values = [None] * 1100 + list(range(1100, 1150)) + [n / 2 for n in range(1150, 1200)]
        assert [row["value"] for row in rows] == values
        assert rows[0]["kinds"] == [{"odd": False}]
        assert pyarrow.parquet.ParquetFile(tmp_path / "n.parquet").num_row_groups == 2
        with pytest.raises(DialoomError, match="'value' of a row is text and whole number in different rows"):
            run.export("mixed", tmp_path / "x.parquet", encoding="parquet")
        with pytest.raises(DialoomError, match="states no facet by which its rows can be split"):
            run.export("rows", tmp_path / "x", test_share=0.5)
    assert not [path for path in tmp_path.iterdir() if "x" in path.name]


def test_whole_numbers_that_parquet_cannot_hold_are_refused(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}]
    for name, number in (("all", 2**63 - 1), ("none", 2**63)):
        (tmp_path / "talks.jsonl").write_text(json.dumps({"messages": said, "account": number}))
        run = import_transcripts(tmp_path / "talks.jsonl", path=tmp_path / f"{name}.db").run
        if name == "all":
            run.export("dialogues", tmp_path / "all.parquet", encoding="parquet")
            assert columns(tmp_path / "all.parquet")[0]["scenario"] == {"account": 2**63 - 1}
        else:
            with pytest.raises(
                DialoomError, match="'account' of 'scenario' of a row is a number beyond 64 bits, which"
            ):
                run.export("dialogues", tmp_path / "none.parquet", encoding="parquet")

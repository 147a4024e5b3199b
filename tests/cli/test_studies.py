"""Studies from the command line: from files of people and tasks to conversations that are played and judged."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import time
from pathlib import Path
from random import Random
from typing import Any
from weakref import WeakValueDictionary

import pytest

import dialoom as api
from dialoom.runs.configuration.recipes import find_recipe
from tests.conftest import ROOT, Command, MadeOnce
from tests.graphs.support import judge
from tests.processes import CommandProcess

STUDY = """
name = "support"

[people]
file = "people.csv"

[tasks]
rows = ["return a kettle", { goal = "change an address" }]

[dialogue]
max_turns = 5
ends = ["user_satisfied", "user_gives_up", { keyword = "GOODBYE" }]

[user]
brief = "You call a web shop. <person>{{ person.portrait }}</person> Your goal: <task>{{ task.goal }}</task>"

[assistant]
system = "You are the support agent of a web shop."

[[judge]]
metric = "resolved"
rubric = "The caller's goal ({{ task.goal }}) was reached."

[[judge]]
metric = "tone"
scale = [1, 5]
rubric = { 1 = "cold or rude", 3 = "polite", 5 = "warm and adapted to {{ person.name }}" }

[[check]]
metric = "gave_number"
pattern = "\\\\b[A-Z]{2}-\\\\d{5}\\\\b"
"""
PEOPLE = "name,style\nAda,in a hurry\nBo,wordy\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working folder with a study of two people and two tasks."""
    (tmp_path / "support.toml").write_text(STUDY)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of an export."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_study_is_played_judged_reported_and_exported(dialoom: Command, folder: Path) -> None:
    """Every person has every task; judges and checks score each conversation; columns are facets."""
    assert "4 done, 0 failed" in dialoom("run", "support.toml", "-o", "support.db").stdout
    report = dialoom("report", "support.db").stdout
    assert "Scores by person" in report and "resolved %" in report and "gave_number %" in report
    assert (
        "There is no table by style, because its groups would equal those by person." in report
        and "Scores by style" not in report
    )
    dialoom("export", "support.db", "-o", "rows.jsonl")
    rows = rows_of(folder / "rows.jsonl")
    assert [(row["scenario"]["person"], row["scenario"]["goal"]) for row in rows] == [
        ("Ada", "return a kettle"),
        ("Ada", "change an address"),
        ("Bo", "return a kettle"),
        ("Bo", "change an address"),
    ]
    assert {row["ended_by"] for row in rows} <= {"user_satisfied", "user_gives_up", "max_turns"}
    assert not any(word in line["content"] for row in rows for line in row["messages"] for word in ("DONE", "QUIT"))


def test_a_report_has_no_table_by_many_numbers_and_explains_intervals_once(dialoom: Command, folder: Path) -> None:
    """A column with many different numbers has no table; one with two numbers and one with words have."""
    (folder / "people.csv").write_text(
        "name,age,height,style\n" + "".join(f"P{n},{n},{n % 2},s{n // 2}\n" for n in range(6))
    )
    dialoom("run", "support.toml", "-o", "support.db", "--concurrency", 3)
    report = dialoom("report", "support.db").stdout
    assert "There is no table by age: it has 6 different numbers." in report and "Scores by age" not in report
    assert "Scores by height" in report and "Scores by style" in report
    assert report.count("In brackets: 95 % intervals.") == 1
    assert "Dialogues checked by the gate: 12, of which " in report


def test_verdicts_of_turns_are_percentages_everywhere(dialoom: Command, folder: Path) -> None:
    rubric = 'rubric = "The caller'
    (folder / "support.toml").write_text(STUDY.replace(rubric, f"per_turn = true\n{rubric}"))
    dialoom("run", "support.toml", "-o", "support.db")
    dialoom("report", "support.db", "--table", "scores", "-o", "report")
    with (folder / "report" / "scores.csv").open() as file:
        row = next(csv.DictReader(file))
    share = float(row["resolved assistant turn 1 %"])
    assert share in (25.0, 50.0, 75.0, 100.0)
    for text in (dialoom("report", "support.db").stdout, (folder / "report" / "report.md").read_text()):
        assert "turn 1 %" in text and re.search(rf"\b{share:.1f}\b", text)
    (chart,) = (each for each in api.open_run(folder / "support.db").report().charts if each.x_label == "turn")
    assert (chart.y_label, chart.y_range, chart.series[0].y[0]) == ("resolved assistant %", (0, 100), share)
    report = api.open_run(folder / "support.db").judge(judge, name="again").report()
    (cells,) = [line for line in str(report).splitlines() if line.startswith("| resolved (assistant) by turn % |")]
    assert " | 100.0† [" in cells


def test_roles_of_stand_ins_are_named_and_an_existing_run_is_refused(dialoom: Command, folder: Path) -> None:
    output = dialoom("run", "support.toml", "-o", "run.db").stdout
    (folder / "noting.py").write_text("def reply(messages):\n    return 'Noted.'\n")
    output += dialoom("run", "support.toml", "--model", "assistant=python:noting:reply", "-o", "other.db").stdout
    parts = "user, assistant, judge", "user, judge"
    lines = [f"{part}: played by offline/placeholder, a scripted stand-in; --model [ROLE=]MODEL" for part in parts]
    assert [line.rsplit(" ", 2)[0] for line in output.splitlines() if "stand-in" in line] == lines
    again = dialoom("run", "support.toml", "-o", "run.db", code=2).stderr
    assert again.startswith("dialoom: run.db exists; continue with")


@pytest.mark.usefixtures("folder")
def test_hint_to_resume_names_the_given_concurrency(dialoom: Command) -> None:
    done = dialoom("run", "support.toml", "-o", "s.db", "--max-calls", 9, "--concurrency", 3, code=3)
    assert "dialoom resume s.db --concurrency 3" in done.stdout + done.stderr
    done = dialoom("resume", "s.db", "--max-calls", 10, code=3)
    assert "dialoom resume s.db" in done.stdout + done.stderr and "--concurrency" not in done.stdout + done.stderr


def test_source_files_are_not_read_again(dialoom: Command, folder: Path) -> None:
    """A run is resumed, judged again, reported and stepped through without the study's file and rows."""
    dialoom("run", "support.toml", "-o", "whole.db")
    dialoom("run", "support.toml", "-o", "support.db", "--max-calls", 7, "--concurrency", 1, code=3)
    (folder / "support.toml").unlink()
    (folder / "people.csv").unlink()
    dialoom("resume", "support.db", "--max-calls", "none")
    dialoom("judge", "support.db", "--model", "offline/placeholder", "--name", "again")
    for name in ("whole", "support"):
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
    assert (folder / "support.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert "the end: no further steps" in dialoom("step", "support.db", 1, input="back\nnext\nquit\n").stdout
    assert api.open_run(folder / "support.db").status().done == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_turns = 5", "max_turn = 5", "support.toml:11: [dialogue] has an unknown key 'max_turn'; did you mean"),
        (
            "[assistant]",
            "[asistant]",
            "support.toml:17: the study has an unknown key 'asistant'; did you mean 'assistant'?",
        ),
        (
            "max_turns = 5",
            "max_turns = 0",
            "support.toml:11: [dialogue] max_turns must be at least 1, got 0",
        ),
        ("max_turns = 5", "max_turns = 'x'", "support.toml:11: [dialogue] max_turns must be a whole number, got 'x'"),
        ("max_turns = 5", "max_turns = true", "support.toml:11: [dialogue] max_turns must be a whole number, got True"),
        ("max_turns = 5", "in_sequence = 1", "support.toml:11: [dialogue] in_sequence must be true or false, got 1"),
        (
            "[tasks]",
            "[quotas]\nstyle = { wordy = -1 }\n[tasks]",
            "support.toml:8: [quotas] style must be at least 0, go",
        ),
        ('"people.csv"', '"people.csv"\nportrait = "name"', "toml:6: [people] portrait must be a list, got 'name'"),
        (
            '"return a kettle", ',
            '"return a kettle", { goal = "" }, ',
            "tasks:2: the row is empty; fill it in or remove it",
        ),
        (
            "[[judge]]",
            "[[role]]\nname = 'judge'\nbrief = 'x'\n[[judge]]",
            "support.toml:21: [[role]] has the name 'judge', which is reserved or the role of a judge; rename it",
        ),
        (
            "[[judge]]",
            "[[role]]\nname = 'system'\nbrief = 'x'\n[[judge]]",
            "support.toml:21: [[role]] has the name 'system', which is reserved or the role of a judge; rename it",
        ),
        (
            "[[judge]]",
            "[[role]]\nname = 'critic'\nbrief = 'x'\n[[judge]]\nrole = 'critic'",
            "support.toml:21: [[role]] has the name 'critic', which is reserved or the role of a judge; rename it",
        ),
        ('[people]\nfile = "people.csv"', "people = ['Ada']", "people must be a table, [people] with its keys below"),
        ("max_turns = 5", "max_turns = [", "support.toml: not TOML: "),
        (
            '"user_gives_up"',
            '"user_quits"',
            "support.toml:12: [dialogue] ends contains 'user_quits'; it can contain 'user_sat",
        ),
        ('"GOODBYE"', '""', "support.toml:12: [dialogue] ends contains {'keyword': ''}; it can contain"),
        (
            "scale = [1, 5]",
            "scale = '1-5'",
            "support.toml:26: [[judge]] scale must be [LOWEST, HIGHEST], two whole num",
        ),
        (
            "scale = [1, 5]",
            "scale = [1]",
            "support.toml:26: [[judge]] scale must be [LOWEST, HIGHEST], two whole numbers, g",
        ),
        ("ends = [", "ends = 'DONE' # [", "support.toml:12: [dialogue] ends must be a list, as in ends = "),
        (
            '"GOODBYE" }',
            '"BYE", by = "agent" }',
            "the speaker of the keyword 'BYE' is 'agent', which is not a role; the roles are user, assistant",
        ),
        (
            "scale = [1, 5]",
            "scale = [1, 5]\ntarget = 'agent'",
            ":27: [[judge]] 'tone' has the target 'agent', which is not a role; the roles are",
        ),
        (
            "pattern = ",
            "target = 'me'\npattern = ",
            ":31: [[check]] 'gave_number' has the target 'me', which is not a role; the roles are user,",
        ),
        (
            '"tone"\nscale = [1, 5]\nrubric = {',
            '"resolved"\nrubric = "x" # {',
            "two judges or two checks score 'resolved' of a",
        ),
        ('"gave_number"', '"tone"', "support.toml:30: [[check]] 'tone' has the same metric as a judge; rename one"),
        (
            '"gave_number"',
            '"style"',
            "'style' is both a column of the rows and a metric of a judge or check; rename one",
        ),
        ("scale = [1, 5]\n", "", "support.toml:24: judge 'tone': a rubric with numbered levels needs a scale, e.g. sc"),
        ('5 = "warm', 'warm = "warm', "support.toml:27: [[judge]] rubric: a level of the scale must be a whole number"),
        ('5 = "warm', '7 = "warm', "support.toml:24: judge 'tone': level 7 must be within the scale, 1 to 5"),
        (
            "pattern = ",
            "scale = [5, 1]\npattern = ",
            "support.toml:29: check 'gave_number': scale must go from low to high",
        ),
        ("pattern = ", "pattern = '(' #", "support.toml:31: [[check]] pattern: not a regular expression: "),
        ("pattern = ", "#", "support.toml:29: [[check]] 'gave_number' needs one of pattern, python, sql and gold"),
        ("pattern = ", "python = 'x' #", "support.toml:31: python = 'x' must have the form file.py:function"),
        ("pattern = ", "python = 'x.py:f' #", "'x.py:f': there is no file x.py"),
        ("pattern = ", "python = 'broken.py:f' #", "'broken.py:f': broken.py cannot be imported: NameError: "),
        ('metric = "resolved"', "", "support.toml:20: [[judge]] needs 'metric'"),
        (
            'metric = "gave',
            'metrik = "gave',
            "support.toml:30: [[check]] has an unknown key 'metrik'; did you mean 'metr",
        ),
        ('file = "people.csv"', "", 'support.toml:4: [people] needs file = "..." or rows = [...]'),
        ('file = "people.csv"', 'file = "peeple.csv"', "peeple.csv: there is no such file"),
        ('file = "people.csv"', 'rows = [{ name = "a" }, { name = "a" }]', "people:2: the same row as in 1; remove it"),
        ('file = "people.csv"', 'rows = []\nfile = ""', "[people] needs file"),
        (
            "{{ task.goal }}</task>",
            "{{ task.gaol }}</task>",
            "tasks:1: there is no column 'gaol', which [user] brief us",
        ),
        (
            "{{ task.goal }}</task>",
            "{{ goal }}</task>",
            "support.toml:15: [user] brief uses 'goal'; it can use 'person' and 'task', as in {{ task.goal }}",
        ),
        (
            "{{ task.goal }}</task>",
            "{{ task.goal }</task>",
            "support.toml:15: [user] brief is not a template: unexpected '}'",
        ),
        (
            "({{ task.goal }})",
            "({{ goal }})",
            "support.toml:22: [[judge]] 'resolved' rubric uses 'goal'; it can use 'person' and 'task', as in",
        ),
        (
            "{{ person.name }}",
            "{{ person.name",
            "support.toml:27: [[judge]] 'tone' rubric is not a template: unexpected end of",
        ),
        (
            "[[judge]]",
            "[[role]]\nname = 'critic'\nbrief = '{{ nme }}'\n[[judge]]",
            "support.toml:22: [[role]] 'critic' brief uses 'nme'; it can use 'person' and 'task'",
        ),
        (
            'file = "people',
            'fille = "people',
            "[people] has an unknown key 'fille'; did you mean 'file'? the keys are file, ",
        ),
        (
            "{{ person.name }}",
            "{{ person.nom }}",
            "people.csv:2: there is no column 'nom', which the rubric of tone uses",
        ),
        ("[tasks]", "[tasks]\nper_person = 3", "tasks: per_person = 3 needs at least that many tasks, got 2"),
        ("[tasks]", "[tasks]\nzip = true\nper_person = 1", "support.toml:7: [tasks]: give zip or per_person, not both"),
        (
            "[tasks]",
            "[tasks]\ncross = false",
            "support.toml:7: [tasks]: cross = false needs zip = true or per_person = N",
        ),
        ("[tasks]", "id = 'email'\n[tasks]", "people.csv:2: there is no column 'email'; the columns are name, style"),
    ],
)
def test_a_mistake_in_the_file_gives_one_message(
    dialoom: Command, folder: Path, old: str, new: str, message: str
) -> None:
    """The message names file, line and remedy; nothing is written."""
    assert old in STUDY
    (folder / "support.toml").write_text(STUDY.replace(old, new, 1))
    (folder / "broken.py").write_text("missing\n")
    errors = dialoom("run", "support.toml", "-o", "support.db", code=2).stderr
    assert message in errors and len(errors.splitlines()) == 1
    assert not (folder / "support.db").exists()


@pytest.mark.parametrize(
    ("brief", "code", "message"),
    [
        ("{{ person.home.city }}", 0, None),
        ("{{ person.home.ctiy }}", 2, "people.jsonl:1: there is no value 'ctiy' in 'person.home', which [user] brief"),
        (
            "{{ person.home.zip }}",
            2,
            "people.jsonl:2: there is no value 'zip' in 'person.home', which [user] brief use",
        ),
        ('{% if person["home"].zpi %}x{% endif %}', 2, "people.jsonl:1: there is no value 'zpi' in 'person.home', whi"),
        (
            "{{ person.home.street.nmae }}",
            2,
            "'nmae' in 'person.home.street', which [user] brief uses; the names are name",
        ),
        ("{{ person.home.zip | default('unknown') }}", 0, None),
        ("{% if 'zip' in person.home %}{{ person.home.zip }}{% endif %}", 0, None),
        (
            "{% if person.name %}{{ person.home.ctiy }}{% endif %}",
            2,
            "there is no 'ctiy'; the names are city, zip, street",
        ),
        ("{{ person.keys }}", 2, "people.jsonl:1: there is no column 'keys', which [user] brief uses"),
        ("{{ person.home.values }}", 2, "people.jsonl:1: there is no value 'values' in 'person.home', which [user]"),
        ("{{ person.get('nmae') }}", 2, "people.jsonl:1: there is no column 'nmae', which [user] brief uses"),
        ("{{ person.get('nmae', 'unknown') }}", 0, None),
        ("{% for key, value in person.home.items() %}{{ key }}{% endfor %}", 0, None),
    ],
)
def test_a_name_within_a_value_is_checked_with_file_and_line(
    dialoom: Command, folder: Path, brief: str, code: int, message: str | None
) -> None:
    """A missing name for which the template has a default or a condition is accepted."""
    homes = [{"city": "Bern", "zip": "3000", "street": {"name": "Long"}}, {"city": "Basel", "street": {"name": "Low"}}]
    rows = [{"name": name, "home": home} for name, home in zip(("Ada", "Bo"), homes, strict=True)]
    (folder / "people.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    study = STUDY.replace("people.csv", "people.jsonl").replace("You call a web shop.", brief.replace('"', '\\"'))
    (folder / "support.toml").write_text(study)
    errors = dialoom("run", "support.toml", "-o", "support.db", code=code).stderr
    assert message is None or message in errors


@pytest.mark.parametrize(
    ("people", "message"),
    [
        ("name,style\nAda,\n", None),
        (
            "name,style\n,brief\n",
            "people.csv:2: 'name' is empty, but the rubric of tone uses it; fill it in, or write",
        ),
        (
            "name,style\n{{ task.goal }},brief\n",
            "people.csv:2: 'name' contains '{{ task.goal }}', but templates in rows are not filled in; write",
        ),
        ("name,style\nAda {{ x }},brief\n", None),
        ("id,name\n1,Ada\n1,Bo\n", "people.csv:3: the same id '1' as in 2; ids must differ"),
        ("id,name\n1,Ada\n,Bo\n", None),
        ("name,style\n", "people.csv: people must hold at least one row, got none"),
        ("name,style\nAda,x\nAda,y\n", None),
    ],
)
def test_unusable_rows_give_one_message(dialoom: Command, folder: Path, people: str, message: str | None) -> None:
    """An empty cell is accepted unless it is used, and people of the same name are distinguished."""
    (folder / "people.csv").write_text(people)
    errors = dialoom("run", "support.toml", "-o", "support.db", code=0 if message is None else 2).stderr
    assert message is None or message in errors


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name;style\r\nAda;in a hurry, always\r\n".encode("utf-8-sig"), None),
        (b'name,style\nAda,"says ""no"",\nloudly"\n', None),
        (b"name\nAda\n", None),
        (b"name|style\nAda|in a hurry, always\n", None),
        (
            "name,style\nZo\u00eb,brief\n".encode("latin-1"),
            "people.csv:2: not UTF-8: byte 0xeb; save it as UTF-8 (in Excel",
        ),
        ("name,style\nAda,brief\n".encode("utf-16"), "people.csv:1: is UTF-16; save it as UTF-8 (in Excel"),
        ("name,style\nAda,brief\n".encode("utf-16-le"), "people.csv:1: not UTF-8 text: it contains a null character"),
        (
            b"name,style\rAda,brief\r",
            "people.csv:1: lines end with a carriage return only; save the file with newlines",
        ),
        (b'name,style\nAda,x\nBo,"open\nCem,y\n', "people.csv:3: a quote is opened in this row and never closed"),
        (b"name,style\nAda\n", "people.csv:2: 1 cell, but the header names 2; add the missing cells"),
        (b"name\nAda, who is shy\n", "people.csv:2: 2 cells, but the header names 1; put cells that contain ',' in"),
    ],
)
def test_files_of_spreadsheets_work_or_give_one_message(
    dialoom: Command, folder: Path, content: bytes, message: str | None
) -> None:
    """Byte-order marks, semicolons, quotes and single columns work; other encodings and broken rows are reported."""
    (folder / "people.csv").write_bytes(content)
    errors = dialoom("run", "support.toml", "-o", "support.db", code=0 if message is None else 2).stderr
    if message is not None:
        assert message in errors and len(errors.splitlines()) == 1 and not (folder / "support.db").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("run", "personalens", "--profiles", "people.csv"),
        ("run", "aloe", "--personas", "people.csv"),
        ("run", "aloe-eval", "--personas", "people.jsonl"),
        ("run", "apollo", "--source", "people.csv"),
        ("run", "apollo-write", "--personas", "people.jsonl"),
        ("run", "personalens-people", "--demographics", "people.csv"),
        ("run", "people.csv"),
        ("personas", "import", "people.csv"),
        ("personas", "check", "people.jsonl"),
    ],
)
def test_message_about_rows_given_to_a_recipe_suggests_a_study(
    dialoom: Command, folder: Path, command: tuple[str, ...]
) -> None:
    (folder / "people.jsonl").write_text('{"name": "Ada", "style": "in a hurry"}\n')
    out = () if "check" in command else ("-o", "out")
    errors = dialoom(*command, *out, code=2).stderr
    assert re.search(rf"; 'dialoom new study DIR --from \S*{command[-1]}' makes conversations from your own", errors)
    assert not (folder / "out").exists()


def test_message_about_a_persona_file_does_not_suggest_a_study(dialoom: Command, folder: Path) -> None:
    (folder / "personas.jsonl").write_text('{"profile": "She rows.", "personality": "She is calm.", "note": 1}\n')
    errors = dialoom("run", "aloe", "--personas", "personas.jsonl", "-o", "out", code=2).stderr
    assert "unknown key 'note'" in errors and "study" not in errors


def test_people_are_planned_one_at_a_time(folder: Path) -> None:
    """Neither the rows nor the scenarios are all held in memory, however many there are."""
    (folder / "people.csv").write_text("name,style\n" + "".join(f"P{number},brief\n" for number in range(1_000)))
    recipe: Any = find_recipe(str(folder / "support.toml"))[1]
    alive = WeakValueDictionary[int, Any]()
    most = count = 0
    for each in recipe.scenarios(recipe.options_type(), Random(0), lambda _: None):
        alive[count] = each
        count += 1
        most = max(most, len(alive))
    assert count == 2_000 and most <= 4


def test_people_of_the_same_name_have_different_ids(dialoom: Command, folder: Path) -> None:
    """A number is added to the name, because intervals and splits are by person."""
    (folder / "people.csv").write_text("name,style\nAda,x\nAda,y\n")
    done = dialoom("run", "support.toml", "-o", "support.db")
    assert "1 row with the name of an earlier row, counted as different people: Ada; a column id" in done.stdout
    facets = [each.facets["person"] for each in api.open_run(folder / "support.db").episodes()]
    assert facets == ["Ada", "Ada", "Ada (2)", "Ada (2)"]


@pytest.mark.parametrize(
    ("people", "names"),
    [
        ("name,style\nBo,x\nBo,y\nBo (2),z\nBo,w\n", ["Bo", "Bo (3)", "Bo (2)", "Bo (4)"]),
        ("name,style\nBo (2),x\nBo,y\nBo,z\nBo (2),w\n", ["Bo (2)", "Bo", "Bo (3)", "Bo (2) (2)"]),
    ],
)
def test_a_number_makes_a_name_differ_from_earlier_and_later_names(
    dialoom: Command, folder: Path, people: str, names: list[str]
) -> None:
    (folder / "people.csv").write_text(people)
    dialoom("run", "support.toml", "-o", "support.db")
    facets = [each.facets["person"] for each in api.open_run(folder / "support.db").episodes()]
    assert facets == [name for name in names for _ in range(2)]


def test_the_remedy_for_an_empty_cell_is_a_template(dialoom: Command, folder: Path) -> None:
    """Also if the column's name is not an identifier."""
    study = STUDY.replace("You call a web shop.", "You live in {{ person['Home Town'] }}.")
    (folder / "people.csv").write_text("name,style,Home Town\nAda,x,\n")
    (folder / "support.toml").write_text(study)
    told = dialoom("run", "support.toml", "-o", "support.db", code=2).stderr
    remedy = """{{ person["Home Town"] or 'unknown' }}"""
    assert f"people.csv:2: 'Home Town' is empty, but [user] brief uses it; fill it in, or write {remedy} there" in told
    (folder / "support.toml").write_text(study.replace("{{ person['Home Town'] }}", remedy.replace('"', '\\"')))
    dialoom("run", "support.toml", "-o", "support.db")


@pytest.mark.parametrize(
    ("people", "names"),
    [
        ("Name,style\nAda,x\nBo,y\n", ["Ada", "Bo"]),
        ("ID,name\np1,Ada\np2,Ada\n", ["p1", "p2"]),
        ("NAME,name\nA,Ada\nB,Bo\n", ["Ada", "Bo"]),
        ("Id,name\n,Ada\n,Bo\n", ["Ada", "Bo"]),
    ],
)
def test_people_are_named_by_columns_in_any_letter_case(
    dialoom: Command, folder: Path, people: str, names: list[str]
) -> None:
    (folder / "people.csv").write_text(people)
    (folder / "support.toml").write_text(STUDY.replace("person.name", "person.portrait"))
    output = dialoom("run", "support.toml", "-o", "support.db").stdout
    episodes = [*api.open_run(folder / "support.db").episodes()]
    assert [each.facets["person"] for each in episodes] == [name for name in names for _ in range(2)]
    assert "name of an earlier row" not in output


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ("zip = true", [("Ada", "return a kettle"), ("Bo", "change an address")]),
        ("per_person = 1", [("Ada", "change an address"), ("Bo", "change an address")]),
        (None, [("Ada", None), ("Bo", None)]),
    ],
)
def test_tasks_are_combined_with_people(
    dialoom: Command, folder: Path, tasks: str | None, expected: list[tuple[str, str | None]]
) -> None:
    """Tasks are paired with people, drawn with the seed, or absent."""
    text = STUDY.replace("[tasks]", f"[tasks]\n{tasks}")
    if tasks is None:
        text = STUDY.replace("[tasks]\nrows", "#").replace("{{ task.goal }}", "a kettle")
    (folder / "support.toml").write_text(text)
    dialoom("run", "support.toml", "-o", "support.db")
    found = [
        (each.facets["person"], each.facets.get("goal")) for each in api.open_run(folder / "support.db").episodes()
    ]
    assert found == expected


CODE = """
def gave_number(talk):
    return "AB-" in talk.text("assistant")


def done(talk):
    return len(talk.messages) == 3 and "enough"
"""


def test_an_expression_that_matches_nothing_is_reported(dialoom: Command, folder: Path) -> None:
    dialoom("run", "support.toml", "-o", "s.db", "--sample", 1)
    shown = dialoom("show", "s.db", "--where", "goal == 'lampp'")
    assert (shown.stdout, shown.stderr) == ("", "no scenario matches --where \"goal == 'lampp'\"\n")
    shown = dialoom("show", "s.db", "--where", "lines > 0", "--search", "xylophone", "--json")
    assert (shown.stdout, shown.stderr) == ("", "no scenario matches --where 'lines > 0', --search 'xylophone'\n")
    assert dialoom("show", "s.db", "--where", "lines > 0").stderr == ""
    requirement = "resolved >= 10%"
    for command in (
        ["report", "s.db", "--table", "x"],
        ["report", "s.db", "-o", "r"],
        ["require", "s.db", requirement],
    ):
        refused = dialoom(*command, "--where", "goal == 'lampp'", code=2).stderr
        assert refused == "dialoom: --where \"goal == 'lampp'\" matches no finished scenario of s.db\n"
    assert not (folder / "r").exists()


def test_a_column_named_like_a_count_or_property_is_not_mistaken_for_it(dialoom: Command, folder: Path) -> None:
    people = "name,turns,number,state,note\nAda,7,x,TX,a\nBo,9,y,done,b\n"
    (folder / "people.csv").write_text(people)
    dialoom("run", "support.toml", "-o", "s.db")
    with api.Run(folder / "s.db") as run:
        for name, group, value in (("turns", "counts", 7), ("number", "scenario", "x"), ("state", "scenario", "TX")):
            with pytest.raises(api.DialoomError, match=rf"write facets.{name} or {group}.{name}"):
                [*run.episodes(where=f"{name} == {value!r}")]
            assert [each.facets["person"] for each in run.episodes(where=f"facets.{name} == {value!r}")] == ["Ada"] * 2
        assert len([*run.episodes(where="counts.turns < 7 and scenario.state == 'done'")]) == 4
        assert len([*run.episodes(where="scenario.number == 2 or note == 'b'")]) == 3
    refused = dialoom("show", "s.db", "--where", "turns == 7", code=2).stderr
    assert "--where 'turns == 7': 'turns' is a column with the value '7'" in refused


@pytest.fixture
def python_study(dialoom: Command, folder: Path) -> Path:
    """Return the folder of a half-played run whose study uses Python functions."""
    named = STUDY.replace("pattern = ", 'python = "checks.py:gave_number" #')
    (folder / "support.toml").write_text(named.replace('{ keyword = "GOODBYE" }', '{ python = "checks.py:done" }'))
    (folder / "checks.py").write_text(CODE)
    dialoom("run", "support.toml", "-o", "support.db", "--max-calls", 9, "--concurrency", 1, code=3)
    return folder


def test_functions_of_files_end_and_score_conversations(dialoom: Command, python_study: Path) -> None:
    """They are found from another working folder, too."""
    (python_study / "else").mkdir()
    (python_study / "support.db").rename(python_study / "else" / "moved.db")
    dialoom("resume", "else/moved.db", "--max-calls", "none")
    episodes = list(api.open_run(python_study / "else" / "moved.db").episodes())
    assert {each.outcome.ended_by for each in episodes} == {"enough"}
    assert {len(each.outcome.messages) for each in episodes} == {3}
    scores = {each.metric: each.score for each in episodes[0].outcome.judgements}
    assert scores["gave_number"] is False and set(scores) == {"resolved", "tone", "gave_number"}


def test_a_check_that_raises_is_reported_and_fails_the_run(dialoom: Command, python_study: Path) -> None:
    """The run's end and its status show the number of conversations and the first error."""
    (python_study / "checks.py").write_text(
        CODE.replace('"AB-" in', '1 / ("kettle" not in talk.text("user")) and "AB-" in')
    )
    output = dialoom("run", "support.toml", "-o", "raising.db", code=1).stdout
    line = "failed check: gave_number in 2 conversations (ZeroDivisionError: division by zero)\n"
    assert "4 done, 0 failed" in output and line in output
    assert line in dialoom("status", "raising.db").stdout
    assert json.loads(dialoom("status", "raising.db", "--json").stdout)["check_errors"] == [
        {"metric": "gave_number", "conversations": 2, "error": "ZeroDivisionError: division by zero"}
    ]
    assert line in dialoom("resume", "raising.db", code=1).stdout


def test_conversations_are_scored_again_with_a_corrected_check(dialoom: Command, python_study: Path) -> None:
    """The two commands named by the refusal do so; no conversation is played again."""
    (python_study / "checks.py").write_text(CODE.replace('"AB-" in', '1 / 0 and "AB-" in'))
    dialoom("run", "support.toml", "-o", "raising.db", code=1)
    (python_study / "checks.py").write_text(CODE)
    errors = dialoom("resume", "raising.db", code=2).stderr
    export, imported = re.findall("'dialoom ([^']+)'", errors)
    dialoom(*export.split())
    dialoom(*imported.replace("STUDY.toml", "support.toml").split())
    dialoom("run", "support.toml", "-o", "whole.db")
    scored, whole = (
        [
            {each.metric: each.score for each in episode.outcome.judgements}["gave_number"]
            for episode in api.open_run(python_study / name, trust=True).episodes()
        ]
        for name in ("talks.db", "whole.db")
    )
    assert scored == whole and len(whole) == 4 and None not in whole


def test_requirements_of_a_check_that_scores_nothing_or_has_changed(dialoom: Command, python_study: Path) -> None:
    dialoom("run", "support.toml", "-o", "before.db")
    (python_study / "checks.py").write_text(CODE.replace('"AB-" in', 'None if True else "AB-" in'))
    dialoom("run", "support.toml", "-o", "silent.db")
    output = dialoom("require", "silent.db", "gave_number >= 50%", "--allow", "offline", code=1).stdout
    assert output == "NOT MET: gave_number >= 50.0 %: no score: there are no scores\n"
    output = dialoom("require", "silent.db", "--not-worse-than", "before.db", code=2).stderr
    assert "they also differ in code of checks.py:done, code of checks.py:gave_number" in output


def test_large_scores_are_listed_without_exponents(python_study: Path, dialoom: Command) -> None:
    (python_study / "checks.py").write_text(CODE.replace('"AB-" in talk.text("assistant")', "12345.6"))
    dialoom("run", "support.toml", "-o", "large.db", "--sample", 1)
    assert " 12346 " in dialoom("show", "large.db").stdout


def test_a_changed_study_is_named_and_the_stored_one_is_used(dialoom: Command, python_study: Path) -> None:
    study = python_study / "support.toml"
    study.write_text(study.read_text() + '\n[[judge]]\nmetric = "brief"\nrubric = "Replies are brief."\n')
    judging = ("judge", "support.db", "--model", "offline/placeholder", "--name", "b")
    for command in (("resume", "support.db", "--max-calls", "none"), judging):
        output = dialoom(*command).stdout
        assert "support.toml has changed since support.db was created; the study stored in the run is used" in output
    assert "brief" not in dialoom("report", "support.db", "--table", "scores").stdout


def test_a_changed_function_is_refused(dialoom: Command, python_study: Path) -> None:
    """Resuming and judging are refused; the run can still be read."""
    (python_study / "checks.py").write_text(CODE + "\n# changed\n")
    for command in (("resume", "support.db"), ("judge", "support.db", "--model", "offline/placeholder")):
        errors = dialoom(*command, code=2).stderr
        assert "checks.py is missing or has changed since support.db was created; restore it; or score the" in errors
    (python_study / "checks.py").unlink()
    assert "checks.py is missing or has changed" in dialoom("resume", "support.db", code=2).stderr
    assert "gave_number" in dialoom("report", "support.db").stdout


def test_a_conversation_with_changed_functions_is_viewed_and_not_played(dialoom: Command, python_study: Path) -> None:
    """Changed functions score nothing, neither in a comparison nor in a saved case; restored, they score the branch."""
    dialoom("resume", "support.db", "--max-calls", "none")
    looking = "goto turn 1\nprompt\ncalls\nback\nforward\nfork other\n"
    whole = "switch other\nsay assistant AB-1\ncontinue\ndiff\n"
    (python_study / "checks.py").write_text(CODE + "\nopen('ran', 'w')\n")
    seen = dialoom("step", "support.db", 1, input=f"{looking}diff\nswitch main\ndiff\n")
    assert "Recorded steps can be viewed, without the scores of checks" in seen.stderr
    assert "assistant is called by assistant" in seen.stdout and "gave_number" not in seen.stdout
    steps = ("continue", "say assistant AB-1", "resample", "promote main", "switch main\nsave case.json")
    for line in steps:
        errors = dialoom("step", "support.db", 1, "--branch", "other", input=f"{line}\nforks\n", code=2).stderr
        assert (
            f"{line.splitlines()[-1]}): {python_study}/checks.py is missing or has changed since support.db" in errors
        )
    (python_study / "checks.py").unlink()
    assert "assistant is called by assistant" in dialoom("step", "support.db", 1, input="goto turn 1\nprompt\n").stdout
    assert not (python_study / "ran").exists() and not (python_study / "case.json").exists()
    (python_study / "checks.py").write_text(CODE)
    seen = dialoom("step", "support.db", 1, input=whole)
    assert "gave_number" in seen.stdout and "checks.py" not in seen.stderr


def test_functions_of_an_untrusted_study_are_not_executed(dialoom: Command, python_study: Path) -> None:
    """Nothing named by a run of another machine is imported without trust; a study without Python needs none."""
    (python_study / "checks.py").write_text(CODE + "\nopen('ran', 'w')\n")
    with sqlite3.connect(python_study / "support.db") as connection:
        connection.execute("UPDATE run SET value = 'ffff' WHERE key = 'id'")
    errors = dialoom("resume", "support.db", code=2).stderr
    assert "names the function checks.py:done, which would run" in errors and "--trust" in errors
    dialoom("report", "support.db", code=2)
    assert not (python_study / "ran").exists()
    (python_study / "support.toml").write_text(STUDY)
    dialoom("run", "support.toml", "-o", "plain.db")
    with sqlite3.connect(python_study / "plain.db") as connection:
        connection.execute("UPDATE run SET value = 'eeee' WHERE key = 'id'")
    dialoom("report", "plain.db")


@pytest.mark.usefixtures("python_study")
def test_a_saved_conversation_of_a_study_is_replayed(dialoom: Command) -> None:
    """The case contains the study."""
    dialoom("step", "support.db", 1, input="save case.json\nquit\n")
    assert "the same path" in dialoom("replay", "case.json").stdout


def test_example_study_and_its_mediator_can_be_played(dialoom: Command, tmp_path: Path) -> None:
    """The shipped study has ten people, and a conversation of four participants follows their speaking rules."""
    for name in ("support.toml", "people.csv", "tasks.csv", "checks.py", "mediation.toml"):
        shutil.copy(ROOT / "docs" / "examples" / "studies" / name, tmp_path)
    dialoom("run", "support.toml", "-o", "support.db")
    assert len(api.open_run(tmp_path / "support.db")) == 20
    asked: list[list[dict[str, str]]] = []

    async def assistant(messages: list[dict[str, str]]) -> str:
        asked.append(messages)
        return "It is a deal." if len(messages) > 3 else "No."

    run = api.play(
        str(tmp_path / "mediation.toml"), path=tmp_path / "mediation.db", models={"assistant": assistant}, sample=1
    )
    speakers = [line.role for episode in run.episodes() for line in episode.outcome.messages]
    assert speakers[:7] == ["user", "assistant", "mediator", "user", "assistant", "mediator", "clerk"]
    received = [message["content"] for message in asked[1] if message["role"] == "user"]
    assert received[1].startswith("mediator: ") and received[0].startswith("user: ")


def test_the_assistant_may_open_and_a_keyword_may_end(folder: Path) -> None:
    """The keyword ends the conversation only in a message of its role."""
    opened = STUDY.replace("max_turns = 5", 'max_turns = 5\nopens = "assistant"')
    (folder / "support.toml").write_text(opened.replace('"GOODBYE"', '"GOODBYE", by = "assistant"'))

    async def assistant(messages: list[dict[str, str]]) -> str:
        return "Hello, GOODBYE is what you say to me?" if len(messages) > 4 else "Hello."

    async def user(_messages: list[dict[str, str]]) -> str:
        return "GOODBYE already?"

    run = api.play(
        str(folder / "support.toml"), path=folder / "s.db", models={"assistant": assistant, "user": user}, sample=1
    )
    (episode,) = run.episodes()
    assert [line.role for line in episode.outcome.messages[:2]] == ["assistant", "user"]
    assert episode.outcome.messages[-1].role == "assistant" and episode.outcome.ended_by == "keyword GOODBYE"


SLOW = """
import asyncio


async def reply(messages):
    await asyncio.sleep(0.02)
    if len(messages) > 2:
        open("second", "a").close()
    return f"Noted, {len(messages)}."
"""


def test_exports_are_the_same_bytes_after_a_kill_and_at_any_concurrency(dialoom: Command, folder: Path) -> None:
    """The run is killed in the middle of the conversations; it has a third participant."""
    named = '[[role]]\nname = "clerk"\nbrief = "You take notes."\nspeaks = { keyword = "Noted" }\n'
    (folder / "support.toml").write_text(STUDY + named)
    (folder / "slow.py").write_text(SLOW)
    run = ["run", "support.toml", "--model", "assistant=python:slow:reply", "-o"]
    with CommandProcess(folder, *run, "killed.db", "--concurrency", 2) as process:
        while not (folder / "second").exists():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.01)
        process.kill()
        process.communicate()
    assert api.open_run(folder / "killed.db").status().pending
    dialoom("resume", "killed.db")
    dialoom(*run, "alone.db", "--concurrency", 1)
    dialoom(*run, "many.db", "--concurrency", 9)
    for name in ("killed", "alone", "many"):
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
    rows = {(folder / f"{name}.jsonl").read_bytes() for name in ("killed", "alone", "many")}
    assert len(rows) == 1 and b"clerk" in rows.pop()


def test_repeated_openings_are_drawn_again_whatever_the_interruptions(dialoom: Command, folder: Path) -> None:
    asked: list[str] = []

    async def user(messages: list[dict[str, str]]) -> str:
        if len(messages) > 2:
            return "Thank you. DONE"
        person = "Ada" if "Ada" in messages[0]["content"] else "Bo"
        asked.append(person)
        return "It is about my kettle." if person == "Ada" or asked.count("Bo") < 4 else "My order is wrong."

    (folder / "support.toml").write_text(STUDY + "[variety]\nredraws = 2\n")
    run = api.play(str(folder / "support.toml"), path=folder / "whole.db", models={"user": user}, concurrency=1)
    openings = [episode.outcome.messages[0].content for episode in run.episodes()]
    assert openings == ["It is about my kettle."] * 2 + ["My order is wrong."] * 2
    assert [len(asked), asked.count("Ada")] == [7, 2]
    with sqlite3.connect(folder / "whole.db") as connection:
        notes = [text for (text,) in connection.execute("SELECT text FROM notes ORDER BY id")]
    assert [note.rpartition(": ")[2] for note in notes if note.startswith("conversations played again")] == ["2", "1"]
    again = "Played again, with a new opening or in a retry: 2 of 4 scenarios"
    assert f"{again}." in run.report().notes
    run.export(path=folder / "set", test_share=0.5)
    assert f"* {again}\n" in (folder / "set" / "README.md").read_text()
    for name, concurrency in (("one", 1), ("many", 9)):
        dialoom("run", "support.toml", "-o", f"{name}.db", "--concurrency", concurrency)
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
    dialoom("run", "support.toml", "-o", "stopped.db", "--max-calls", 40, "--concurrency", 1, code=3)
    dialoom("resume", "stopped.db", "--max-calls", "none")
    dialoom("export", "stopped.db", "-o", "stopped.jsonl")
    assert len({(folder / f"{name}.jsonl").read_bytes() for name in ("one", "many", "stopped")}) == 1
    assert "distinct openings" in dialoom("report", "one.db", "--table", "variety").stdout


def test_openings_without_spaces_are_compared_by_character(folder: Path) -> None:
    openings = iter(
        ["我想退货，因为水壶坏了。", "我想退货，因为水壶坏了！", "我想退货了，因为水壶坏了。", "可以换货吗？"] * 4
    )

    async def user(messages: list[dict[str, str]]) -> str:
        return "谢谢。DONE" if len(messages) > 2 else next(openings)

    (folder / "support.toml").write_text(STUDY + "[variety]\nredraws = 1\nsimilarity = 0.7\n")
    run = api.play(str(folder / "support.toml"), path=folder / "r.db", models={"user": user}, concurrency=1)
    (notes,) = ([note for note in run.report().notes if note.startswith("Played again")],)
    assert notes == ["Played again, with a new opening or in a retry: 1 of 4 scenarios."]


def test_quotas_bound_the_conversations_of_a_value(dialoom: Command, folder: Path) -> None:
    (folder / "support.toml").write_text(STUDY + '[quotas]\nstyle = { wordy = 1, "in a hurry" = 5 }\n')
    output = dialoom("run", "support.toml", "-o", "support.db").stdout
    assert "quota style = in a hurry: 2 of 5 scenarios" in output
    assert [each.facets["person"] for each in api.open_run(folder / "support.db").episodes()] == ["Ada", "Ada", "Bo"]
    assert "without a conversation" not in output
    (folder / "people.csv").write_text("name,style\n" + "".join(f"P{number},wordy\n" for number in range(6)))
    output = dialoom("run", "support.toml", "-o", "few.db").stdout
    assert "quotas leave 5 of 6 people without a conversation: P1, P2, P3 and 2 more" in output
    (folder / "support.toml").write_text(STUDY + "[quotas]\nmood = { good = 1 }\n")
    output = dialoom("run", "support.toml", "-o", "other.db", code=2).stderr
    assert "support.toml:33: [quotas] has the column 'mood', which neither people nor tasks have" in output


def test_a_sample_to_judge_draws_scenarios_with_all_their_trials(dialoom: Command, folder: Path) -> None:
    output = dialoom("run", "support.toml", "-o", "support.db", "--trials", 3).stdout
    assert "planned 12 conversations (4 scenarios, 3 trials each)" in output
    assert "(12 of 12 conversations of the run are done)" in output
    assert dialoom("status", "support.db").stdout.splitlines()[1].startswith("12 conversations: 12 done")
    dialoom("export", "support.db", "-o", "set", "--test-share", 0.5)
    card = (folder / "set" / "README.md").read_text()
    assert "| file | rows | conversations |" in card and "* conversations: 12 planned" in card
    assert "* each scenario was played 3 times (`trial`)" in card
    report = dialoom("report", "support.db", "--table", "scores").stdout
    assert "12 of 12 conversations done" in report and "scenarios" not in report.split("In brackets")[0]
    dialoom("judge", "support.db", "--model", "offline/placeholder", "--name", "some", "--sample", 2)
    with sqlite3.connect(folder / "support.db") as connection:
        query = "SELECT id FROM scenarios JOIN judged ON scenario = position WHERE judging = 'some'"
        judged = [id_.partition("~")[0] for (id_,) in connection.execute(query)]
    assert len(judged) == 6 and {judged.count(id_) for id_ in judged} == {3}


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("age > 40", ["Bo", "Cy"]),
        ("40 < age and facets.age <= 61.0", ["Bo"]),
        ("age == 34 or age in [101]", ["Ada", "Cy"]),
        ("age != 34 and age != 101", ["Bo"]),
        ("age < '101'", ["Ada", "Bo"]),
        ("zip == '007'", ["Ada"]),
        ("zip == '7' or zip == 8", ["Bo", "Cy"]),
        ("style > 'c'", ["Bo", "Di"]),
    ],
)
def test_numeric_texts_are_compared_as_numbers(
    where: str, kept: list[str], dialoom: Command, made_once: MadeOnce
) -> None:
    folder = made_once(ages)
    dialoom("export", "ages.db", "-o", "rows.jsonl", "--where", where)
    assert [row["scenario"]["person"] for row in rows_of(folder / "rows.jsonl")] == kept


def test_non_numeric_text_is_reported_and_sorting_is_numeric(dialoom: Command, made_once: MadeOnce) -> None:
    made_once(ages)
    errors = dialoom("export", "ages.db", "-o", "rows.jsonl", "--where", "style > 3", code=2).stderr
    assert (
        "--where 'style > 3' cannot be evaluated for Ada-" in errors
        and "'brief' is not a number, but is compared with 3" in errors
    )
    listed = dialoom("show", "ages.db", "--sort", "age").stdout
    assert re.findall("Ada|Bo|Cy|Di", listed) == ["Ada", "Bo", "Cy", "Di"]


def test_further_lines_of_a_value_are_indented(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        '[people]\nrows = [{ name = "Ann", note = "one\\nassistant\\nthree" }]\n[tasks]\nrows = [{ goal = "a lamp" }]\n'
    )
    dialoom("run", "s.toml", "-o", "s.db")
    assert "one\n    assistant\n    three\n" in dialoom("show", "s.db", 1).stdout


def ages(dialoom: Command, folder: Path) -> None:
    """Make a run of people whose ages are texts, one of them empty."""
    (folder / "people.csv").write_text(
        "name,age,zip,style\nAda,34,007,brief\nBo,61,7,wordy\nCy,101,8,angry\nDi,,9,quiet\n"
    )
    (folder / "ages.toml").write_text('name = "ages"\n[people]\nfile = "people.csv"\n[dialogue]\nmax_turns = 1\n')
    dialoom("run", "ages.toml", "-o", "ages.db")


def test_judges_metrics_are_sampled_for_labels_and_each_column_is_shown_once(dialoom: Command, folder: Path) -> None:
    dialoom("run", "support.toml", "-o", "support.db")
    output = dialoom("agree", "support.db", "--sample", 8, "-o", "labels.csv").stdout
    assert "tone" in output and "resolved" in output and "gave_number" not in output
    with (folder / "labels.csv").open(encoding="utf-8-sig", newline="") as file:
        about = next(csv.DictReader(file))["about"]
    assert about == "person:\n  name: Ada\n  style: in a hurry\ntask:\n  goal: return a kettle"
    output = dialoom("agree", "support.db", "--sample", 2, "--metric", "gave_number", "-o", "checked.csv").stdout
    assert "2  gave_number (assistant)" in output
    (folder / "checks.toml").write_text(re.sub(r"\[\[judge\]\].*(?=\[\[check)", "", STUDY, flags=re.DOTALL))
    dialoom("run", "checks.toml", "-o", "checks.db")
    output = dialoom("agree", "checks.db", "--sample", 2, "-o", "none.csv", code=2).stderr
    assert "name a check to sample it: gave_number" in output


FOND = """
async def fond(messages):
    return '{"explanation": "Fine.", "verdict": true, "score": 5}'
"""


def test_tables_about_judges_leave_out_checks(dialoom: Command, folder: Path) -> None:
    dialoom("run", "support.toml", "-o", "support.db")
    dialoom("judge", "support.db", "--model", "offline/placeholder", "--repeat", 2)
    (folder / "jury.py").write_text(FOND)
    dialoom("judge", "support.db", "--model", "judge=python:jury:fond", "--name", "fond")
    report = api.open_run(folder / "support.db").report()
    tables = {table.name: table for table in report.tables if "metric" in table.columns}
    about = [name for name in tables if name in ("judges", "repeats") or name.startswith("compared-")]
    assert len(about) >= 3
    for name in about:
        metrics = {row[tables[name].columns.index("metric")] for row in tables[name].rows}
        assert metrics == {"resolved (assistant)", "tone (assistant)"}, name
    printed = dialoom("report", "support.db").stdout
    assert printed.count("In brackets: 95 % intervals by Wilson") == 1, "in the first of several tables about judges"

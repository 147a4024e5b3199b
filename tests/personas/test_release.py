"""The PersonaLens release: importer, schema, census and demographics."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.personas import DataError, PersonaLensRelease, load_samples
from dialoom.personas.profile import normalize_domain_name, read_domains, resolve_affinity
from dialoom.personas.release import Census
from dialoom.personas.rows import DEMOGRAPHIC_KEYS, read_demographics
from tests.conftest import REAL, needs_real_data
from tests.invented import ALARM, DEMOGRAPHICS, profile, write_release

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def read(root: Path) -> tuple[PersonaLensRelease, list[str]]:
    """Read a whole release; return the reader and the ids of the tasks."""
    release = PersonaLensRelease(root)
    found = [task.id for user in release.user_ids() for task in release.tasks(release.profile(user), user)]
    return release, found


def test_person_is_read_with_tasks_in_order(tmp_path: Path) -> None:
    release, tasks = read(write_release(tmp_path))
    assert tasks == ["SD-Alarm-task-1", "MD-task-1"]
    assert release.repairs.summary() == "1 empty affinity left out"
    person = release.profile("user7")
    assert person.demographics.for_prompt()["reside_country"] == "Portugal"
    assert "user_id" not in person.demographics.for_prompt()
    assert person.domains["Restaurants"].affinities == {"Favourite Cuisines": ("Peruvian", "Goan")}


def test_masked_domain_removes_its_tasks(tmp_path: Path) -> None:
    """A task is included only if all its domains are of interest (section 2.2 of the paper)."""
    changed = profile()
    changed["interests"]["Restaurants"] = 0
    release, tasks = read(write_release(tmp_path, changed))
    assert tasks == ["SD-Alarm-task-1"]
    assert "1 task left out because one of the domains is masked" in release.repairs.summary()


def test_stray_keys_withheld_values_and_odd_spellings_are_repaired_and_counted(tmp_path: Path) -> None:
    changed = profile()
    changed["interests"]["Alarm**"] = changed["interests"].pop("Alarm")
    changed["affinities"]["Restaurants"]["Dietary Needs"] = ["[Redacted]", "N/A"]
    changed["affinities"]["Restaurants"]["Favourite Haunt"] = "Café Çiçek"
    task = {**ALARM, "Relevant Affinity Types": ["Wake-up Time (Alarm)", "Snooze Length"]}
    task["situations"] = {**ALARM["situations"], "Time of Day": "just before dawn"}
    release, tasks = read(write_release(tmp_path, changed, [task]))
    assert tasks == ["SD-Alarm-task-1"]
    for count in (
        "1 domain name with stray characters repaired",
        "2 '[Redacted]' or 'N/A' values left out",
        "1 affinity matched without their '(Domain)' suffix",
        "1 affinity that a task names but its domains lack",
        "kept unchanged, no action needed: 1 device, day or time in free wording, 1 profile with",
    ):
        assert count in release.repairs.summary()
    assert "\n" not in release.repairs.summary()


def test_withheld_values_reach_no_prompt_and_are_counted(tmp_path: Path) -> None:
    changed = profile()
    changed["demographics"] |= {"religion": "N/A", "ethnicity": " n/a"}
    task = {**ALARM, "situations": {**ALARM["situations"], "Location": "A cafe in [redacted], Spain"}}
    release = PersonaLensRelease(write_release(tmp_path, changed, [task]))
    person = release.profile("user7")
    (situation,) = (task.situation for task in release.tasks(person))
    assert person.demographics.for_prompt().keys() == DEMOGRAPHICS.keys() - {"user_id", "religion", "ethnicity"}
    assert "Location" not in situation.for_prompt() and len(situation.for_prompt()) == 4
    assert (person.demographics.religion, situation.location) == ("N/A", "A cafe in [redacted], Spain")
    assert "3 '[Redacted]' or 'N/A' values of demographics or situations, which no" in release.repairs.summary()


def test_both_spellings_of_favourite_mean_the_same_affinity() -> None:
    assert resolve_affinity("Favorite Authors", ["Favourite Authors"])[0] == "Favourite Authors"
    assert resolve_affinity("Favourite Authors", ["Favorite Authors"])[0] == "Favorite Authors"
    assert resolve_affinity("Authors", ["Favorite Authors"])[0] is None


def test_domain_names_are_repaired_only_when_the_rest_is_a_domain() -> None:
    assert normalize_domain_name("Buses**", ["Buses"]) == "Buses"
    assert normalize_domain_name("Barges**", ["Buses"]) == "Barges**"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("profile.json", "{not json", "not JSON"),
        ("profile.json", "[]", "it must be an object"),
        ("profile.json", "{}", "'affinities' is missing"),
        ("profile.json", json.dumps({**profile(), "demographics": {"user_id": "user7"}}), "'age' is missing"),
        ("profile.json", json.dumps({**profile(), "affinities": {"Alarm": {"Sound": 4}}}), "'Sound' of 'Alarm' is 4"),
        ("tasks.json", json.dumps({"Task 1": {"task_id": "x"}}), "Task 1: 'Task Description' is missing"),
        ("tasks.json", json.dumps({"T": {**ALARM, "Relevant Domains": ["Chess"]}}), "the domain 'Chess'"),
    ],
)
def test_broken_file_is_named_with_the_place(tmp_path: Path, file: str, content: str, message: str) -> None:
    write_release(tmp_path)
    path = tmp_path / "data" / "profile" / "user7" / file
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


@settings(max_examples=150)
@given(section=st.sampled_from(["affinities", "demographics", "interests", "interactions"]), value=json_values)
def test_any_json_in_a_profile_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, section: str, value: Any
) -> None:
    root = write_release(tmp_path_factory.mktemp("release"), {**profile(), section: value})
    try:
        read(root)
    except DataError as error:
        assert str(root) in str(error)


@settings(max_examples=150)
@given(key=st.sampled_from(sorted(ALARM)), value=json_values)
def test_any_json_in_a_task_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, key: str, value: Any) -> None:
    root = write_release(tmp_path_factory.mktemp("release"), tasks=[{**ALARM, key: value}])
    try:
        read(root)
    except DataError as error:
        assert str(root) in str(error)


def test_samples_are_complete() -> None:
    """There are at least 12 people with all 20 domains and summaries, 30 single-domain and 8 multi-domain tasks."""
    release = load_samples()
    people = [release.profile(user) for user in release.user_ids()]
    tasks = {task.id: task for person in people for task in release.tasks(person)}
    kinds = [task.kind for task in tasks.values()]
    assert len(people) >= 12
    assert all(len(person.domains) == 20 for person in people)
    assert all(domain.summary and domain.affinities for person in people for domain in person.domains.values())
    assert kinds.count("single") >= 30
    assert kinds.count("multi") >= 8
    assert release.repairs.summary().count("lack") == 0


@needs_real_data
def test_real_release_is_read_whole_and_its_defects_are_counted() -> None:
    """It has four users, 304 tasks, and defects such as user874's malformed key."""
    release, tasks = read(REAL)
    assert release.user_ids() == ["user2", "user42", "user874", "user1041"]
    assert len(tasks) == 304
    assert "1 domain name with stray characters repaired" in release.repairs.summary()
    assert "2 empty affinities left out" in release.repairs.summary()
    assert "32 affinities matched by another spelling" in release.repairs.summary()


def test_malformed_domain_is_named_by_its_place(tmp_path: Path) -> None:
    (path := tmp_path / "schema.json").write_text(json.dumps([{"domain": "Garden", "affinities": []}, 7]))
    with pytest.raises(DataError, match=r"schema\.json: domain 1: it is 7: "):
        read_domains(path)


ORACLES = REAL.parent.parent / "protocols" / "personalens-statistics.md"
"""A table with a row for each preference: domain, name, x, possible, printed, n, N, E."""
_ROW = re.compile(r"\| ([A-Z][^|]+) \| ([^|]+) \| x? ?\| ([-\d]+) \| [^|]+ \| (\d+) \| (\d+) \| ([-\d.]+) \|")


@pytest.fixture(scope="module")
def four_users() -> Census:
    """Return the census of the real people."""
    return Census.of(PersonaLensRelease(REAL))


@needs_real_data
def test_demographics_and_dialogues_of_the_four_users(four_users: Census) -> None:
    """The figures are those of tables 1, 6 and 7."""
    assert four_users.people == 4
    assert four_users.demographics["age"] == {"55-64 years old": 2, "18-24 years old": 1, "45-54 years old": 1}
    assert four_users.demographics["religion"] == {"Christian": 2, "Folk religion": 1, "Non-religious": 1}
    assert four_users.demographics["employment_status"] == {"Working full-time": 3, "Student": 1}
    assert set(four_users.demographics["birth_country"]) == {"South Africa", "Norway", "United Kingdom", "Canada"}
    assert four_users.pairs == {"single": 246, "multi": 58}
    assert (four_users.dialogues["Calendar"], four_users.dialogues["Rental Cars"], four_users.dialogues["Buses"]) == (
        63,
        5,
        0,
    )
    assert four_users.dialogues.total() == 447


@needs_real_data
def test_evenness_of_all_ninety_preferences(four_users: Census) -> None:
    """The rows are those of tables 8 and 9."""
    wanted = {
        (row[1], row[2]): tuple(row.groups()[2:]) for row in map(_ROW.match, ORACLES.read_text().splitlines()) if row
    }
    if not wanted:
        pytest.skip("the table of expected values is missing")
    found = {}
    for domain, name, values in four_users.rows():
        possible = "-" if values.possible is None else str(values.possible)
        evenness = "-" if values.evenness is None else f"{values.evenness:.4f}"
        found[domain, name] = possible, str(len(values.counts)), str(values.counts.total()), evenness
    assert found == wanted


def test_census_counts_withheld_values_and_masked_domains(tmp_path: Path) -> None:
    source = load_samples().root / "data" / "profile"
    name = sorted(path.name for path in source.iterdir() if path.is_dir())[0]
    folder = tmp_path / "data" / "profile" / name
    folder.mkdir(parents=True)
    profile = json.loads((source / name / "profile.json").read_text())
    domain = next(iter(profile["affinities"]))
    profile["affinities"][domain] = {"Sound": ["N/A", "Bell", "bell"]}
    profile["interests"][domain] = 0
    profile["demographics"]["religion"] = "N/A"
    (folder / "profile.json").write_text(json.dumps(profile))
    (folder / "tasks.json").write_text("{}")
    census = Census.of(PersonaLensRelease(tmp_path))
    assert census.preferences[domain, "Sound"].counts == {"N/A": 1, "Bell": 1, "bell": 1}
    assert census.preferences[domain, "Sound"].evenness == pytest.approx(1.0)
    assert census.demographics["religion"] == {"Prefer not to say": 1}


def drawn(path: Path | None, count: int, seed: int = 1) -> list[dict[str, str]]:
    """Return a number of people."""
    return list(islice(read_demographics(path).people(random.Random(seed)), count))


def tables(folder: Path, *more: str, leave_out: Sequence[str] = ()) -> Path:
    """Write a file of tables with one value for each key, after the given tables."""
    path = folder / "people.toml"
    plain = [f'[[draw]]\nkey = "{key}"\nweights = {{ "x" = 1 }}' for key in DEMOGRAPHIC_KEYS if key not in leave_out]
    path.write_text("\n".join([*more, *plain]))
    return path


def rows(folder: Path, *people: str, header: str = ",".join(DEMOGRAPHIC_KEYS)) -> Path:
    """Write a file of people."""
    path = folder / "people.csv"
    path.write_text("\n".join([header, *people]) + "\n")
    return path


def test_shipped_tables_give_every_key_and_nothing_impossible() -> None:
    """People of 65 or more are retired or work, and nobody else is retired; a larger sample extends a smaller one."""
    people = drawn(None, 2_000)
    assert all(set(person) == set(DEMOGRAPHIC_KEYS) and all(person.values()) for person in people)
    assert {p["employment_status"] for p in people if p["age"] == "65+ years old"} == {
        "Retired",
        "Working part-time",
        "Working full-time",
    }
    assert not any(p["employment_status"] == "Retired" for p in people if p["age"] != "65+ years old")
    assert drawn(None, 20) == people[:20] != drawn(None, 20, seed=2)


def test_weights_are_those_of_the_first_table_that_fits(tmp_path: Path) -> None:
    age = '[[draw]]\nkey = "age"\nweights = { "young" = 1, "old" = 1 }'
    young = '[[draw]]\nkey = "employment_status"\ngiven = { age = ["young"] }\nweights = { "student" = 1 }'
    others = '[[draw]]\nkey = "employment_status"\nweights = { "works" = 1, "rests" = 3 }'
    path = tables(tmp_path, age, young, others, leave_out=("age", "employment_status"))
    counts = Counter((person["age"], person["employment_status"]) for person in drawn(path, 4_000))
    assert set(counts) == {("young", "student"), ("old", "works"), ("old", "rests")}
    assert counts["old", "rests"] / counts["old", "works"] == pytest.approx(3, rel=0.15)


def test_people_of_a_survey_are_drawn_once_before_any_repeats(tmp_path: Path) -> None:
    people = [",".join([name] * len(DEMOGRAPHIC_KEYS)) for name in "abc"]
    path = rows(tmp_path, *people)
    found = [person["age"] for person in drawn(path, 6)]
    assert sorted(found[:3]) == sorted(found[3:]) == ["a", "b", "c"]
    weighted = [f"{person},{weight}" for person, weight in zip(people, (0, 1, 0), strict=True)]
    path = rows(tmp_path, *weighted, header=",".join([*DEMOGRAPHIC_KEYS, "weight"]))
    assert {person["religion"] for person in drawn(path, 9)} == {"b"}


def test_unusable_demographics_file_is_refused(tmp_path: Path) -> None:
    given = '[[draw]]\nkey = "gender"\ngiven = { age = ["x"] }\nweights = { "y" = 1 }'
    person = ",".join("abcdefghij")
    refused: list[tuple[Callable[[], Path], str]] = [
        (lambda: tables(tmp_path, leave_out=("age", "religion")), "has no table for 'age', 'religion'"),
        (lambda: tables(tmp_path, given), "'age' is used in a condition before it is drawn"),
        (
            lambda: tables(tmp_path, '[[draw]]\nkey = "job"\nweights = { "y" = 1 }'),
            "there is no key 'job'; the keys are age",
        ),
        (lambda: tables(tmp_path, '[[draw]]\nkey = "age"\nweights = { "y" = 0 }'), r"\(age\): all weights are 0"),
        (lambda: tables(tmp_path, '[[draw]]\nkey = "age"\nweights = { "y" = -1 }'), "'draw.0.weights.y' is -1"),
        (lambda: tables(tmp_path, "draw = 1 2"), "not TOML"),
        (lambda: rows(tmp_path, "a,b", header="age,gender"), "has no column for 'employment_status'"),
        (lambda: rows(tmp_path, "a,,c,d,e,f,g,h,i,j"), "people.csv:2: 'gender' is empty; write 'N/A'"),
        (lambda: rows(tmp_path), "contains no person with a weight above 0"),
        (
            lambda: rows(tmp_path, f"{person},much", header=f"{','.join(DEMOGRAPHIC_KEYS)},weight"),
            "the weight is 'much'",
        ),
        (lambda: rows(tmp_path, f"{person},Rome"), "people.csv:2: 11 cells, but the header names 10"),
        (
            lambda: rows(tmp_path, f"{person},k", header=",".join([*DEMOGRAPHIC_KEYS, "age"])),
            "two columns are named 'age'",
        ),
        (
            lambda: rows(tmp_path, person.replace("a", "a" * 1_001)),
            "'age' is 1,001 characters long; the maximum is",
        ),
        (lambda: tables(tmp_path, '[[draw]]\nkey = "age"\nweights = { " " = 1 }'), r"\(age\): a value is empty"),
        (
            lambda: tables(tmp_path, '[[draw]]\nkey = "age"\nweights = { x = 1e308, y = 1e308 }'),
            "sum of the weights is not finite",
        ),
    ]
    for write, message in refused:
        with pytest.raises(DataError, match=message):
            read_demographics(write())
    ends = '[[draw]]\nkey = "age"\nweights = { "x" = 1 }'
    path = tables(tmp_path, ends, given, leave_out=("age", "gender"))
    with pytest.raises(DataError, match="every table of 'gender' has a condition"):
        read_demographics(path)

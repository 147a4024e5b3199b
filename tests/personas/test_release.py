"""The importer: real files are survived and counted, broken ones named, and no JSON whatever makes it crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.personas import DataError, PersonaLensRelease, samples
from dialoom.personas.profile import domain_name, resolve_affinity
from tests.conftest import REAL, needs_real_data
from tests.invented import ALARM, DEMOGRAPHICS, profile, write_release

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def read(root: Path) -> tuple[PersonaLensRelease, list[str]]:
    """Everything in a release: the reader and the ids of the tasks."""
    release = PersonaLensRelease(root)
    found = [task.id for user in release.user_ids() for task in release.tasks(release.profile(user), user)]
    return release, found


def test_a_person_is_read_with_tasks_in_order(tmp_path: Path) -> None:
    """Demographics, affinities (empty ones left out and counted), summaries, tasks."""
    release, tasks = read(write_release(tmp_path))
    assert tasks == ["SD-Alarm-task-1", "MD-task-1"]
    assert release.mendings.summary() == "1 empty affinity left out"
    person = release.profile("user7")
    assert person.demographics.for_prompt()["reside_country"] == "Portugal"
    assert "user_id" not in person.demographics.for_prompt()
    assert person.domains["Restaurants"].affinities == {"Favourite Cuisines": ("Peruvian", "Goan")}


def test_a_masked_domain_takes_its_tasks_away(tmp_path: Path) -> None:
    """Section 2.2 of the paper: a task is given only if every domain of it is of interest."""
    changed = profile()
    changed["interests"]["Restaurants"] = 0
    release, tasks = read(write_release(tmp_path, changed))
    assert tasks == ["SD-Alarm-task-1"]
    assert "1 task left out because one of the domains is masked" in release.mendings.summary()


def test_stray_keys_withheld_values_and_odd_spellings_are_mended_and_counted(tmp_path: Path) -> None:
    """The traps of the release, in one line."""
    changed = profile()
    changed["interests"]["Alarm**"] = changed["interests"].pop("Alarm")
    changed["affinities"]["Restaurants"]["Dietary Needs"] = ["[Redacted]", "N/A"]
    changed["affinities"]["Restaurants"]["Favourite Haunt"] = "Café Çiçek"
    task = {**ALARM, "Relevant Affinity Types": ["Wake-up Time (Alarm)", "Snooze Length"]}
    task["situations"] = {**ALARM["situations"], "Time of Day": "just before dawn"}
    release, tasks = read(write_release(tmp_path, changed, [task]))
    assert tasks == ["SD-Alarm-task-1"]
    for count in (
        "1 domain name with stray characters mended",
        "2 '[Redacted]' or 'N/A' values left out",
        "1 affinity matched without their '(Domain)' suffix",
        "1 affinity that a task names but its domains lack",
        "kept as they are, nothing needs to be done: 1 device, day or time told in free words, 1 profile with",
    ):
        assert count in release.mendings.summary()
    assert "\n" not in release.mendings.summary()


def test_what_is_not_told_reaches_no_prompt_is_counted_and_stays_for_statistics(tmp_path: Path) -> None:
    """`N/A` and `[Redacted]` in demographics and situations."""
    changed = profile()
    changed["demographics"] |= {"religion": "N/A", "ethnicity": " n/a"}
    task = {**ALARM, "situations": {**ALARM["situations"], "Location": "A cafe in [redacted], Spain"}}
    release = PersonaLensRelease(write_release(tmp_path, changed, [task]))
    person = release.profile("user7")
    (situation,) = (task.situation for task in release.tasks(person))
    assert person.demographics.for_prompt().keys() == DEMOGRAPHICS.keys() - {"user_id", "religion", "ethnicity"}
    assert "Location" not in situation.for_prompt() and len(situation.for_prompt()) == 4
    assert (person.demographics.religion, situation.location) == ("N/A", "A cafe in [redacted], Spain")
    assert "3 '[Redacted]' or 'N/A' values of demographics or situations, which no" in release.mendings.summary()


def test_both_spellings_of_favourite_mean_the_same_affinity() -> None:
    """`Favorite Authors` finds `Favourite Authors`, and the other way round."""
    assert resolve_affinity("Favorite Authors", ["Favourite Authors"])[0] == "Favourite Authors"
    assert resolve_affinity("Favourite Authors", ["Favorite Authors"])[0] == "Favorite Authors"
    assert resolve_affinity("Authors", ["Favorite Authors"])[0] is None


def test_domain_names_are_mended_only_when_the_rest_is_a_domain() -> None:
    """`Buses**` is Buses; an unknown name stays as it is."""
    assert domain_name("Buses**", ["Buses"]) == "Buses"
    assert domain_name("Barges**", ["Buses"]) == "Barges**"


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("profile.json", "{not json", "not JSON"),
        ("profile.json", "[]", "an object is needed"),
        ("profile.json", "{}", "'affinities' is missing"),
        ("profile.json", json.dumps({**profile(), "demographics": {"user_id": "user7"}}), "demographics.age"),
        ("profile.json", json.dumps({**profile(), "affinities": {"Alarm": {"Sound": 4}}}), "'Sound' of 'Alarm' is 4"),
        ("tasks.json", json.dumps({"Task 1": {"task_id": "x"}}), "Task 1.Task Description"),
        ("tasks.json", json.dumps({"T": {**ALARM, "Relevant Domains": ["Chess"]}}), "the domain 'Chess'"),
    ],
)
def test_a_broken_file_is_named_with_the_bad_place(tmp_path: Path, file: str, content: str, said: str) -> None:
    """Which file, what is wrong in it."""
    write_release(tmp_path)
    path = tmp_path / "data" / "profile" / "user7" / file
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        read(tmp_path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


@settings(max_examples=150)
@given(section=st.sampled_from(["affinities", "demographics", "interests", "interactions"]), value=json_values)
def test_any_json_in_a_profile_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, section: str, value: Any
) -> None:
    """Whatever stands in a section, the reader gives a person or a DataError."""
    root = write_release(tmp_path_factory.mktemp("release"), {**profile(), section: value})
    try:
        read(root)
    except DataError as error:
        assert str(root) in str(error)


@settings(max_examples=150)
@given(key=st.sampled_from(sorted(ALARM)), value=json_values)
def test_any_json_in_a_task_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, key: str, value: Any) -> None:
    """The same for tasks."""
    root = write_release(tmp_path_factory.mktemp("release"), tasks=[{**ALARM, key: value}])
    try:
        read(root)
    except DataError as error:
        assert str(root) in str(error)


def test_the_samples_are_whole() -> None:
    """At least 12 people with all 20 domains and summaries, 30 single-domain and 8 multi-domain tasks."""
    release = samples()
    people = [release.profile(user) for user in release.user_ids()]
    tasks = {task.id: task for person in people for task in release.tasks(person)}
    kinds = [task.kind for task in tasks.values()]
    assert len(people) >= 12
    assert all(len(person.domains) == 20 for person in people)
    assert all(domain.summary and domain.affinities for person in people for domain in person.domains.values())
    assert kinds.count("single") >= 30
    assert kinds.count("multi") >= 8
    assert release.mendings.summary().count("lack") == 0


@needs_real_data
def test_the_real_release_is_read_whole_and_its_traps_are_counted() -> None:
    """Four users, 304 tasks, and among the traps user874's malformed key."""
    release, tasks = read(REAL)
    assert release.user_ids() == ["user2", "user42", "user874", "user1041"]
    assert len(tasks) == 304
    assert "1 domain name with stray characters mended" in release.mendings.summary()
    assert "2 empty affinities left out" in release.mendings.summary()
    assert "32 affinities matched by another spelling" in release.mendings.summary()

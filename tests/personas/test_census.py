"""A release is counted as the paper's tables count it: the figures of the four users are the specification's."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dialoom.personas import PersonaLensRelease, samples
from dialoom.personas.release import Census
from tests.conftest import REAL, needs_real_data

ORACLES = REAL.parent.parent / "protocols" / "personalens-statistics.md"
"""Has a row for each preference: domain, name, x, possible, printed, n, N, E."""
_ROW = re.compile(r"\| ([A-Z][^|]+) \| ([^|]+) \| x? ?\| ([-\d]+) \| [^|]+ \| (\d+) \| (\d+) \| ([-\d.]+) \|")


@pytest.fixture(scope="module")
def four() -> Census:
    """The real people, counted."""
    return Census.of(PersonaLensRelease(REAL))


@needs_real_data
def test_demographics_and_dialogues_of_the_four_users(four: Census) -> None:
    """Tables 1, 6 and 7."""
    assert four.people == 4
    assert four.demographics["age"] == {"55-64 years old": 2, "18-24 years old": 1, "45-54 years old": 1}
    assert four.demographics["religion"] == {"Christian": 2, "Folk religion": 1, "Non-religious": 1}
    assert four.demographics["employment_status"] == {"Working full-time": 3, "Student": 1}
    assert set(four.demographics["birth_country"]) == {"South Africa", "Norway", "United Kingdom", "Canada"}
    assert four.pairs == {"single": 246, "multi": 58}
    assert (four.dialogues["Calendar"], four.dialogues["Rental Cars"], four.dialogues["Buses"]) == (63, 5, 0)
    assert four.dialogues.total() == 447


@needs_real_data
def test_evenness_of_all_ninety_preferences(four: Census) -> None:
    """Tables 8 and 9, row by row."""
    wanted = {
        (row[1], row[2]): tuple(row.groups()[2:]) for row in map(_ROW.match, ORACLES.read_text().splitlines()) if row
    }
    if not wanted:
        pytest.skip("the table of oracles is not here")
    found = {}
    for domain, name, values in four.rows():
        possible = "-" if values.possible is None else str(values.possible)
        evenness = "-" if values.evenness is None else f"{values.evenness:.4f}"
        found[domain, name] = possible, str(len(values.counts)), str(values.counts.total()), evenness
    assert found == wanted


def test_what_nobody_tells_is_a_value_like_any_other_and_masked_domains_count(tmp_path: Path) -> None:
    """`N/A` and domains of no interest are left out where people are played, and counted here."""
    source = samples().root / "data" / "profile"
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

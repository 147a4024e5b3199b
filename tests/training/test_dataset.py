"""A run as a Hugging Face dataset, without an intermediate file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict, get_dataset_config_names, load_dataset

import dialoom
from dialoom.graphs import WithExports
from dialoom.runs.export.pushing import read_card_files
from tests.api.players import run_settings
from tests.conftest import read_jsonl
from tests.invented import write_release


@pytest.fixture
def run(tmp_path: Path) -> dialoom.Run:
    """Return a run of six dialogues of three people."""
    release = write_release(tmp_path / "release", users=3)
    return dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release))


def test_dialogues_are_a_dataset(run: dialoom.Run) -> None:
    dataset = run.dataset()
    assert isinstance(dataset, Dataset) and len(dataset) == 6
    assert dataset["id"][:] == [episode.id for episode in run.episodes()]
    run.path.unlink()
    assert [message["role"] for message in dataset[0]["messages"]] == ["user", "assistant"] * 3
    assert len(dataset.filter(lambda row: row["ended_by"] == "user_terminated")) == 6


def test_split_keeps_people_on_one_side(run: dialoom.Run) -> None:
    parts = run.dataset(test_share=0.4)
    assert isinstance(parts, DatasetDict) and set(parts) == {"train", "test"}
    assert len(parts["train"]) + len(parts["test"]) == 6 and min(map(len, parts.values())) > 0
    people = [{row["scenario"]["user"] for row in part} for part in parts.values()]
    assert not people[0] & people[1]


def test_rows_of_a_dataset_are_people_and_tasks(tmp_path: Path) -> None:
    people = Dataset.from_list([{"name": "Ada", "likes": ["tea"], "age": 34}, {"name": "Bo", "likes": [], "age": None}])
    given: dict[str, Any] = {"assistant": "offline/placeholder", "max_turns": 1, "path": tmp_path / "run.db"}
    run = dialoom.simulate(people=people, tasks=Dataset.from_list([{"goal": "return a kettle"}]), **given)
    facets = [{name: episode.facets[name] for name in ("person", "age", "goal")} for episode in run.episodes()]
    assert facets == [
        {"person": "Ada", "age": 34, "goal": "return a kettle"},
        {"person": "Bo", "age": "", "goal": "return a kettle"},
    ]


def test_unknown_format_is_refused_by_name(run: dialoom.Run) -> None:
    with pytest.raises(dialoom.DialoomError, match="sftt"):
        run.dataset("sftt")


RUNS: dict[str, tuple[dict[str, Any], int | None]] = {
    "prefeval-pairs": ({"topics": "pet_ownership,travel_hotel", "per_call": 4, "calls": 1}, None),
    "prefeval": ({}, 4),
    "apollo-write": ({"users": 1, "pairs": 1, "errands": 0, "offers": 1, "flows": "food,music"}, None),
    "apollo": ({"length": ["2k"], "framework": ["memory"]}, 4),
    "aloe": ({"rounds": 2}, 3),
}


@pytest.mark.parametrize("recipe", RUNS)
def test_every_folder_with_a_card_loads(recipe: str, tmp_path: Path) -> None:
    options, sample = RUNS[recipe]
    run = dialoom.play(recipe, path=tmp_path / "run.db", options=options, sample=sample)
    formats = WithExports.of(run.recipe).formats
    for name in formats if recipe != "prefeval" else ("prefeval",):
        folder = tmp_path / name
        run.export(name, folder, test_share=None if formats[name].is_folder else 0.5)
        sets = [
            load_dataset(str(folder), config, cache_dir=str(tmp_path / "cache"))
            for config in get_dataset_config_names(str(folder))
        ]
        assert formats[name].is_folder or [set(parts) for parts in sets] == [{"train", "test"}]
        rows = sum(_rows(folder / file) for file in read_card_files(folder)[0])
        assert sum(len(part) for parts in sets for part in parts.values()) == rows > 0, name


def _rows(path: Path) -> int:
    return len(read_jsonl(path) if path.suffix == ".jsonl" else json.loads(path.read_text(encoding="utf-8")))

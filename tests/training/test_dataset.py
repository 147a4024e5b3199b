"""A run as a Hugging Face dataset, without a file of the user's in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict

import dialoom
from tests.invented import write_release
from tests.runs.door.players import told


@pytest.fixture
def run(tmp_path: Path) -> dialoom.Run:
    """Six dialogues of three people."""
    release = write_release(tmp_path / "release", users=3)
    return dialoom.play("personalens", path=tmp_path / "run.db", **told(release))


def test_dialogues_are_a_dataset(run: dialoom.Run) -> None:
    """A row for each, in plan order, with all that was said; it outlives the file that it was read from."""
    dataset = run.dataset()
    assert isinstance(dataset, Dataset) and len(dataset) == 6
    assert dataset["id"][:] == [episode.id for episode in run.episodes()]
    run.path.unlink()
    assert [message["role"] for message in dataset[0]["messages"]] == ["user", "assistant"] * 3
    assert len(dataset.filter(lambda row: row["ended_by"] == "user_terminated")) == 6


def test_a_split_keeps_people_on_one_side(run: dialoom.Run) -> None:
    """A `DatasetDict` of train and test."""
    parts = run.dataset(test_share=0.4)
    assert isinstance(parts, DatasetDict) and set(parts) == {"train", "test"}
    assert len(parts["train"]) + len(parts["test"]) == 6 and min(map(len, parts.values())) > 0
    people = [{row["scenario"]["user"] for row in part} for part in parts.values()]
    assert not people[0] & people[1]


def test_a_format_that_there_is_not(run: dialoom.Run) -> None:
    """Is refused by name."""
    with pytest.raises(dialoom.DialoomError, match="sftt"):
        run.dataset("sftt")

"""What a scorecard's folder is of: the suite as it was, its size, and whose runs lie there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dialoom.errors import first_problem
from dialoom.inputs import read_json
from dialoom.outputs import text_output
from dialoom.runs.errors import RunError

from .suite import Size, Suite

RECORD, SUITE = "record.json", "suite.yaml"
"""In the folder: what it is of, for dialoom; and the suite alone, for whoever would play it again."""


class AssistantRuns(BaseModel):
    """An assistant and its runs.

    Attributes:
        label: Its model.
        runs: The file of each system's run, by the system's name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    label: str
    runs: Mapping[str, str]


class CardRecord(BaseModel):
    """What is kept of a scorecard besides its runs.

    Attributes:
        suite: All of it, as it was played.
        size: How much of it.
        assistants: In the order in which they were named first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    suite: Suite
    size: Size
    assistants: tuple[AssistantRuns, ...] = Field(min_length=1)

    def told(self) -> str:
        """Suite and size in a few words."""
        return f"{self.suite.told()}, {self.size}"

    def with_also(self, others: tuple[AssistantRuns, ...]) -> CardRecord:
        """The same with further assistants; those that are known already stay where they are."""
        by_label = {each.label: each for each in (*self.assistants, *others)}
        return self.model_copy(update={"assistants": tuple(by_label.values())})


def read_record(folder: Path) -> CardRecord | None:
    """What a folder is of; `None` if it holds no scorecard.

    Raises:
        RunError: If what it says of itself cannot be read.
    """
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        return CardRecord.model_validate(read_json(path))
    except ValidationError as error:
        problem = first_problem(error)
        raise RunError(f"{path} is no scorecard's record: {problem.place or 'it'}: {problem.message}") from error


def write_record(folder: Path, record: CardRecord) -> None:
    """Keep what a folder is of, and its suite as a file to be played again.

    Raises:
        OutputError: If it cannot be written.
    """
    with text_output(folder / RECORD) as file:
        file.write(record.model_dump_json(indent=1, exclude_defaults=True) + "\n")
    plain = record.suite.model_dump(mode="json", exclude_defaults=True)
    with text_output(folder / SUITE) as file:
        yaml.safe_dump(plain, file, sort_keys=False, allow_unicode=True, width=110)

"""Suites, defined by YAML files, and the record of a scorecard's folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from dialoom import graphs
from dialoom.errors import first_problem
from dialoom.inputs import Record, read_json, read_yaml
from dialoom.outputs import text_output
from dialoom.runs.errors import RunError
from dialoom.runs.store.references import encode_canonical
from dialoom.settings import Temperature

Size = Literal["quick", "full"]

DEFAULT_SUITE = "personalization"


class Headline(Record):
    """A headline figure of a system: a cell of one of its report's tables.

    Attributes:
        name: The figure's name on the card. It ends in `%` if the column's name does.
        table: The table's name.
        column: The column's name.
        row: Values of other columns that identify the row; not needed if there is only one row.
        scale: The lowest and the highest possible value, in the table's own unit (a share is 0 to 1); a figure without
            a scale is not charted.
    """

    name: str = Field(min_length=1)
    table: str
    column: str
    row: Mapping[str, str | int | float] = {}
    scale: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _check_figure(self) -> Headline:
        if self.column.endswith("%") != self.name.endswith("%"):
            raise ValueError(f"name {self.name!r} and column {self.column!r}: both end in %, or neither does")
        if self.scale is not None and not self.scale[0] < self.scale[1]:
            raise ValueError("scale: give the lowest and the highest value")
        return self


class Contrast(Record):
    """A tested difference between assistants that have played the same scenarios.

    Attributes:
        name: Its name on the card.
        metric: The metric's name in the recipe.
        where: Only scenarios matching this expression.
    """

    name: str = Field(min_length=1)
    metric: str
    where: str | None = None


class SuiteSize(Record):
    """The settings that one size of the suite adds to a system's own."""

    sample: int | None = Field(None, ge=1)
    options: Mapping[str, Any] = {}
    headlines: tuple[Headline, ...] = ()


class _Players(Record):
    """The players of the roles that are not under evaluation, and their sampling settings, by role."""

    models: Mapping[str, str | list[str]] = {}
    temperature: Mapping[str, Temperature] = {}
    api_base: Mapping[str, str] = {}
    structured: Mapping[str, str] = {}
    max_reply: Mapping[str, int] = {}
    params: Mapping[str, Mapping[str, Any]] = {}

    def players(self) -> dict[str, dict[str, Any]]:
        """Return the players by the names of the API's settings."""
        return {name: dict(getattr(self, name)) for name in _Players.model_fields}


class SuiteSystem(_Players):
    """A system of a suite.

    Attributes:
        recipe: A registered name, or `path/to/file.py:NAME`.
        name: The name of its run files; by default the recipe's name.
        title: The title above its figures.
        seed: The seed of every random draw; by default the suite's.
        options: The recipe's options, in every size.
        on_user_fault: The setting of `play` with this name.
        quick: Settings of the small size.
        full: Settings of the large size.
        headlines: The figures on the card, in this order.
        contrasts: The differences tested between assistants.
        charts: Names of the recipe's charts that the card shows.
        notes: Lines below its table.
    """

    recipe: str
    name: str = ""
    title: str = ""
    seed: int | None = None
    options: Mapping[str, Any] = {}
    on_user_fault: str = "flag"
    quick: SuiteSize = SuiteSize()
    full: SuiteSize = SuiteSize()
    headlines: tuple[Headline, ...] = Field(min_length=1)
    contrasts: tuple[Contrast, ...] = ()
    charts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The system's name in tables."""
        return self.name or self.recipe.rpartition(":")[2] or self.recipe

    def for_size(self, size: Size) -> SuiteSize:
        """Return the system's settings in a size, merged with its own options and headlines."""
        chosen: SuiteSize = getattr(self, size)
        return SuiteSize(
            sample=chosen.sample,
            options={**self.options, **chosen.options},
            headlines=(*self.headlines, *chosen.headlines),
        )


class Suite(_Players):
    """A suite: systems in which assistants are evaluated, with the settings of their runs.

    Attributes:
        suite: Its name.
        version: The version of its settings: figures of different versions are not comparable.
        about: A description of what it evaluates.
        seed: The seed of every random draw, unless a system has its own.
        systems: The systems, in order.
    """

    suite: str = Field(min_length=1)
    version: int | str
    about: str = ""
    seed: int = 0
    systems: tuple[SuiteSystem, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_names(self) -> Suite:
        names = [system.label for system in self.systems]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"systems: {twice[0]!r} is listed twice; give each a different name")
        return self

    @property
    def hash(self) -> str:
        """A hash of the suite's settings."""
        return hashlib.sha256(encode_canonical(self.model_dump(mode="json")).encode()).hexdigest()[:16]

    def summary(self) -> str:
        """Return the suite's name with its version and hash."""
        return f"{self.suite} {self.version} ({self.hash})"


def shipped_suites() -> dict[str, Path]:
    """Return the YAML files of the shipped suites, by name."""
    return {path.stem: path for path in sorted((Path(graphs.__file__).parent / "suites").glob("*.yaml"))}


def read_suite(named: str | Path) -> Suite:
    """Read a suite from its YAML file.

    Args:
        named: The name of a shipped suite, or a path.

    Raises:
        RunError: If it does not exist or is invalid; the message states the place of the problem, and what is expected.
    """
    shipped = shipped_suites()
    path = shipped.get(str(named)) or Path(named)
    if not path.exists():
        known = ", ".join(shipped)
        raise RunError(f"suite {str(named)!r}: there is no such file; the shipped suites are {known}", setting="suite")
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise RunError(
            f"suite {named} is {type(content).__name__}; it must consist of 'name: value' lines", setting="suite"
        )
    try:
        return Suite.model_validate(content)
    except ValidationError as error:
        problem = first_problem(error)
        keys = problem.place.split(".") if problem.place else []
        if len(keys) > 1 and keys[0] == "systems" and keys[1].isdecimal():
            system = content["systems"][int(keys[1])]
            name = (system.get("name") or system.get("recipe")) if isinstance(system, dict) else None
            keys[:2] = [f"system {name or int(keys[1]) + 1}"]
        raise RunError(f"suite {named}: {': '.join([*keys, problem.message])}", setting="suite") from error


RECORD_FILE, SUITE_FILE = "record.json", "suite.yaml"
"""Files in a scorecard's folder: its record, for dialoom; and the suite alone, for playing it again."""


class AssistantRuns(Record):
    """An assistant and its runs.

    Attributes:
        label: Its model.
        runs: The run file of each system, by the system's name.
    """

    label: str
    runs: Mapping[str, str]


class CardRecord(Record):
    """The record of a scorecard, stored beside its runs.

    Attributes:
        suite: The whole suite, as it was played.
        size: The size that was played.
        assistants: The assistants, in the order of their first use.
    """

    suite: Suite
    size: Size
    assistants: tuple[AssistantRuns, ...] = Field(min_length=1)

    def summary(self) -> str:
        """Return a short description of suite and size."""
        return f"{self.suite.summary()}, {self.size}"

    def with_assistants(self, others: tuple[AssistantRuns, ...]) -> CardRecord:
        """Return the record with further assistants; known ones keep their position."""
        by_label = {each.label: each for each in (*self.assistants, *others)}
        return self.model_copy(update={"assistants": tuple(by_label.values())})


def read_record(folder: Path) -> CardRecord | None:
    """Read the record of a folder; `None` if it holds no scorecard.

    Raises:
        RunError: If the record is invalid.
    """
    path = folder / RECORD_FILE
    if not path.exists():
        return None
    try:
        return CardRecord.model_validate(read_json(path))
    except ValidationError as error:
        problem = first_problem(error)
        raise RunError(f"{path} is not a scorecard's record: {problem.place or 'it'}: {problem.message}") from error


def write_record(folder: Path, record: CardRecord) -> None:
    """Write a folder's record, and its suite as a file of its own.

    Raises:
        OutputError: If it cannot be written.
    """
    with text_output(folder / RECORD_FILE) as file:
        file.write(record.model_dump_json(indent=1, exclude_defaults=True) + "\n")
    plain = record.suite.model_dump(mode="json", exclude_defaults=True)
    with text_output(folder / SUITE_FILE) as file:
        yaml.safe_dump(plain, file, sort_keys=False, allow_unicode=True, width=110)

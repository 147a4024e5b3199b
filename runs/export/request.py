"""What an export is asked for, checked against what the run's recipe offers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pydantic import ValidationError

from dialoom.errors import first_problem
from dialoom.graphs import DialogueFault, Exporter, ExportOptions, Recipe
from dialoom.graphs.capabilities import WithExports
from dialoom.graphs.fault import is_sound
from dialoom.graphs.reporting.facet import split_facet
from dialoom.runs.errors import RunError
from dialoom.runs.selection import known_kinds

DIALOGUES = "dialogues"
Soundness = Literal["sound", "faulty"]
Encoding = Literal["jsonl", "parquet"]
INCLUDED = ("facets", "scores")
"""What every row can be given besides what its format says."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is wanted.

    Attributes:
        format: One of `formats`.
        judging: The set of judgements; by default the oldest.
        encoding: How rows are written.
        test_share: The share of, say, the personas whose rows become the test split; `None` for no split.
        options: The format's own options, by the names of their fields.
        where: Only scenarios that this expression holds of.
        include: What each row has besides what its format says: `facets`, `scores`.
        only: Only dialogues that are `sound`, or only those that are `faulty`.
        without: Kinds of faults whose dialogues are left out.
        license: What the card states, by the hub's name, such as `cc-by-nc-4.0`; `None`: that it is unknown.
    """

    format: str = DIALOGUES
    judging: str | None = None
    encoding: Encoding = "jsonl"
    test_share: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    where: str | None = None
    include: Collection[str] = ()
    license: str | None = None
    only: Soundness | None = None
    without: Collection[str] = ()

    def exporter(self, recipe: Recipe) -> Exporter | None:
        """The recipe's exporter of the format; `None` for the dialogues that every recipe has.

        Raises:
            RunError: If there is no such format, or it cannot do what is asked.
        """
        exporter = WithExports.of(recipe).exporters().get(self.format)
        if exporter is None and self.format != DIALOGUES:
            raise RunError(f"unknown format {self.format!r}; there are {', '.join(formats(recipe))}")
        if exporter is not None and exporter.is_folder:
            self._check_files()
        if unknown := [name for name in self.include if name not in INCLUDED]:
            raise RunError(f"include {unknown[0]!r}: there are {', '.join(INCLUDED)}", setting="include")
        if self.test_share is not None:
            self._check_share(recipe)
        if self.only not in (None, *get_args(Soundness)):
            raise RunError(f"only {self.only!r}: there are {', '.join(get_args(Soundness))}", setting="only")
        kinds = known_kinds(recipe)
        if unknown := [kind for kind in self.without if kind not in kinds]:
            raise RunError(f"without {unknown[0]!r}: there are {', '.join(kinds)}", setting="without")
        return exporter

    def makes_folder(self, recipe: Recipe) -> bool:
        """Whether it is written as a folder, of splits or of the format's own files, and not as one file.

        Raises:
            RunError: As `exporter`.
        """
        exporter = self.exporter(recipe)
        return self.test_share is not None or (exporter is not None and exporter.is_folder)

    def parsed_options(self, recipe: Recipe) -> ExportOptions | None:
        """The options as the exporter takes them.

        Raises:
            RunError: If the format does not have an option, or a value is wrong.
        """
        exporter = self.exporter(recipe)
        known = exporter.options.model_fields if exporter and exporter.options else {}
        for name in self.options:
            if name not in known:
                raise RunError(
                    f"{name}: format {self.format!r} has no such option{_elsewhere(recipe, name)}", setting=name
                )
        if exporter is None or exporter.options is None:
            return None
        try:
            return exporter.options.model_validate(dict(self.options))
        except ValidationError as error:
            place, message, _ = first_problem(error)
            option = place.partition(".")[0] or None
            where = option or f"format {self.format!r}"
            raise RunError(f"{where}: {message.removeprefix('Value error, ')}", setting=option) from error

    def told(self) -> str:
        """What leaves scenarios or rows out, in a line; empty if nothing does."""
        without = f"without {', '.join(self.without)}" if self.without else ""
        only = self.only and f"only {self.only}"
        return ", ".join(
            filter(None, (self.where and f"where {self.where}", only, without, options_text(self.options)))
        )

    def leaves_out(self, faults: Sequence[DialogueFault] | None) -> bool:
        """Whether a dialogue with these faults is not wanted; nor is one that the gate was not asked about."""
        if self.only is None and not self.without:
            return False
        if faults is None:
            return True
        kinds = {each.kind for each in faults}
        return (self.only is not None and is_sound(faults) != (self.only == "sound")) or not kinds.isdisjoint(
            self.without
        )

    def _check_files(self) -> None:
        files = f"format {self.format!r} is a folder of files of its own"
        if self.encoding != "jsonl":
            raise RunError(f"encoding {self.encoding} is for rows; {files}", setting="encoding")
        if self.include:
            raise RunError(f"include is for rows; {files}", setting="include")
        if self.test_share is not None:
            raise RunError(f"test_share is for rows; {files}", setting="test_share")

    def _check_share(self, recipe: Recipe) -> None:
        if split_facet(recipe.facets) is None:
            raise RunError(
                f"test_share: recipe {recipe.name!r} names nothing by which its rows could be split",
                setting="test_share",
            )
        if not (self.test_share and 0 < self.test_share < 1):
            raise RunError(
                f"test_share {self.test_share}: a share lies between 0 and 1, such as 0.1", setting="test_share"
            )


def formats(recipe: Recipe) -> dict[str, str]:
    """Names and descriptions of the formats that a recipe's runs can be exported to."""
    own = {name: exporter.description for name, exporter in WithExports.of(recipe).exporters().items()}
    return {DIALOGUES: "one row per finished scenario, with its judgements", **own}


def options_text(options: Mapping[str, Any]) -> str:
    """Options in a line, such as `round_range=2-3, verified_only`."""
    return ", ".join(name if value is True else f"{name}={value}" for name, value in options.items())


def _elsewhere(recipe: Recipe, name: str) -> str:
    having = [
        format_
        for format_, exporter in WithExports.of(recipe).exporters().items()
        if exporter.options is not None and name in exporter.options.model_fields
    ]
    return f"; {', '.join(having)} {'has' if len(having) == 1 else 'have'}" if having else ""

"""The runs that a studio shows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dialoom import Run, open_run
from dialoom.runs.errors import RunError
from dialoom.runs.store import Choices, ScenarioQuery
from dialoom.runs.store.connections import Signature, signature

from .watching import Reports, Watch

_LOOKED_AT = 25
"""Scenarios from the beginning, and as many from all over the plan, that are read to find the facets that differ."""


@dataclass(slots=True)
class StudioRun:
    """A run of the studio.

    Attributes:
        name: In addresses and headings: its file's, with a number where several have the same.
        run: The handle on its file.
        watch: Its progress, read once for all browsers.
    """

    name: str
    run: Run
    watch: Watch
    _choices: tuple[Signature, Choices] | None = None
    _telling: tuple[str, ...] | None = None

    @property
    def known_choices(self) -> Choices | None:
        """The result of `choices`, if it is cached and up to date."""
        known = self._choices
        return known[1] if known is not None and known[0] == signature(self.run.path) else None

    async def choices(self) -> Choices:
        """Return the values by which scenarios can be filtered; read again when the file has changed."""
        known = self.known_choices
        if known is None:
            seen = signature(self.run.path)
            known = await asyncio.to_thread(self.run.choices)
            self._choices = (seen, known)
        return known

    async def telling_facets(self) -> Sequence[str]:
        """Return the facets that differ between scenarios, in the recipe's order; planned scenarios do not change."""
        if self._telling is None:
            self._telling = await asyncio.to_thread(self._facets_that_differ)
        return self._telling

    def _facets_that_differ(self) -> tuple[str, ...]:
        planned = len(self.run)
        places = {*range(_LOOKED_AT), *(planned * part // _LOOKED_AT for part in range(_LOOKED_AT)), planned - 1}
        page = self.run.scenarios(ScenarioQuery(among=places), limit=len(places))
        found = [row.facets for row in page.rows]
        names = dict.fromkeys(name for facets in found for name in facets)
        return tuple(name for name in names if len({str(facets.get(name)) for facets in found}) > 1)


@dataclass(frozen=True, slots=True)
class Studio:
    """The runs, by their names, in the order in which they were given.

    Attributes:
        runs: The runs.
        is_trusted: Whether the code and the addresses may be used that their files name; see `dialoom.open_run`.
        reports: The reports that were computed, or are being computed.
    """

    runs: Mapping[str, StudioRun]
    is_trusted: bool = False
    reports: Reports = field(default_factory=Reports)

    @classmethod
    def of(cls, paths: Sequence[Path], is_trusted: bool = False) -> Studio:
        """Return a studio of run files.

        Raises:
            StoreError: If one of them is no run.
            RunError: If one is named twice.
        """
        runs: dict[str, StudioRun] = {}
        seen: set[Path] = set()
        for path in paths:
            if path.resolve() in seen:
                raise RunError(f"runs: {path} is named twice", setting="runs")
            seen.add(path.resolve())
            name = _free_name(path.stem, runs)
            run = open_run(path, trust=is_trusted)
            runs[name] = StudioRun(name, run, Watch(run))
        return cls(runs, is_trusted)

    def run(self, name: str) -> StudioRun:
        """Return a run by its name.

        Raises:
            RunError: If there is none of that name.
        """
        if name not in self.runs:
            raise RunError(f"there is no run {name!r:.80} here; there are {', '.join(self.runs)}")
        return self.runs[name]


def _free_name(stem: str, taken: Mapping[str, StudioRun]) -> str:
    number, name = 1, stem
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name

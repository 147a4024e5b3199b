"""The runs that a studio shows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dialoom import Run, open_run
from dialoom.runs.errors import RunError
from dialoom.runs.report.health import Health, health_by_subject
from dialoom.runs.store import Choices, ScenarioQuery
from dialoom.runs.store.connections import Signature, signature

from .background import ProgressMonitor, ReportCache

_HEALTH_TIMEOUT_SECONDS = 1.0
"""Maximum seconds that a page waits for the health of a run's judges; if it takes longer, a later page shows it."""
_FACET_SAMPLE_SIZE = 25
"""To find the facets that differ, this many scenarios are read from the beginning of the plan, and as many spread
evenly over the whole plan."""


@dataclass(slots=True)
class StudioRun:
    """A run of the studio.

    Attributes:
        name: The run's name in addresses and headings: the file's name, with a number if several files have the same
            name.
        run: The handle of the run.
        monitor: The run's progress, read once for all browsers.
    """

    name: str
    run: Run
    monitor: ProgressMonitor
    _cached_choices: tuple[Signature, Choices] | None = None
    _differing_facets: tuple[str, ...] | None = None
    _health_tasks: dict[str, tuple[Signature, asyncio.Task[list[Health]]]] = field(default_factory=dict)
    _health: dict[str, Mapping[str, Health]] = field(default_factory=dict)

    @property
    def cached_choices(self) -> Choices | None:
        """The result of `choices` if it is cached and current; otherwise `None`."""
        cached = self._cached_choices
        return cached[1] if cached is not None and cached[0] == signature(self.run.path) else None

    async def choices(self) -> Choices:
        """Return the values by which scenarios can be filtered; they are read again when the file has changed."""
        choices = self.cached_choices
        if choices is None:
            file_signature = signature(self.run.path)
            choices = await asyncio.to_thread(self.run.choices)
            self._cached_choices = (file_signature, choices)
        return choices

    async def judge_health(self, judging: str) -> Mapping[str, Health]:
        """Return the health of a judge, by metric and target; the last known result if computing it takes long."""
        file_signature, cached = signature(self.run.path), self._health_tasks.get(judging)
        if cached is None or (cached[0] != file_signature and cached[1].done()):
            cached = file_signature, asyncio.create_task(asyncio.to_thread(self.run.judge_health, judging))
            self._health_tasks[judging] = cached
        done, _ = await asyncio.wait([cached[1]], timeout=_HEALTH_TIMEOUT_SECONDS)
        for task in done:
            self._health[judging] = health_by_subject(task.result())
        return self._health.get(judging, {})

    async def differing_facets(self) -> Sequence[str]:
        """Return the facets that differ between scenarios, in the recipe's order; read once, as plans do not change."""
        if self._differing_facets is None:
            self._differing_facets = await asyncio.to_thread(self._find_differing_facets)
        return self._differing_facets

    def _find_differing_facets(self) -> tuple[str, ...]:
        planned = len(self.run)
        positions = {
            *range(_FACET_SAMPLE_SIZE),
            *(planned * part // _FACET_SAMPLE_SIZE for part in range(_FACET_SAMPLE_SIZE)),
            planned - 1,
        }
        facets_by_scenario = [
            row.facets for row in self.run.scenarios(ScenarioQuery(among=positions), limit=len(positions)).rows
        ]
        names = dict.fromkeys(name for facets in facets_by_scenario for name in facets)
        return tuple(name for name in names if len({str(facets.get(name)) for facets in facets_by_scenario}) > 1)


@dataclass(frozen=True, slots=True)
class Studio:
    """The runs of a studio by name, in the order in which they were given.

    Attributes:
        runs: The runs.
        is_trusted: Whether the code and the addresses that the files refer to may be used; see `dialoom.open_run`.
        reports: The reports that were computed or are being computed.
    """

    runs: Mapping[str, StudioRun]
    is_trusted: bool = False
    reports: ReportCache = field(default_factory=ReportCache)

    @classmethod
    def open(cls, paths: Sequence[Path], is_trusted: bool = False) -> Studio:
        """Return a studio of run files.

        Raises:
            StoreError: If a file is not a run.
            RunError: If a file is given twice.
        """
        runs: dict[str, StudioRun] = {}
        seen: set[Path] = set()
        for path in paths:
            if path.resolve() in seen:
                raise RunError(f"runs: {path} is given twice", setting="runs")
            seen.add(path.resolve())
            name = _find_free_name(path.stem, runs)
            run = open_run(path, trust=is_trusted)
            runs[name] = StudioRun(name, run, ProgressMonitor(run))
        return cls(runs, is_trusted)

    def run(self, name: str) -> StudioRun:
        """Return a run by its name.

        Raises:
            RunError: If there is none of that name.
        """
        if name not in self.runs:
            raise RunError(f"there is no run {name!r:.80} here; the runs are {', '.join(self.runs)}")
        return self.runs[name]


def _find_free_name(stem: str, taken: Mapping[str, StudioRun]) -> str:
    number, name = 1, stem
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name

"""Where an export's rows come from: finished scenarios in plan order, read anew each time, never all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dialoom.graphs import Recipe, Scenario
from dialoom.graphs.reporting.facet import split_facet
from dialoom.runs.branch_taken import RecordedEpisode
from dialoom.runs.selection import means_of, selected
from dialoom.runs.shortcuts import PairSample
from dialoom.runs.store import JudgementSet, RunFile

from .request import ExportRequest
from .split import TEST, Split, key_of


@dataclass(slots=True)
class RowCount:
    """What a file has come to hold.

    Attributes:
        rows: How many.
        scenarios: How many gave one.
        left_out: Scenarios that were not wanted because of their faults, or of which faults are not known.
        groups: Of what is split by, e.g. the personas.
        places: Where in its rows something stands (`.talk[].role`), where a format writes several files.
    """

    rows: int = 0
    scenarios: int = 0
    left_out: int = 0
    groups: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)


class Rows:
    """The rows (or files) of a request.

    Attributes:
        pairs: The chosen and rejected replies among the rows that were read.

    Args:
        run: The run.
        request: What is asked for.

    Raises:
        RunError: If the recipe does not offer that.
        StoreError: If there is no such set of judgements.
    """

    def __init__(self, run: RunFile, request: ExportRequest) -> None:
        self.run = run
        self.request = request
        self.recipe = run.recipe
        self.exporter = request.exporter(self.recipe)
        self.options = request.parsed_options(self.recipe)
        self.judging = run.judgement_set(request.judging)
        self.pairs = PairSample()
        self.split = None
        self._split_by = split_facet(self.recipe.facets)
        if request.test_share is not None and self._split_by is not None:
            self.split = Split.of(run, self._split_by, request.test_share)

    def read(self, part: str, count: RowCount) -> Iterator[Any]:
        """The items of a part (`train`, `test`, or the only one), counted as they go by."""
        items = self._items(part, count)
        if self.exporter is not None and self.exporter.arranged is not None:
            items = self.exporter.arranged(items)
        yield from items

    def _items(self, part: str, count: RowCount) -> Iterator[Any]:
        make = self._maker()
        for episode in selected(self.run, self.judging.name if self.judging else None, self.request.where):
            if self.split is not None and self.split.is_test(episode.facets) != (part == TEST):
                continue
            if self.request.leaves_out(episode.outcome.faults):
                count.left_out += 1
                continue
            before = count.rows
            group = None if self._split_by is None else key_of(episode.facets, self._split_by)
            for item in make(episode, self.run.scenario(self.recipe, self.run.resolve(episode.id))):
                count.rows += 1
                self.pairs.add(item, group or episode.id)
                yield self._row(episode, item)
            if count.rows > before:
                count.scenarios += 1
                if group is not None:
                    count.groups.add(group)

    def _row(self, episode: RecordedEpisode, item: Any) -> Any:
        """A row with its scenario's id, and with what was asked for besides; what its format says stands."""
        if not isinstance(item, dict):
            return item  # a file of its own
        about: dict[str, Any] = {"facets": dict(episode.facets), "scores": means_of(episode)}
        return {"id": episode.id, **item} | {key: about[key] for key in self.request.include if key not in item}

    def _maker(self) -> Any:
        """What makes the items of one scenario."""
        if self.exporter is None:
            models, hashes = provenance(self.run, self.judging)
            return lambda episode, scenario: [dialogue(episode, scenario, self.recipe, models, hashes)]
        items, prompts = self.exporter.items, self.run.prompts
        names, _ = provenance(self.run, self.judging)
        keywords = {} if self.options is None else {"options": self.options}
        return lambda episode, scenario: items(episode, scenario, prompts, names, **keywords)


def dialogue(
    episode: RecordedEpisode, scenario: Scenario, recipe: Recipe, models: Mapping[str, str], prompts: Mapping[str, str]
) -> dict[str, Any]:
    """One line of the `dialogues` format."""
    line: dict[str, Any] = {
        "id": episode.id,
        "recipe": recipe.name,
        "scenario": scenario.described(),
        "messages": [line.model_dump() for line in episode.outcome.messages],
        "ended_by": episode.outcome.ended_by,
        "judgements": [judgement.model_dump() for judgement in episode.outcome.judgements],
        "models": dict(models),
        "prompts": dict(prompts),
    }
    if episode.outcome.faults is not None:
        line["faults"] = [fault.model_dump() for fault in episode.outcome.faults]
    if episode.branch is not None:
        line["branch"] = episode.branch.model_dump()
        line["models"] |= episode.branch.models
    return line if episode.error is None else {**line, "error": episode.error}


def provenance(run: RunFile, judging: JudgementSet | None) -> tuple[dict[str, str], dict[str, str]]:
    """Models by role and prompts' hashes by id behind an exported line; the judge is that of the set."""
    models = run.config.model_names
    prompts = {prompt.id: prompt.hash for prompt in run.prompts.values() if prompt.front.role in models}
    if judging is not None:
        models |= judging.model_names
        prompts |= judging.prompts
    return models, dict(sorted(prompts.items()))

"""Rows of exports, and their split into train, validation and test."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

from pydantic import ValidationError

from dialoom.errors import first_problem
from dialoom.graphs import DialogueFault, Exporter, ExportOptions, Recipe, Scenario, WithFacets, stream
from dialoom.graphs.built_in_environments import decode_snapshot
from dialoom.graphs.outcome import EARLIER_ATTEMPTS, USER, USER_MODEL, Episode, is_sound
from dialoom.graphs.training_rows import build_exporters
from dialoom.graphs.transcript import Transcript
from dialoom.runs.errors import RunError
from dialoom.runs.reading.scenarios import compile_expression, fault_kinds, mean_scores, select_episodes
from dialoom.runs.store import OWN_JUDGEMENTS, JudgementSet, RecordedEpisode, RunFile
from dialoom.settings import check_lists

from .shortcuts import PairSample

TRAIN, TEST = "train", "test"


def _select_test_groups(run: RunFile, facet: str, share: float) -> frozenset[str]:
    """Return the test split of the groups of a run's whole plan, in which both parts have at least one group.

    Raises:
        RunError: If there is only one group.
    """
    groups = {group_key(facets, facet) for facets in run.planned_facets()}
    if len(groups) < 2:
        raise RunError(
            f"test_share: all scenarios of {run.path} have the same {facet}, so they cannot be split by it",
            setting="test_share",
        )
    ordered = sorted(groups, key=lambda group: (stream(run.config.seed, group, "split").random(), group))
    return frozenset(ordered[: min(max(1, round(share * len(groups))), len(groups) - 1)])


def group_key(facets: Mapping[str, Any], facet: str) -> str:
    """Return the group of a scenario with these facets.

    Raises:
        RunError: If the scenarios lack the facet that the recipe splits by.
    """
    if facet not in facets:
        raise RunError(f"the recipe splits by {facet!r}, but its scenarios have the facets {', '.join(facets)}")
    return json.dumps(facets[facet], ensure_ascii=False, sort_keys=True)


DIALOGUES = "dialogues"
Soundness = Literal["sound", "faulty"]
Encoding = Literal["jsonl", "parquet"]
INCLUDABLE_FIELDS = ("facets", "scores")
"""Optional fields of every row besides those of its format."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The options of an export.

    Attributes:
        format: One of `formats`.
        judging: The set of judgements; by default the oldest.
        encoding: The file encoding of rows.
        test_share: The share of groups, such as personas, whose rows become the test split; `None` for no split.
        options: The format's own options, by the names of their fields.
        where: Only scenarios matching this expression.
        include: Additional fields of each row: `facets`, `scores`.
        only: `sound` to export only dialogues without faults, `faulty` for only dialogues with faults.
        without: Kinds of faults whose dialogues are left out.
        license: The licence stated in the card, by the hub's name, such as `cc-by-nc-4.0`; `None` for unknown.
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
        """Return the exporter of the format; `None` for `dialogues`.

        Raises:
            RunError: If the format is unknown, or does not support the options.
        """
        exporter = build_exporters(recipe).get(self.format)
        if exporter is None and self.format != DIALOGUES:
            raise RunError(f"unknown format {self.format!r}; the formats are {', '.join(formats(recipe))}")
        given = {
            "encoding": self.encoding != "jsonl",
            "include": self.include,
            "test_share": self.test_share is not None,
        }
        if exporter is not None and exporter.is_folder and (name := next(filter(given.get, given), None)):
            what = f"encoding {self.encoding}" if name == "encoding" else name
            raise RunError(
                f"{what} applies only to rows; format {self.format!r} writes a folder of its own files", setting=name
            )
        check_lists(include=self.include, without=self.without)
        for name, values, known in (
            ("include", self.include, INCLUDABLE_FIELDS),
            ("only", [] if self.only is None else [self.only], get_args(Soundness)),
            ("without", self.without, fault_kinds(recipe)),
        ):
            if unknown := [each for each in values if each not in known]:
                raise RunError(f"{name} must be among {', '.join(known)}, got {unknown[0]!r}", setting=name)
        if self.test_share is not None and WithFacets.of(recipe).split_facet is None:
            raise RunError(
                f"test_share: recipe {recipe.name!r} states no facet by which its rows can be split",
                setting="test_share",
            )
        if self.test_share is not None and not (isinstance(self.test_share, int | float) and 0 < self.test_share < 1):
            raise RunError(
                f"test_share {self.test_share!r}: a share must be between 0 and 1, such as 0.1", setting="test_share"
            )
        return exporter

    def makes_folder(self, recipe: Recipe) -> bool:
        """Return whether the export is a folder, of splits or of the format's own files, rather than one file.

        Raises:
            RunError: In the same cases as `exporter`.
        """
        exporter = self.exporter(recipe)
        return self.test_share is not None or (exporter is not None and exporter.is_folder)

    def parsed_options(self, recipe: Recipe) -> ExportOptions | None:
        """Return the options validated for the exporter; `None` if it has none.

        Raises:
            RunError: If the format does not have an option, or a value is invalid.
        """
        exporter = self.exporter(recipe)
        known = exporter.options.model_fields if exporter and exporter.options else {}
        for name in self.options:
            if name not in known:
                having = [
                    each
                    for each, other in build_exporters(recipe).items()
                    if other.options is not None and name in other.options.model_fields
                ]
                elsewhere = f"; {', '.join(having)} {'has' if len(having) == 1 else 'have'}" if having else ""
                raise RunError(f"{name}: format {self.format!r} has no such option{elsewhere}", setting=name)
        if exporter is None or exporter.options is None:
            return None
        try:
            return exporter.options.model_validate(dict(self.options))
        except ValidationError as error:
            place, message, _ = first_problem(error)
            option = place.partition(".")[0]
            raise RunError(f"{option or f'format {self.format!r}'}: {message}", setting=option or None) from error

    def describe_filters(self) -> str:
        """Return the filters and options in one line; empty if there are none."""
        filters = {"where": self.where, "only": self.only, "without": ", ".join(self.without)}
        options = (name if value is True else f"{name}={value}" for name, value in self.options.items())
        return ", ".join([*(f"{name} {value}" for name, value in filters.items() if value), *options])

    def excludes(self, faults: Sequence[DialogueFault] | None) -> bool:
        """Return whether a dialogue with these faults is left out.

        If its faults are unknown, any filter leaves it out.
        """
        if faults is None:
            return self.only is not None or bool(self.without)
        is_unwanted = self.only is not None and is_sound(faults) != (self.only == "sound")
        return is_unwanted or any(each.kind in self.without for each in faults)


def formats(recipe: Recipe) -> dict[str, str]:
    """Return the names and descriptions of the formats to which a recipe's runs can be exported."""
    own = {name: exporter.description for name, exporter in build_exporters(recipe).items()}
    return {DIALOGUES: "one row per finished scenario, with its judgements", **own}


@dataclass(slots=True)
class RowCount:
    """The number of rows of an exported file, and what was left out.

    Attributes:
        rows: Number of rows.
        scenarios: Number of scenarios with a row.
        without_tools: Number of scenarios with a row whose assistant should have had tools but was offered none.
        left_out: Number of scenarios left out because of their faults, or because their faults are unknown.
        without_row: Number of other scenarios without a row, by the reason.
        groups: The groups of the split, e.g. the personas.
        places: Paths within rows that have a value (`.talk[].role`), if the format writes several files.
    """

    rows: int = 0
    scenarios: int = 0
    without_tools: int = 0
    left_out: int = 0
    without_row: Counter[str] = field(default_factory=Counter)
    groups: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)


class ExportResult(dict[str, int]):
    """The number of rows (or files) of an export by part: `all`, or `train` and `test`.

    Attributes:
        notices: How many scenarios have no row, and why. Those that a filter excludes are not counted.
    """

    def __init__(self, written: Mapping[str, int], counts: Collection[RowCount] = (), units: str = "") -> None:
        super().__init__(written)
        reasons = sum((each.without_row for each in counts), Counter[str]())
        total = sum(each.scenarios for each in counts) + reasons.total()
        self.notices = [f"{count:,} of {total:,} {units} left out: {reason}" for reason, count in reasons.items()]


class Rows:
    """The rows (or files) of an export request.

    Attributes:
        pairs: The chosen and rejected replies in the rows that were read.
        test: The groups of the test split; `None` without a split.

    Args:
        run: The run.
        request: The request.

    Raises:
        RunError: If the recipe does not support the request.
        StoreError: If the set of judgements does not exist.
    """

    def __init__(self, run: RunFile, request: ExportRequest) -> None:
        self.run, self.request, self.recipe = run, request, run.recipe
        self.exporter = request.exporter(self.recipe)
        self._check_repeats()
        self.options = request.parsed_options(self.recipe)
        self.judging = run.judgement_set(request.judging)
        self.pairs = PairSample()
        self._split_by = facet = WithFacets.of(self.recipe).split_facet
        share = request.test_share
        self.test = None if share is None or facet is None else _select_test_groups(run, facet, share)

    def _check_repeats(self) -> None:
        """Raise `RunError` for several trials or user models in a format that contains each scenario only once."""
        if self.exporter is None or not self.exporter.is_folder:
            return
        named = set() if self.request.where is None else compile_expression(self.request.where)[1]
        config = self.run.config
        repeats = {"trial": (config.trials, "trials of each", "trial == 1")}
        if config.users:
            repeats[USER_MODEL] = len(config.players), "user models", f'{USER_MODEL} == "{config.user_models[0]}"'
        for name, (count, what, example) in repeats.items():
            if count > 1 and name not in named:
                raise RunError(
                    f"{self.request.format!r} contains each scenario once, but this run has {count} {what}; choose "
                    "one, "
                    f"such as '{example}'",
                    setting="where",
                )

    def read(self, part: str, count: RowCount) -> Iterator[Any]:
        """Yield the items of a part (`train`, `test`, or the only one), and count them."""
        items = self._items(part, count)
        if self.exporter is not None and self.exporter.arrange is not None:
            items = self.exporter.arrange(items)
        yield from items

    def _items(self, part: str, count: RowCount) -> Iterator[Any]:
        make = self._maker()
        for episode in select_episodes(self.run, self.judging.name if self.judging else None, self.request.where):
            group = None if self._split_by is None else group_key(episode.facets, self._split_by)
            if self.test is not None and (group in self.test) != (part == TEST):
                continue
            if self.request.excludes(episode.outcome.faults):
                count.left_out += 1
                continue
            before = count.rows
            for item in make(episode, self.run.scenario(self.recipe, self.run.resolve(episode.id))):
                count.rows += 1
                self.pairs.add(item, group or episode.scenario)
                yield self._row(episode, item)
            if count.rows > before:
                count.scenarios += 1
                count.without_tools += episode.outcome.details.get("has_tools") is False
                if group is not None:
                    count.groups.add(group)
            elif episode.state == "failed":
                count.without_row["failed"] += 1
            elif self.exporter is not None and self.exporter.lacks:
                count.without_row[self.exporter.lacks] += 1

    def _row(self, episode: RecordedEpisode, item: Any) -> Any:
        """Return a row with its scenario's id and the included fields; the format's own fields take precedence."""
        if not isinstance(item, dict):
            return item  # the content of a file
        about: dict[str, Any] = {"facets": dict(episode.facets), "scores": mean_scores(episode)}
        return {**episode_columns(episode), **item} | {
            key: about[key] for key in self.request.include if key not in item
        }

    def _maker(self) -> Any:
        """Return the function that converts one scenario to rows or files."""
        models, hashes = partial(resolve_models, self.run, self.judging), prompt_hashes(self.run, self.judging)
        if self.exporter is None:
            return lambda episode, scenario: [dialogue_row(episode, scenario, self.recipe, models(episode), hashes)]
        exporter, prompts = self.exporter, self.run.prompts
        keywords = {} if self.options is None else {"options": self.options}
        return lambda episode, scenario: (
            exporter.items(episode, scenario, prompts, models(episode), **keywords)
            if episode.state == "done" or not exporter.only_done
            else ()
        )


def dialogue_row(
    episode: RecordedEpisode, scenario: Scenario, recipe: Recipe, models: Mapping[str, str], prompts: Mapping[str, str]
) -> dict[str, Any]:
    """Return one row of the `dialogues` format."""
    line: dict[str, Any] = {
        **episode_columns(episode),
        "recipe": recipe.name,
        "scenario": scenario.described(),
        **(scenario.as_row() if isinstance(scenario, Transcript) else {}),
        "messages": [line.model_dump() for line in episode.outcome.messages],
        "ended_by": episode.outcome.ended_by,
        "judgements": [judgement.model_dump() for judgement in episode.outcome.judgements],
        "models": dict(models),
        "prompts": dict(prompts),
    }
    if episode.outcome.environment is not None:
        line["environment"] = decode_snapshot(episode.outcome.environment)
    if episode.outcome.faults is not None:
        line["faults"] = [fault.model_dump() for fault in episode.outcome.faults]
    if episode.branch is not None:
        line["branch"] = episode.branch.model_dump()
    return line if episode.error is None else {**line, "error": episode.error}


def episode_columns(episode: Episode) -> dict[str, Any]:
    """Return the columns that identify an episode: the scenario's `id`, and any user model and `trial`.

    An episode that was played again because a stateful player had lost its state is marked as such.
    """
    played = episode.outcome.counts.get(EARLIER_ATTEMPTS)
    factors = {USER_MODEL: episode.facets[USER_MODEL]} if USER_MODEL in episode.facets else {}
    factors |= {} if episode.trial is None else {"trial": episode.trial}
    return {"id": episode.scenario, **factors, **({EARLIER_ATTEMPTS: played} if played else {})}


def resolve_models(run: RunFile, judging: JudgementSet | None, episode: RecordedEpisode) -> dict[str, str]:
    """Return an episode's models by role: its user model, those of its branch, and the judges of its judgements."""
    config = run.config
    user = {USER: episode.facets[USER_MODEL]} if config.users else {}
    branch = {} if episode.branch is None else episode.branch.models
    judges = {} if judging is None else judging.model_names
    # A branch has judgements of its own instead of the run's, but none of a later set.
    is_own = judging is None or judging.name == OWN_JUDGEMENTS
    later = {**judges, **branch} if is_own else {**branch, **judges}
    return {**config.model_names, **user, **later}


def prompt_hashes(run: RunFile, judging: JudgementSet | None) -> dict[str, str]:
    """Return the hashes of the prompts by id, among them those of the set's judges."""
    models = run.config.model_names
    prompts = {prompt.id: prompt.hash for prompt in run.prompts.values() if prompt.front.role in models}
    return dict(sorted({**prompts, **({} if judging is None else judging.prompts)}.items()))

"""Optional capabilities of recipes: roles, prompts, judging, facets, reports, gate, labels, outlines and exports.

Each capability is needed by only some recipes, or is used only by the gate, labelling, the debugger or exports. A
recipe inherits a capability and overrides the methods it needs. Callers use `of`, which provides the capability's
defaults if the recipe does not inherit it::

    class Support(DialogueRecipe, WithExports):
        formats = {"tickets": Exporter("one row per call", "lines", ticket_rows)}

    WithExports.of(recipe).formats
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict

from dialoom.prompts import Prompt, PromptLibrary
from dialoom.prompts.prompt import SHIPPED_FOLDER

from .check import Check, select_judged_messages
from .gate.talk import Facts, Talk
from .judge import Graph, Judge, judging_graph
from .outcome import DialogueFault, Episode, Judgement, Line, Outcome
from .tables.default_tables import build_default_tables
from .tables.pivot import Pivot, find_hidden_metrics, tabulate
from .tables.table import Chart, Facet, Outline, Table, build_charts, side_by_side


class Capability:
    """The base class of all capabilities. The defaults of a capability may use any attribute of `Recipe`."""

    name: ClassVar[str]
    roles: ClassVar[Mapping[str, float]]
    prompts: ClassVar[Sequence[str] | Mapping[str, str]]
    judges: Sequence[Judge]
    pivots: ClassVar[Sequence[Pivot]]

    @classmethod
    def of(cls, recipe: object) -> Self:
        """Return the recipe if it has the capability; otherwise wrap it so that it has the capability's defaults."""
        return recipe if isinstance(recipe, cls) else cast(Self, _with_defaults(cast(Any, cls))(recipe))


@cache
def _with_defaults(capability: type[Capability]) -> Any:
    """Return a class that wraps a recipe and adds the defaults of a capability that the recipe does not inherit."""

    class Defaults(capability):  # type: ignore[misc, valid-type]
        def __init__(self, recipe: object) -> None:
            self._recipe = recipe

        def __getattr__(self, name: str) -> Any:
            return getattr(self._recipe, name)

    return Defaults


class WithRoles(Capability):
    """A capability: roles that depend on the options, reply limits, and a role under evaluation.

    Example:
        >>> class Support(DialogueRecipe, WithRoles):
        ...     evaluated = "assistant"
        ...     reply_limits = {"assistant": 300}
        ...
        ...     def roles_used(self, options):
        ...         return {role: value for role, value in self.roles.items() if options.judge or role != "judge"}

    Attributes:
        evaluated: The role under evaluation, or `None`. Reports name a run after the model of this role.
        reply_limits: Maximum number of tokens of a reply, by role, unless the user sets another limit. Other roles have
            no limit.
    """

    evaluated: ClassVar[str | None] = None
    reply_limits: ClassVar[Mapping[str, int]] = {}

    def roles_used(self, options: Any) -> Mapping[str, float]:
        """Return the roles that a run with these options needs, with their temperatures.

        By default these are all roles except unused judges.
        """
        judge_roles, used_judge_roles = (
            {judge.role for judge in judges} for judges in (self.judges, self.judges_used(options))
        )
        return {
            role: value for role, value in self.roles.items() if role in used_judge_roles or role not in judge_roles
        }

    def judges_used(self, options: Any) -> Sequence[Judge]:
        """Return the judges that a run with these options uses.

        By default these are all judges, or none if an option `judge` is false.
        """
        return self.judges if getattr(options, "judge", True) else ()

    def models_named(self, options: Any) -> Mapping[str, str]:
        """Return the models that the options name, by role. Models given for the run override them."""
        return {}


class WithPrompts(Capability):
    """A capability: prompts from the recipe's own folder, and its own reply types.

    Example:
        >>> class Support(Recipe, WithPrompts):
        ...     prompts = ("support/user", "support/router")  # prompts/support/user.md, ...; or all: "support/*"
        ...     templates = Path(__file__).parent / "prompts"
        ...     reply_types = {"route": Route}  # a pydantic model; the router's prompt says `reply: route`

    Attributes:
        templates: The folder that holds the prompts as `<id>.md`; `None` for dialoom's own `prompts/`.
        reply_types: The recipe's own reply types, by the names that its prompts use.
    """

    templates: ClassVar[Path | None] = None
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {}

    def prompt_list(self, sets: Sequence[str] = ()) -> list[str | Prompt]:
        """Return the ids of all prompts, including judges' prompts.

        For a prompt made in code, the prompt itself is returned instead of its id.

        Args:
            sets: Sets of prompts; see `library`. Prompts made in code are composed of the texts of these sets.
        """
        folder = self.templates or SHIPPED_FOLDER
        ids = [
            each.relative_to(folder).with_suffix("").as_posix()
            for id_ in self.prompts
            for each in (sorted(folder.glob(f"{id_}.md")) if id_.endswith("*") else [folder / f"{id_}.md"])
        ]
        return list(dict.fromkeys([*ids, *(judge.prompt_of(self.name, sets) for judge in self.judges)]))

    def library(self, sets: Sequence[str] = ()) -> PromptLibrary:
        """Return all prompts by id.

        Args:
            sets: Sets of prompts, which replace prompts with the same id: names of shipped sets, or paths of folders.
                If several sets have a prompt, that of the last one is used.

        Raises:
            DataError: If a file cannot be read.
            PromptError: If a file does not contain a valid prompt, or an override has an unknown id or input.
        """
        return PromptLibrary.load(self.prompt_list(sets), sets, self.templates)


class WithJudging(Capability):
    """A capability: judgements not made by `judges`, or a custom order of metrics.

    Example:
        >>> class Trees(Recipe, WithJudging):
        ...     checks = [Check("balanced", is_balanced)]
        ...     metrics = ("pair", "balanced")  # a node of the graph makes the judgements of `pair` itself
        ...
        ...     def judging_roles(self):
        ...         return {"judge": 0.0}

    Attributes:
        checks: The metrics that functions score.
    """

    checks: Sequence[Check] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics, in the order of reports and exports."""
        judge_metrics = [metric for judge in self.judges for metric in judge.metrics]
        return tuple(dict.fromkeys([*judge_metrics, *self.check_metrics]))

    @property
    def check_metrics(self) -> Set[str]:
        """The metrics that only checks score, and no judge, in the order of the checks."""
        return dict.fromkeys(check.metric for check in self.checks).keys()

    @property
    def scales(self) -> Mapping[str, tuple[int, int]]:
        """The lowest and the highest score of each metric. Metrics that are verdicts have no entry."""
        scored = [(metric, judge.scale) for judge in self.judges for metric in judge.metrics]
        scored += [(check.metric, check.scale) for check in self.checks]
        return {metric: scale for metric, scale in scored if scale is not None}

    @property
    def lower_is_better(self) -> Set[str]:
        """The metrics of which low scores, or negative verdicts, are good."""
        judge_metrics = {metric for judge in self.judges if judge.lower_is_better for metric in judge.metrics}
        return judge_metrics | {check.metric for check in self.checks if check.lower_is_better}

    def judging(self) -> Graph | None:
        """Return a graph that only judges (its nodes read `Scene.judged`); `None` if the recipe has no judges."""
        return judging_graph(cast(Any, self), self.judges) if self.judges else None

    def judging_roles(self) -> Mapping[str, float]:
        """Return the roles that judge, with their default temperatures."""
        return {judge.role: self.roles[judge.role] for judge in self.judges}


class WithFacets(Capability):
    """A capability: facets with a special meaning, such as the person.

    Example:
        >>> class Support(DialogueRecipe, WithFacets):
        ...     facets = (Facet("caller", splits=True, unit="callers"), Facet("turns", tells_length=True))

    Attributes:
        facets: The facets with a special meaning. Exports may be split by such a facet, its values may be the units of
            confidence intervals, or it grows with the length of a conversation.
    """

    facets: ClassVar[Sequence[Facet]] = ()

    @property
    def split_facet(self) -> str | None:
        """The facet by which an export may be split into a training and a test part; `None` if there is none."""
        return next((facet.name for facet in self.facets if facet.splits), None)

    @property
    def unit_facet(self) -> str | None:
        """The facet whose values are the units of confidence intervals; `None` if the units are scenarios.

        It is the facet with a `unit`, otherwise the facet that `splits`.
        """
        return next((facet.name for facet in self.facets if facet.unit), self.split_facet)

    @property
    def units(self) -> str:
        """The plural name of the units of confidence intervals, e.g. `people`."""
        if self.unit_facet is None:
            return "scenarios"
        return next((facet.unit for facet in self.facets if facet.unit), "people")

    @property
    def sequence_facet(self) -> str | None:
        """The facet whose values group scenarios that are played one after another.

        `None`: the scenarios may be played in any order.
        """
        return next((facet.name for facet in self.facets if facet.in_sequence), None)

    @property
    def length_facet(self) -> str | None:
        """The facet that grows with the length of a conversation; `None` if there is none."""
        return next((facet.name for facet in self.facets if facet.tells_length), None)


_HIDDEN_METRICS_NOTE = (
    "Scored, but without a column in the recipe's tables: {metrics}. Each conversation and run.frame() have them."
)


class WithReport(Capability):
    """A capability: tables or charts that pivots cannot express. They may compare several runs.

    Example:
        >>> class Support(DialogueRecipe, WithReport):
        ...     def charts(self, runs):
        ...         return [growth(label, episodes) for label, episodes in runs]
    """

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the tables of one run, from its finished scenarios read one at a time.

        By default, these are the tables of the recipe's `pivots`, with a note on metrics that none of them shows.
        Without pivots, they show each metric overall and by each facet with few values.
        """
        facets, judging = WithFacets.of(self), WithJudging.of(self)
        if not self.pivots:
            return build_default_tables(
                episodes, facets.unit_facet, facets.units, judging.check_metrics, judging.scales
            )
        scored: dict[str, None] = {}

        def collect_metrics() -> Iterator[Episode]:
            for episode in episodes:
                scored.update(dict.fromkeys(each.metric for each in episode.outcome.judgements))
                yield episode

        tables = tabulate(self.pivots, collect_metrics(), facets.unit_facet, facets.units)
        if tables and (hidden := find_hidden_metrics(self.pivots, scored)):
            tables[0].notes.append(_HIDDEN_METRICS_NOTE.format(metrics=", ".join(hidden)))
        return tables

    def report_tables(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Table]:
        """Return the tables of a report over one or several runs, given each run's label and finished scenarios.

        By default, these are the `tables` of a single run, or the tables of several runs side by side. Each run's
        scenarios can be iterated only once.
        """
        if len(runs) == 1:
            return self.tables(runs[0][1])
        return side_by_side([(label, self.tables(episodes)) for label, episodes in runs])

    def charts(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Chart]:
        """Return the report's charts, given each run's label and finished scenarios, which can be iterated once.

        By default, these are charts of the `charted` columns of the `tables`. Without pivots, they show all metrics
        over all scenarios.
        """
        charts = [
            (number, label, chart)
            for number, (label, episodes) in enumerate(runs, start=1)
            for table in self.tables(episodes)
            for chart in build_charts(table)
        ]
        return [
            replace(chart, name=f"{chart.name}-{number}", title=f"{chart.title} ({label})") if len(runs) > 1 else chart
            for number, label, chart in charts
        ]


class WithGate(Capability):
    """A capability: further conversations to check, or facts about conversations for the gate's rules.

    Example:
        >>> class Support(Recipe, WithGate):
        ...     languages = ("en",)
        ...
        ...     def facts(self, scenario):
        ...         return Facts(languages=self.languages, task=scenario.goal, end_markers=("DONE",))

    Attributes:
        languages: The languages of the conversations, as ISO 639 codes. Dataset cards also list them.
        fault_kinds: The recipe's own kinds of faults, as names with their meanings.
    """

    languages: ClassVar[tuple[str, ...]] = ()
    fault_kinds: ClassVar[Mapping[str, str]] = {}

    def facts(self, scenario: Any) -> Facts:
        """Return facts about a scenario's conversation that the gate's rules need besides its messages."""
        return Facts(languages=self.languages)

    def talks(self, scenario: Any, outcome: Outcome) -> Iterable[Talk]:
        """Yield the conversations of an outcome that the gate checks: by default its messages."""
        if outcome.messages:
            has_tools = outcome.details.get("has_tools") is True
            yield Talk.of(outcome.messages, self.facts(scenario), outcome.ended_by, has_tools)

    def find_faults(self, scenario: Any, outcome: Outcome) -> Iterable[DialogueFault]:
        """Return faults that only the recipe can detect. Their kinds are listed in `fault_kinds`."""
        return ()

    def spoken(self, reply: str) -> str:
        """Return the part of a simulated user's reply that the other side receives, e.g. without an end marker."""
        return reply.strip()

    def user_instructions(self, scenario: Any) -> Mapping[str, str]:
        """Return the texts that instruct a scenario's simulated user. Reviewers use them to judge the user's play."""
        return {key: str(value) for key, value in scenario.described().items()}


class WithLabels(Capability):
    """A capability: judgements for which annotators see something other than the conversation.

    Example:
        >>> class Letters(Recipe, WithLabels):
        ...     def judged_lines(self, outcome, judgement):
        ...         return [Line(role="letter", content=outcome.details["letter"])]
    """

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> Sequence[Line]:
        """Return the lines that annotators read when they judge the item of a judgement, without the judge's score.

        By default, this is the conversation up to the end of the judged turn.
        """
        return select_judged_messages(outcome, judgement)

    def judged_about(self, scenario: Any, judgement: Judgement) -> Mapping[str, Any]:
        """Return the other information that annotators see when they judge the item of a judgement.

        By default, this is every field of the scenario, because a judge may have seen any of them, and every entry of
        `described`.
        """
        content: dict[str, Any] = scenario.model_dump(mode="json")
        return content | {key: value for key, value in scenario.described().items() if key not in content}

    def derive_judgements(self, outcome: Outcome) -> Iterable[Judgement]:
        """Return conclusions drawn from several judgements, as judgements of other metrics.

        Annotators can label these metrics, too.

        The conclusions are not part of any mean, but they are compared with people's labels like other judgements.
        """
        return ()


class WithOutline(Capability):
    """A capability: outcomes that are not a single conversation, such as trees.

    Example:
        >>> class Letters(Recipe, WithOutline):
        ...     def outline(self, episode):
        ...         drafts = episode.outcome.details["drafts"]
        ...         return Outline([Span("drafts")], [Outline([Span(draft)]) for draft in drafts])
    """

    def outline(self, episode: Episode) -> Outline | None:
        """Return an episode's outcome as an outline, or `None` to show its messages instead."""
        return None


class WithProgress(Capability):
    """A capability: conversations whose progress is not counted in turns of the user.

    Example:
        >>> class Letters(Recipe, WithProgress):
        ...     def counted(self, state):
        ...         return {"draft": len(state["drafts"])}
    """

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the progress of a conversation in the recipe's own units (`turn`, `round`), for the step debugger.

        By default, `turn` is the number of the user's messages in the state's `messages`.
        """
        return {"turn": sum(message.name == "user" for message in state.get("messages", ()))}


class ExportOptions(BaseModel):
    """The options of an export format. Fields work as in `RecipeOptions`."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


FileItem: TypeAlias = tuple[tuple[str, ...], Any]
"""A file's path (folder names and the file's name), and its content or one of its rows."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """An export format of a recipe.

    Attributes:
        description: The description shown in help texts.
        kind: `lines`: each item is a row. `files`: each item is a path (a tuple of folder names and the file's name)
            and its content. Content that is text is written unchanged, other content as JSON. `lists`: each item is a
            path, as in `files`, and one row. All rows with the same path, even from several scenarios, form one JSON
            list, or JSON lines if the name ends in `.jsonl`. Characters that file names cannot hold are replaced.
        items: A function `items(episode, scenario, prompts, models)` that returns the items of one finished scenario.
            `prompts` are the run's prompts. `models` are its models by role; for judges, those of the exported set of
            judgements. If `options` is set, the function also gets the keyword `options`.
        options: The type of the format's options; `None` if it has none.
        arrange: A function that reorders the items of a whole file. It gets an iterator over the items and must not
            hold all of them in memory.
        tasks: The purposes of the rows, as Hugging Face task categories.
        pair_roles: The roles that write the chosen and the rejected replies of a preference dataset.
        lacks: What a scenario without any item lacks, such as `no message of the assistant`; empty if that is unknown.
        only_done: Whether scenarios that failed have no items.
    """

    description: str
    kind: Literal["lines", "files", "lists"]
    items: Callable[..., Iterable[Any]]
    options: type[ExportOptions] | None = None
    arrange: Callable[[Iterator[Any]], Iterator[Any]] | None = None
    tasks: tuple[str, ...] = ("text-generation",)
    pair_roles: tuple[str, str] | None = None
    lacks: str = ""
    only_done: bool = False

    @property
    def is_folder(self) -> bool:
        """Return whether the format writes a folder of files instead of one file of rows."""
        return self.kind != "lines"


class WithExports(Capability):
    """A capability: the recipe's own export formats.

    Example:
        >>> def ticket_rows(episode, scenario, prompts, models):
        ...     yield {"goal": scenario.goal, "solved": episode.outcome.ended_by == "end_marker"}
        >>> class Support(DialogueRecipe, WithExports):
        ...     formats = {"tickets": Exporter("one row per call", "lines", ticket_rows)}

    Attributes:
        formats: The formats by name.
    """

    formats: ClassVar[Mapping[str, Exporter]] = {}

    def folder_format(self, options: Any) -> str | None:
        """Return the folder format in which a run with these options writes its generated data, or `None`.

        Another recipe reads this folder as its input.
        """
        return None

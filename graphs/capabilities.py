"""Optional capabilities, which only some recipes need, or only the gate, labelling, the debugger or exports read.

A recipe that has a capability inherits it and overrides what it needs. Callers use `of`, which returns the defaults for
any other recipe::

    class Support(DialogueRecipe, WithExports):
        formats = {"tickets": Exporter("one row per call", "lines", ticket_rows)}

    WithExports.of(recipe).formats
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict

from dialoom.prompts import Prompt, PromptLibrary
from dialoom.prompts.library import SHIPPED

from .check import Check, conversation_to
from .gate.talk import Facts, Talk
from .judge import Graph, Judge, judging_graph
from .outcome import DialogueFault, Episode, Judgement, Line, Outcome
from .reporting.default_tables import default_tables
from .reporting.pivot import Pivot, tabulate
from .reporting.table import Chart, Facet, Outline, Table, charts_of, side_by_side


class Capability:
    """The base class of the capabilities. Their defaults may use any attribute of `Recipe`."""

    name: ClassVar[str]
    roles: ClassVar[Mapping[str, float]]
    prompts: ClassVar[Sequence[str] | Mapping[str, str]]
    judges: Sequence[Judge]
    pivots: ClassVar[Sequence[Pivot]]

    @classmethod
    def of(cls, recipe: object) -> Self:
        """Return a recipe as one that has the capability, or with the capability's defaults."""
        if isinstance(recipe, cls):
            return recipe
        kind: Any = cls
        made: Self = _with_defaults(kind)(recipe)
        return made


@cache
def _with_defaults(capability: type[Capability]) -> Any:
    """Return a class whose instances are recipes with the defaults of a capability that they do not inherit."""

    class Defaults(capability):  # type: ignore[misc, valid-type]
        def __init__(self, recipe: object) -> None:
            self._recipe = recipe

        def __getattr__(self, name: str) -> Any:
            return getattr(self._recipe, name)

    return Defaults


class WithRoles(Capability):
    """Roles that depend on the options, have a limit on their replies, or are under evaluation.

    Example:
        >>> class Support(DialogueRecipe, WithRoles):
        ...     evaluated = "assistant"
        ...     reply_limits = {"assistant": 300}
        ...
        ...     def roles_used(self, options):
        ...         return {role: value for role, value in self.roles.items() if options.judge or role != "judge"}

    Attributes:
        evaluated: The role under evaluation: reports name a run by its model. `None` if there is none.
        reply_limits: The most tokens of a reply, by role, unless the user sets another limit; other roles have none.
    """

    evaluated: ClassVar[str | None] = None
    reply_limits: ClassVar[Mapping[str, int]] = {}

    def roles_used(self, options: Any) -> Mapping[str, float]:
        """Return the roles that a run with these options needs, with their temperatures: all but unused judges."""
        judging, asked = ({judge.role for judge in judges} for judges in (self.judges, self.judges_used(options)))
        return {role: value for role, value in self.roles.items() if role in asked or role not in judging}

    def judges_used(self, options: Any) -> Sequence[Judge]:
        """Return the judges that a run with these options uses; none if an option `judge` is false."""
        return self.judges if getattr(options, "judge", True) else ()

    def models_named(self, options: Any) -> Mapping[str, str]:
        """Return models that the options name, by role; models given for the run override them."""
        return {}


class WithPrompts(Capability):
    """Prompts in the recipe's own folder, or with reply types of its own.

    Example:
        >>> class Support(Recipe, WithPrompts):
        ...     prompts = ("support/user", "support/router")  # prompts/support/user.md, ...; or all: "support/*"
        ...     templates = Path(__file__).parent / "prompts"
        ...     reply_types = {"route": Route}  # a pydantic model; the router's prompt says `reply: route`

    Attributes:
        templates: The folder that holds the prompts as `<id>.md`; `None` for dialoom's own `prompts/`.
        reply_types: Reply types of the recipe's own, by the names that its prompts use.
    """

    templates: ClassVar[Path | None] = None
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {}

    def prompt_list(self) -> list[str | Prompt]:
        """Return the ids of all prompts, including judges'; a prompt made in code stands for its id."""
        folder = self.templates or SHIPPED
        own = [
            each.relative_to(folder).with_suffix("").as_posix()
            for id_ in self.prompts
            for each in (sorted(folder.glob(f"{id_}.md")) if id_.endswith("*") else [folder / f"{id_}.md"])
        ]
        return list(dict.fromkeys([*own, *(judge.prompt_of(self.name) for judge in self.judges)]))

    def library(self, overrides: Path | None = None) -> PromptLibrary:
        """Return all prompts by id.

        Args:
            overrides: A folder of the user's prompts, which replace those of the same id.

        Raises:
            DataError: If a file cannot be read.
            PromptError: If a file holds no valid prompt, or an override names an unknown id or input.
        """
        return PromptLibrary.load(self.prompt_list(), overrides, self.templates)


class WithJudging(Capability):
    """Judgements that `judges` do not make, or metrics in an order of the recipe's own.

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
        judged = [metric for judge in self.judges for metric in judge.metrics]
        return tuple(dict.fromkeys([*judged, *(check.metric for check in self.checks)]))

    @property
    def scales(self) -> Mapping[str, tuple[int, int]]:
        """The lowest and the highest score by metric; verdicts have no entry."""
        scored = [(metric, judge.scale) for judge in self.judges for metric in judge.metrics]
        scored += [(check.metric, check.scale) for check in self.checks]
        return {metric: scale for metric, scale in scored if scale is not None}

    def judging(self) -> Graph | None:
        """Return a graph that only judges (its nodes read `Scene.judged`); `None` if the recipe has no judges."""
        recipe: Any = self
        return judging_graph(recipe, self.judges) if self.judges else None

    def judging_roles(self) -> Mapping[str, float]:
        """Return the roles that judge, with their default temperatures."""
        return {judge.role: self.roles[judge.role] for judge in self.judges}


class WithFacets(Capability):
    """Facets of scenarios with a special meaning.

    Example:
        >>> class Support(DialogueRecipe, WithFacets):
        ...     facets = (Facet("caller", splits=True, unit="callers"), Facet("turns", tells_length=True))

    Attributes:
        facets: The facets by which exports are split, over which confidence intervals are computed, or that grow with
            the length of a conversation.
    """

    facets: ClassVar[Sequence[Facet]] = ()

    @property
    def split_facet(self) -> str | None:
        """The facet by which an export may be split into train and test; `None` if there is none."""
        return next((facet.name for facet in self.facets if facet.splits), None)

    @property
    def unit_facet(self) -> str | None:
        """The facet over whose values intervals are computed; `None` for intervals over scenarios.

        It is the one with a `unit`, else the one that `splits`.
        """
        return next((facet.name for facet in self.facets if facet.unit), self.split_facet)

    @property
    def units(self) -> str:
        """The plural name of the units over which intervals are computed, e.g. `people`."""
        if self.unit_facet is None:
            return "scenarios"
        return next((facet.unit for facet in self.facets if facet.unit), "people")

    @property
    def sequence_facet(self) -> str | None:
        """The facet whose scenarios of one value are played one after another; `None` for any order."""
        return next((facet.name for facet in self.facets if facet.in_sequence), None)

    @property
    def length_facet(self) -> str | None:
        """The facet that grows with the length of a conversation; `None` if there is none."""
        return next((facet.name for facet in self.facets if facet.tells_length), None)


class WithReport(Capability):
    """Tables or charts that pivots cannot express, also over several runs at once.

    Example:
        >>> class Support(DialogueRecipe, WithReport):
        ...     def charts(self, runs):
        ...         return [growth(label, episodes) for label, episodes in runs]
    """

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the tables of one run, from its finished scenarios read one at a time.

        By default those of the recipe's `pivots`; without any, each metric overall and by each facet with few values.
        """
        known, judging = WithFacets.of(self), WithJudging.of(self)
        if self.pivots:
            return tabulate(self.pivots, episodes, known.unit_facet, known.units)
        checked = {check.metric for check in judging.checks}
        return default_tables(episodes, known.unit_facet, known.units, checked, judging.scales)

    def compared(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Table]:
        """Return the tables of a report over one run or several, from each run's label and its finished scenarios.

        By default the `tables` of a single run, or those of several runs side by side. Each run's scenarios can be
        iterated only once.
        """
        if len(runs) == 1:
            return self.tables(runs[0][1])
        return side_by_side([(label, self.tables(episodes)) for label, episodes in runs])

    def charts(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Chart]:
        """Return the report's charts, from each run's label and its finished scenarios, which can be iterated once.

        By default those of the `charted` columns of the `tables`: without pivots, every metric over all scenarios.
        """
        drawn: list[Chart] = []
        for number, (label, episodes) in enumerate(runs, start=1):
            for chart in itertools.chain.from_iterable(map(charts_of, self.tables(episodes))):
                if len(runs) > 1:
                    chart = replace(chart, name=f"{chart.name}-{number}", title=f"{chart.title} ({label})")
                drawn.append(chart)
        return drawn


class WithGate(Capability):
    """Conversations besides the outcome's messages, or facts about them for the gate's rules.

    Example:
        >>> class Support(Recipe, WithGate):
        ...     languages = ("en",)
        ...
        ...     def facts(self, scenario):
        ...         return Facts(languages=self.languages, task=scenario.goal, end_markers=("DONE",))

    Attributes:
        languages: The languages of the conversations, as ISO 639 codes; dataset cards list them, too.
        fault_kinds: The recipe's own kinds of faults: names and their meanings.
    """

    languages: ClassVar[tuple[str, ...]] = ()
    fault_kinds: ClassVar[Mapping[str, str]] = {}

    def facts(self, scenario: Any) -> Facts:
        """Return facts about a scenario's conversation that the gate's rules need besides its messages."""
        return Facts(languages=self.languages)

    def talks(self, scenario: Any, outcome: Outcome) -> Iterable[Talk]:
        """Yield the conversations of an outcome that the gate checks: by default its messages."""
        if outcome.messages:
            yield Talk.of(outcome.messages, self.facts(scenario), outcome.ended_by)

    def noticed(self, scenario: Any, outcome: Outcome) -> Iterable[DialogueFault]:
        """Return faults that only the recipe can detect; its own kinds are listed in `fault_kinds`."""
        return ()

    def spoken(self, reply: str) -> str:
        """Return the part of a simulated user's reply that the other side receives, such as all but an end marker."""
        return reply.strip()

    def played_by(self, scenario: Any) -> Mapping[str, str]:
        """Return the instructions of a scenario's simulated user, text by text, for reviewers of how it was played."""
        return {key: str(value) for key, value in scenario.described().items()}


class WithLabels(Capability):
    """Judgements that annotators are shown in another form than the conversation.

    Example:
        >>> class Letters(Recipe, WithLabels):
        ...     def judged_lines(self, outcome, judgement):
        ...         return [Line(role="letter", content=outcome.details["letter"])]
    """

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> Sequence[Line]:
        """Return the lines that annotators read to judge the same item; they must not reveal the judge's score.

        By default the conversation, to the end of the turn that was judged.
        """
        return conversation_to(outcome, judgement)

    def judged_about(self, scenario: Any, judgement: Judgement) -> Mapping[str, Any]:
        """Return the other information that annotators of the same item are shown.

        By default the whole scenario, because a judge may have seen any of it, and what its description adds.
        """
        content: dict[str, Any] = scenario.model_dump(mode="json")
        return content | {key: value for key, value in scenario.described().items() if key not in content}

    def concluded(self, outcome: Outcome) -> Iterable[Judgement]:
        """Return conclusions from several judgements, under metrics of their own, that annotators can give, too.

        They count in no mean; people's labels are compared with them as with a judgement.
        """
        return ()


class WithOutline(Capability):
    """Outcomes that are more than one conversation, such as trees.

    Example:
        >>> class Letters(Recipe, WithOutline):
        ...     def outline(self, episode):
        ...         drafts = episode.outcome.details["drafts"]
        ...         return Outline([Span("drafts")], [Outline([Span(draft)]) for draft in drafts])
    """

    def outline(self, episode: Episode) -> Outline | None:
        """Return an outcome as an outline, or `None` to show its messages."""
        return None


class WithProgress(Capability):
    """Conversations whose progress is not counted in turns of the user.

    Example:
        >>> class Letters(Recipe, WithProgress):
        ...     def counted(self, state):
        ...         return {"draft": len(state["drafts"])}
    """

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the progress of a conversation in the recipe's own units (`turn`, `round`), for the step debugger.

        By default the turns: the number of the user's messages in the state's `messages`.
        """
        return {"turn": sum(message.name == "user" for message in state.get("messages", ()))}


class ExportOptions(BaseModel):
    """Options of a format; fields work as in `RecipeOptions`."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


@dataclass(frozen=True, slots=True)
class Exporter:
    """An export format of a recipe.

    Attributes:
        description: The text of the help.
        kind: `lines`: each item is a row. `files`: each item is a path (a tuple of folder names and the file's name)
            and its content: text as it is, anything else as JSON. `lists`: as `files`, with one row of the JSON list
            that the file holds, or of its JSON lines if it ends in `.jsonl`, whichever scenarios its rows come from. A
            name may be made of any id: characters that file names cannot hold are replaced.
        items: Returns the items of one finished scenario: `items(episode, scenario, prompts, models)`, with the run's
            prompts and its models by role, the judges being those of the set of judgements. An exporter that sets
            `options` gets them as the keyword `options`.
        options: The type of its options; `None` if it has none.
        arranged: Reorders the items of a whole file. It reads them as an iterator and must not hold all of them in
            memory.
        tasks: The purposes of its rows, as Hugging Face task categories.
        pair_roles: The roles that write the chosen and the rejected replies of a preference dataset.
    """

    description: str
    kind: Literal["lines", "files", "lists"]
    items: Callable[..., Iterable[Any]]
    options: type[ExportOptions] | None = None
    arranged: Callable[[Iterator[Any]], Iterator[Any]] | None = None
    tasks: tuple[str, ...] = ("text-generation",)
    pair_roles: tuple[str, str] | None = None

    @property
    def is_folder(self) -> bool:
        """Return whether the format writes a folder of files instead of one file of rows."""
        return self.kind != "lines"


class WithExports(Capability):
    """Export formats of the recipe's own.

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
        """Return the format whose folder a run with these options is made for (another recipe's input), or `None`."""
        return None

"""The contract between a system and everything that runs, keeps, shows and exports it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from dialoom.errors import DialoomError

from .fault import DialogueFault
from .gate.talk import Facts, Talk
from .judgement_scope import conversation_to
from .outcome import Episode, Judgement, Line, Outcome
from .reporting.chart import Chart
from .reporting.comparison import side_by_side
from .reporting.outline import Outline
from .reporting.table import Table
from .scenario import Scenario

if TYPE_CHECKING:
    from langgraph.graph import StateGraph  # slow to import, and looking at a run needs no graph

Graph: TypeAlias = "StateGraph[Any, Any, Any, Any]"


class RecipeError(DialoomError):
    """An option's value that a recipe cannot use: names the value and what would be right."""


class RecipeOptions(BaseModel):
    """A recipe's own options, by the names of the fields; a field's description is its help.

    On the command line each field is a flag: one of a tuple type can be repeated, and a field's alias is the flag's
    name where that differs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


class ExportOptions(BaseModel):
    """What a format of a recipe's own may be told: fields as in `RecipeOptions`."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


@dataclass(frozen=True, slots=True)
class Exporter:
    """A format of a recipe's own.

    Attributes:
        description: For the help.
        kind: `lines`: each item is a row. `files`: each item is a path, as a tuple of the names of its folders and its
            own, and its content: text as it is, anything else as JSON; `lists`: and a row of the JSON list that this
            file is, or of its JSON lines if it ends in `.jsonl`, whichever scenarios its rows come from. A name may be
            made of any id: what no file can be called is changed.
        items: Gives the items of one finished scenario: `items(episode, scenario, prompts, models)`, with the run's
            prompts and its models by role, the judges being those of the set of judgements. An exporter that names
            `options` gets them as the keyword `options`.
        options: The type of its options; `None` if it has none.
        arranged: Puts the items of a whole file in another order. It reads them as they come, and must not hold them
            all.
        tasks: What its rows are for, as Hugging Face's task categories.
        pair_roles: Of a preference dataset, the roles that write the chosen and the rejected replies.
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
        """Whether it makes a folder of files of its own, and no file of rows."""
        return self.kind != "lines"


class Recipe(ABC):
    """A system: its roles, its scenarios, its graph, and what is made of the results.

    A new one is a new folder in `graphs/` (or any file of yours) that gives an instance of a subclass. Nothing else
    in dialoom knows it by name: entry points (`dialoom.recipes`) or `path/to/file.py:NAME` lead to it.

    Attributes:
        name: What it is called on the command line.
        summary: One line for the help.
        roles: Default sampling temperature of each role.
        reply_limits: The most tokens of a reply, of the roles that have a limit unless one is given.
        prompts: Ids of the prompts that it uses.
        templates: The folder that holds them as `<id>.md`; `None` for dialoom's own `prompts/`.
        reply_types: Reply types of its own, by the names that its prompts use.
        options_type: Its options.
        scenario_type: Its scenarios.
        metrics: What its judgements measure, in the order in which reports and exports show it.
        scales: The lowest and the highest score of each metric that is scored in whole numbers; others are verdicts.
        split_by: The facet by which an export may be split into train and test, e.g. `user`: what belongs to one user
            is then all on one side. `None` if there is nothing to split by.
        resampled_by: The facet over whose values intervals are made; by default that of `split_by`.
        resampled: What those are called that differ in it, in the plural.
        longest_first: The facet, a number, by which the plan can tell which conversations take long: among workers
            these begin first, so that nobody waits for one of them in the end. `None` if it cannot.
        evaluated: The role under evaluation, if there is one: reports name a run by its model.
        languages: What is spoken, as ISO 639 codes, for the cards of exports and the gate.
        fault_kinds: Kinds of faults of its own, by name, and what they mean.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    roles: ClassVar[Mapping[str, float]]
    reply_limits: ClassVar[Mapping[str, int]] = {}
    prompts: ClassVar[tuple[str, ...]]
    templates: ClassVar[Path | None] = None
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {}
    options_type: ClassVar[type[RecipeOptions]] = RecipeOptions
    scenario_type: ClassVar[type[Scenario]]
    metrics: ClassVar[tuple[str, ...]] = ()
    scales: ClassVar[Mapping[str, tuple[int, int]]] = {}
    split_by: ClassVar[str | None] = None
    resampled_by: ClassVar[str | None] = None
    longest_first: ClassVar[str | None] = None
    resampled: ClassVar[str] = "people"
    evaluated: ClassVar[str | None] = None
    languages: ClassVar[tuple[str, ...]] = ()
    fault_kinds: ClassVar[Mapping[str, str]] = {}

    @property
    def unit(self) -> str | None:
        """The facet over whose values intervals are made; `None` if over scenarios."""
        return self.resampled_by or self.split_by

    def roles_used(self, options: Any) -> Mapping[str, float]:  # noqa: ARG002
        """The roles that a run with these options needs, with their default temperatures."""
        return self.roles

    def models_named(self, options: Any) -> Mapping[str, str]:  # noqa: ARG002
        """Models that the options themselves name, by role; what a run is told of a role's model wins over them."""
        return {}

    @abstractmethod
    def scenarios(self, options: Any, draw: random.Random, note: Callable[[str], None]) -> Iterator[Scenario]:
        """The work, in plan order, one at a time: there may be more than fit in memory.

        Args:
            options: An instance of `options_type`.
            draw: The random stream of planning.
            note: Takes a line that the user should read, e.g. what was mended in the source.

        Raises:
            RecipeError: If an option's value is wrong.
            DataError: If a source file is.
        """

    @abstractmethod
    def graph(self, options: Any) -> Graph:
        """The uncompiled state machine; its nodes are made with `node` and get a `Stage` as context."""

    @abstractmethod
    def initial(self, scenario: Any) -> dict[str, Any]:
        """The state in which a scenario starts."""

    @abstractmethod
    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """What a final state means; or, if the scenario failed, the state that it had come to."""

    def judging(self) -> Graph | None:
        """A graph that only judges, for a second set of judgements; `None` if there is none."""
        return None

    def judging_state(self, scenario: Any, outcome: Outcome) -> dict[str, Any]:
        """The state in which a finished scenario enters `judging`.

        Args:
            scenario: An instance of `scenario_type`.
            outcome: What came of it. If some judgements of a set are to be made again, it has the others: they stand,
                and whatever is said anew of the same things (metric, target and turn) is not looked at. A graph that
                leaves them out (see `is_judged`) spares their calls.
        """
        raise NotImplementedError(f"{self.name} has a judging graph, so it must say in which state it starts")

    def is_to_judge(self, outcome: Outcome) -> bool:  # noqa: ARG002
        """Whether `judging` asks anybody about an outcome: of those that it does a sample to be judged is drawn."""
        return True

    def judging_roles(self) -> Mapping[str, float]:
        """The roles that `judging` needs."""
        return {}

    def outline(self, episode: Episode) -> Outline | None:  # noqa: ARG002
        """An outcome that is more than one conversation, for whoever looks at it; `None` shows its messages."""
        return None

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """How far a conversation is, in the recipe's own units (`turn`, `round`), for the step debugger.

        By default the turns: how often the user has spoken in the state's `messages`.
        """
        return {"turn": sum(message.name == "user" for message in state.get("messages", ()))}

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:  # noqa: ARG002
        """The report's tables, from finished scenarios read one at a time."""
        return []

    def compared(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Table]:
        """The tables of a report over one run or several, from each run's label and its finished scenarios.

        By default the `tables` of a single run, and those of several runs side by side. Each run's scenarios can be
        read once.
        """
        if len(runs) == 1:
            return self.tables(runs[0][1])
        return side_by_side([(label, self.tables(episodes)) for label, episodes in runs])

    def charts(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Chart]:  # noqa: ARG002
        """What a report draws, from each run's label and its finished scenarios, which can be read once."""
        return []

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> Sequence[Line]:
        """The lines that people read to judge the same thing as a judgement; nothing in them may tell the judge's word.

        By default the conversation, to the end of the turn that was judged.
        """
        return conversation_to(outcome, judgement)

    def concluded(self, outcome: Outcome) -> Iterable[Judgement]:  # noqa: ARG002
        """What an outcome's judgements come to together, where people can say that too, under metrics of its own.

        It is no judge's word and counts in no mean; people's labels are compared with it as with a judgement.
        """
        return ()

    def facts(self, scenario: Any) -> Facts:  # noqa: ARG002
        """What the gate's rules should know of a scenario's conversation besides its words."""
        return Facts(languages=self.languages)

    def played_by(self, scenario: Any) -> Mapping[str, str]:
        """What a scenario's simulated user goes by, text by text, for whoever reviews how it was played."""
        return {key: str(value) for key, value in scenario.described().items()}

    def spoken(self, reply: str) -> str:
        """What of a simulated user's reply the other side hears, such as all but an end marker."""
        return reply.strip()

    def talks(self, scenario: Any, outcome: Outcome) -> Iterable[Talk]:
        """The conversations of an outcome that the gate looks at: by default its messages."""
        if outcome.messages:
            yield Talk.of(outcome.messages, self.facts(scenario), outcome.ended_by)

    def noticed(self, scenario: Any, outcome: Outcome) -> Iterable[DialogueFault]:  # noqa: ARG002
        """Faults that only the recipe can tell; their kinds, if they are its own, stand in `fault_kinds`."""
        return ()

    def judged_about(self, scenario: Any, judgement: Judgement) -> Mapping[str, Any]:  # noqa: ARG002
        """What else people are told who judge the same thing as a judgement.

        By default all that the scenario holds, because a judge may have seen any of it, and what its description adds.
        """
        content: dict[str, Any] = scenario.model_dump(mode="json")
        return content | {key: value for key, value in scenario.described().items() if key not in content}

    def exporters(self) -> Mapping[str, Exporter]:
        """Formats of its own, by name."""
        return {}

    def folder_format(self, options: Any) -> str | None:  # noqa: ARG002
        """The format whose folder a run with these options is made for: what another recipe reads, or people mend."""
        return None

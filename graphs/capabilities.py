"""Optional capabilities: what only the gate, labelling, the debugger or exports ask a recipe.

A recipe that has one inherits it and overrides what it needs. Whoever asks uses `of`, which gives the defaults for any
other recipe::

    class Support(DialogueRecipe, WithExports):
        def exporters(self):
            return {"tickets": Exporter("one row per call", "lines", ticket_rows)}

    WithExports.of(recipe).exporters()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict

from .fault import DialogueFault
from .gate.talk import Facts, Talk
from .judgement_scope import conversation_to
from .outcome import Episode, Judgement, Line, Outcome
from .reporting.outline import Outline


class Capability:
    """The base of the capabilities."""

    languages: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, recipe: object) -> Self:
        """Return a recipe as one that has the capability, or the capability's defaults."""
        if isinstance(recipe, cls):
            return recipe
        kind: type[Self] = type(cls.__name__, (cls,), {"languages": getattr(recipe, "languages", ())})
        return kind()


class WithGate(Capability):
    """Conversations that are more than the outcome's messages, or of which the gate's rules should know more.

    Attributes:
        fault_kinds: Kinds of faults of the recipe's own, by name, and what they mean.
    """

    fault_kinds: ClassVar[Mapping[str, str]] = {}

    def facts(self, scenario: Any) -> Facts:  # noqa: ARG002
        """Return what the gate's rules should know of a scenario's conversation besides its words."""
        return Facts(languages=self.languages)

    def talks(self, scenario: Any, outcome: Outcome) -> Iterable[Talk]:
        """Yield the conversations of an outcome that the gate looks at: by default its messages."""
        if outcome.messages:
            yield Talk.of(outcome.messages, self.facts(scenario), outcome.ended_by)

    def noticed(self, scenario: Any, outcome: Outcome) -> Iterable[DialogueFault]:  # noqa: ARG002
        """Return faults that only the recipe can tell; kinds of its own stand in `fault_kinds`."""
        return ()

    def spoken(self, reply: str) -> str:
        """Return what of a simulated user's reply the other side hears, such as all but an end marker."""
        return reply.strip()

    def played_by(self, scenario: Any) -> Mapping[str, str]:
        """Return what a scenario's simulated user is told, text by text, for whoever reviews how it was played."""
        return {key: str(value) for key, value in scenario.described().items()}


class WithLabels(Capability):
    """Judgements that people are shown in another way than as the conversation."""

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> Sequence[Line]:
        """Return the lines that people read to judge the same thing; nothing in them may tell the judge's score.

        By default the conversation, to the end of the turn that was judged.
        """
        return conversation_to(outcome, judgement)

    def judged_about(self, scenario: Any, judgement: Judgement) -> Mapping[str, Any]:  # noqa: ARG002
        """Return what else people are told who judge the same thing as a judgement.

        By default all that the scenario holds, because a judge may have seen any of it, and what its description adds.
        """
        content: dict[str, Any] = scenario.model_dump(mode="json")
        return content | {key: value for key, value in scenario.described().items() if key not in content}

    def concluded(self, outcome: Outcome) -> Iterable[Judgement]:  # noqa: ARG002
        """Return what an outcome's judgements come to together, where people can say that too, by metrics of its own.

        It counts in no mean; people's labels are compared with it as with a judgement.
        """
        return ()


class WithOutline(Capability):
    """Outcomes that are more than one conversation, such as trees."""

    def outline(self, episode: Episode) -> Outline | None:  # noqa: ARG002
        """Return an outcome as an outline; `None` shows its messages."""
        return None


class WithProgress(Capability):
    """Conversations whose progress is not counted in turns of the user."""

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return how far a conversation is, in units of the recipe's own (`turn`, `round`), for the step debugger.

        By default the turns: how often the user has spoken in the state's `messages`.
        """
        return {"turn": sum(message.name == "user" for message in state.get("messages", ()))}


class ExportOptions(BaseModel):
    """Options of a format: fields as in `RecipeOptions`."""

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


class WithExports(Capability):
    """Export formats of the recipe's own."""

    def exporters(self) -> Mapping[str, Exporter]:
        """Return the formats by name."""
        return {}

    def folder_format(self, options: Any) -> str | None:  # noqa: ARG002
        """Return the format whose folder a run with these options is made for: what another recipe reads."""
        return None

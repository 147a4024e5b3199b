"""Options of a PrefEval run; each variable of a table is an axis of its own."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field, field_validator, model_validator

from dialoom.graphs.option_types import AbsolutePath, Axis, EmbedderName, FilledAxis, FromOne, FromZero
from dialoom.graphs.recipe import RecipeOptions
from dialoom.personas import EMBEDDERS
from dialoom.personas.preferences import FORMS, Form, PreferencePairs, sample_pairs

Task = Literal["generation", "classification"]
Method = Literal["zero-shot", "reminder", "cot", "rag", "self-critic"]
Arm = Literal["", "alone", "agreeing", "conflicting"]
TASKS: tuple[Task, ...] = get_args(Task)
METHODS: tuple[Method, ...] = get_args(Method)
ARMS: tuple[Arm, ...] = ("alone", "agreeing", "conflicting")


class PrefEvalOptions(RecipeOptions):
    """The options of the recipe `prefeval`; repeatable ones are axes of the table."""

    pairs: AbsolutePath | None = Field(
        None, description="PrefEval's benchmark_dataset, or a file of pairs; without it, the shipped samples."
    )
    topics: str = Field("all", description="all, or topics separated by commas.")
    form: FilledAxis[Form] = Field(
        ("explicit",), description=f"How the preference is told: {', '.join(FORMS)}. Repeatable."
    )
    task: FilledAxis[Task] = Field(("generation",), description=f"{' or '.join(TASKS)}. Repeatable.")
    method: FilledAxis[Method] = Field(
        ("zero-shot",), description=f"How the assistant is helped: {', '.join(METHODS)}. Repeatable."
    )
    turns: Axis[FromZero] = Field(
        (), description="Unrelated turns before the question; 8 unless the length is given in tokens. Repeatable."
    )
    tokens: Axis[FromOne] = Field(
        (), description="Instead of turns: as many as fit with the preference into so many tokens. Repeatable."
    )
    position: Axis[float] = Field(
        (),
        description="The share of the turns that stands before the preference, from 0 to 1; 0, or 0.5 with conflict, "
        "unless said otherwise. Repeatable.",
    )
    extra: FilledAxis[FromZero] = Field(
        (0,), description="Further preferences, of other topics, spread over the turns. Repeatable."
    )
    conflict: bool = Field(
        False, description="Three arms: the preference alone, after one that agrees, after one that it contradicts."
    )
    distractors: AbsolutePath | None = Field(
        None, description="A pool of chats, as PrefEval's filtered_inter_turns.json; without it, the shipped one."
    )
    retrieved: FilledAxis[FromOne] = Field((5,), description="Messages that rag retrieves. Repeatable.")
    embedder: EmbedderName = Field("lexical", description=f"What rag compares texts with: {EMBEDDERS}.")
    judge: bool = Field(True, description="Let the four checkers judge each answer.")
    limit: int | None = Field(None, ge=1, description="Plan no more than this many items.")

    @field_validator("position")
    @classmethod
    def _shares(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if not all(0 <= value <= 1 for value in values):
            raise ValueError("give shares from 0 to 1")
        return values

    @model_validator(mode="after")
    def _one_length(self) -> PrefEvalOptions:
        if self.turns and self.tokens:
            raise ValueError("turns and tokens both set the length; give one of them")
        if self.conflict and any(self.extra):
            raise ValueError("conflict has an extra preference of its own; leave extra out")
        if self.conflict and 0 in self.position:
            raise ValueError("conflict needs room before the preference; give positions above 0")
        return self

    def source(self) -> PreferencePairs:
        """Return the source of the pairs."""
        return sample_pairs() if self.pairs is None else PreferencePairs(self.pairs)

    def positions(self) -> tuple[float, ...]:
        """Return the preference's positions: by default the start, or the middle in the conflict setting."""
        return self.position or ((0.5,) if self.conflict else (0.0,))

"""New pairs for PrefEval: options, scenarios (one topic each), and the reply types of the models' roles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, field_validator, model_validator

from dialoom.graphs import AbsolutePath, EmbedderName, RecipeOptions, Shared
from dialoom.graphs.embedding import EmbeddingScenario
from dialoom.inputs import Frozen
from dialoom.personas import DEFAULT_THRESHOLD, EMBEDDER_FORMS
from dialoom.personas.preferences import (
    ChoiceTalk,
    Draft,
    FourTexts,
    PairRating,
    PairTopic,
    RatedPair,
    TalkTurn,
    Text,
    Validity,
)

Until = Literal["written", "filtered", "chosen", "complete"]
UNTIL: tuple[Until, ...] = get_args(Until)
ANSWERERS = ("answerer", "answerer-2", "answerer-3", "answerer-4", "answerer-5")
"""The roles that answer without the preference. The paper uses five."""


class PairsOptions(RecipeOptions):
    """The options of the recipe `prefeval-pairs`."""

    topics: str = Field("all", description="Topics: all, or names separated by commas.")
    topic_file: AbsolutePath | None = Field(
        None, description="JSON list of topics, each with a description and subtopics; by default the shipped ones."
    )
    drafts: AbsolutePath | None = Field(
        None, description="Continue from exported drafts, which may have been edited, instead of having pairs written."
    )
    until: Until = Field(
        "complete", description=f"Stop after a stage, to review and edit the drafts: {', '.join(UNTIL)}."
    )
    per_call: int = Field(10, ge=1, le=50, description="Number of pairs requested per call.")
    calls: int = Field(5, ge=1, description="Number of calls for new pairs per topic.")
    answerers: tuple[str, ...] = Field(
        (),
        alias="answerer",
        description="A model that answers without the preference; the violation rate is the share of answers "
        f"that contradict it. Repeatable, up to {len(ANSWERERS)}. [default: one, as the role answerer]",
    )
    least_rate: float = Field(
        0.5, ge=0.0, le=1.0, description="Drop pairs with a lower violation rate than this, 0 to 1."
    )
    least_probability: Literal["low", "medium", "high"] = Field(
        "low", description="Drop pairs whose rated violation probability is lower: low, medium or high."
    )
    least_difficulty: Literal["low", "high"] = Field(
        "low", description="Drop pairs whose rated reasoning difficulty is lower: low or high."
    )
    rated: AbsolutePath | None = Field(
        None, description="Pairs rated by people, as examples for the rater; by default the 50 shipped ones."
    )
    keep: int = Field(50, ge=1, description="Maximum number of pairs per topic.")
    threshold: float = Field(
        DEFAULT_THRESHOLD,
        ge=0.0,
        le=1.0,
        description="Drop pairs whose similarity to a selected pair is higher than this, 0 to 1.",
    )
    embedder: EmbedderName = Field("lexical", description=f"Embedder for comparing pairs: {EMBEDDER_FORMS}.")
    personas: AbsolutePath | None = Field(
        None, description="JSON list of personas that state preferences; by default the 100 shipped ones."
    )
    candidates: int = Field(
        5, ge=1, le=20, description="Number of personas drawn per pair; the first that fits is used."
    )
    shortest: int = Field(3, ge=2, le=20, description="Minimum number of turns of a persona's dialogue.")
    longest: int = Field(7, ge=2, le=20, description="Maximum number of turns of a persona's dialogue.")

    @field_validator("answerers")
    @classmethod
    def _not_too_many(cls, models: tuple[str, ...]) -> tuple[str, ...]:
        if len(models) > len(ANSWERERS):
            raise ValueError(f"must be at most {len(ANSWERERS)} models, got {len(models)}")
        return models

    @model_validator(mode="after")
    def _together(self) -> PairsOptions:
        if self.shortest > self.longest:
            raise ValueError(f"shortest must be at most longest, {self.longest}, got {self.shortest}")
        if self.drafts is not None and self.topic_file is not None:
            raise ValueError("drafts and topic_file exclude each other: drafts name their topics")
        if self.drafts is not None and self.until == "written":
            raise ValueError("until must be a later stage than written for a run that continues drafts")
        return self

    def answering(self) -> tuple[str, ...]:
        """Return the roles of the answerers."""
        return ANSWERERS[: max(1, len(self.answerers))]


class PairsScenario(EmbeddingScenario):
    """A topic, with everything needed to build its pairs, so that a started run does not read files again.

    Attributes:
        topic: The topic.
        drafts: The input drafts. If there are any, no new pairs are written.
        answerers: The roles that answer without the preference.
        rated: The rater's examples.
        personas: The personas that may state a preference.

    All other attributes have the same meaning as the options with the same names.
    """

    topic: PairTopic
    drafts: tuple[Draft, ...] = ()
    until: Until
    per_call: int
    calls: int
    answerers: tuple[str, ...]
    least_rate: float
    least_probability: Literal["low", "medium", "high"]
    least_difficulty: Literal["low", "high"]
    keep: int
    threshold: float
    embedder: str
    candidates: int
    shortest: int
    longest: int
    rated: Shared[tuple[RatedPair, ...]]
    personas: Shared[tuple[str, ...]]

    @property
    def label(self) -> str:
        """The topic, and the last stage if the run stops before the final one."""
        return self.topic.topic if self.until == "complete" else f"{self.topic.topic} {self.until}"

    def facets(self) -> dict[str, Any]:
        """Return the topic and the last stage."""
        return {"topic": self.topic.topic, "until": self.until}

    def described(self) -> dict[str, Any]:
        """Return the facets, the options, and the number of input drafts."""
        chosen = self.model_dump(mode="json", include={*COPIED_OPTIONS, "calls", "answerers"})
        return {**self.facets(), "description": self.topic.description, "drafts": len(self.drafts), **chosen}


COPIED_OPTIONS = set(
    "until per_call least_rate least_probability least_difficulty keep threshold embedder candidates shortest "
    "longest".split()
)
"""The fields of a scenario that are copied from the options."""


class WrittenPair(Frozen):
    """A new pair."""

    preference: Text
    question: Text
    explanation: str = ""


class WrittenPairs(Frozen):
    """What a call for new pairs brings."""

    items: Annotated[list[WrittenPair], Field(min_length=1)]


class PairValidity(Frozen):
    """Whether a pair is one."""

    explanation: str = ""
    verdict: Validity


class EasierQuery(Frozen):
    """The question of the talk of a choice."""

    query: Text


class FourOptions(Frozen):
    """Four different texts, the right one first."""

    options: FourTexts


class OfferedChoice(Frozen):
    """What is said after the question of the talk of a choice."""

    assistant_options: Text
    user_selection: Text
    assistant_acknowledgment: Text

    def after(self, query: str) -> ChoiceTalk:
        """Return the whole talk."""
        return ChoiceTalk(query=query, **self.model_dump())


class PersonaNumber(Frozen):
    """Which of some people; 0 for none."""

    explanation: str = ""
    number: Annotated[int, Field(ge=0)]


class PersonaTalk(Frozen):
    """A talk, and the sentence in it that tells the preference: in one message of the user's, once."""

    turns: Annotated[tuple[TalkTurn, ...], Field(min_length=2)]
    passage: Text

    @model_validator(mode="after")
    def _has_one_passage(self) -> PersonaTalk:
        if (count := sum(turn.user.count(self.passage) for turn in self.turns)) != 1:
            raise ValueError(f"the passage stands {count} times in what the user says; once, word for word, is needed")
        if any(self.passage in turn.assistant for turn in self.turns):
            raise ValueError("the assistant repeats the passage; nobody but the user may say it")
        return self


class OtherPreference(Frozen):
    """A preference on the same matter."""

    preference: Text


REPLY_TYPES: Mapping[str, type[BaseModel]] = {
    "written-pairs": WrittenPairs,
    "pair-validity": PairValidity,
    "pair-rating": PairRating,
    "easier-query": EasierQuery,
    "four-options": FourOptions,
    "choice-talk": OfferedChoice,
    "persona-number": PersonaNumber,
    "persona-talk": PersonaTalk,
    "other-preference": OtherPreference,
}

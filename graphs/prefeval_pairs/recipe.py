"""The `prefeval-pairs` recipe: a scenario is a topic; its graph writes, filters and completes the topic's pairs."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pydantic import BaseModel

from dialoom.graphs.capabilities import (
    Exporter,
    WithExports,
    WithGate,
    WithOutline,
    WithProgress,
    WithPrompts,
)
from dialoom.graphs.embedding import PROMPT as EMBEDDER_PROMPT
from dialoom.graphs.embedding import REPLY_TYPE, EmbeddingRecipe, Embeddings, embedder_here
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.generation import Loop, generation_graph
from dialoom.graphs.option_types import chosen
from dialoom.graphs.outcome import Episode, Outcome
from dialoom.graphs.prefeval.checkers import REPLY_TYPES as CHECKERS_REPLY_TYPES
from dialoom.graphs.recipe import Graph
from dialoom.graphs.reporting.table import Outline, Span, Table
from dialoom.graphs.shared import Shared
from dialoom.personas.preferences import Draft, PairTopic, read_drafts, read_rated, read_tellers, read_topics

from . import building, exports
from .building import PairsState, drafts_of
from .replies import REPLY_TYPES
from .scenario import ANSWERERS, AS_CHOSEN, UNTIL, PairsOptions, PairsScenario


class PrefEvalPairs(EmbeddingRecipe, WithPrompts, WithGate, WithOutline, WithProgress, WithExports):
    """Preferences and questions that put them to the test, written and filtered by models."""

    name = "prefeval-pairs"
    summary = "New pairs of preference and question for prefeval: written, filtered, told in every form."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {
        "writer": 0.5,
        **dict.fromkeys(ANSWERERS, 0.0),
        "judge": 0.0,
        "rater": 0.0,
        "embedder": 0.0,
    }
    reply_limits: ClassVar[Mapping[str, int]] = dict.fromkeys(ANSWERERS, 300)
    prompts = (
        "prefeval_pairs/pairs",
        "prefeval_pairs/validity",
        "prefeval_pairs/answer",
        building.VIOLATES,
        "prefeval_pairs/rating",
        "prefeval_pairs/choice-query",
        "prefeval_pairs/choice-options",
        "prefeval_pairs/choice-talk",
        "prefeval_pairs/persona-choice",
        "prefeval_pairs/persona-talk",
        "prefeval_pairs/options",
        "prefeval_pairs/conflict",
        EMBEDDER_PROMPT,
    )
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {
        **REPLY_TYPES,
        **CHECKERS_REPLY_TYPES,
        REPLY_TYPE: Embeddings,
    }
    options_type = PairsOptions
    scenario_type = PairsScenario

    def roles_used(self, options: PairsOptions) -> Mapping[str, float]:
        """Return the roles, with one answerer per model."""
        unused = set(ANSWERERS) - set(options.answering())
        return {role: value for role, value in super().roles_used(options).items() if role not in unused}

    def models_named(self, options: PairsOptions) -> Mapping[str, str]:
        """Return the models of `answerers`, and the embedder's."""
        return {**dict(zip(ANSWERERS, options.answerers, strict=False)), **super().models_named(options)}

    def scenarios(
        self,
        options: PairsOptions,
        draw: random.Random,  # noqa: ARG002
        note: Callable[[str], None],
    ) -> Iterator[PairsScenario]:
        """Yield the topics in the file's order."""
        if embedder := embedder_here(options.embedder):
            note(f"threshold {options.threshold:g}: {embedder.meaning}")
        rated, personas = Shared(tuple(read_rated(options.rated))), Shared(tuple(read_tellers(options.personas)))
        drafts = _by_topic(options, note)
        topics = [PairTopic(topic=topic) for topic in drafts] if drafts else read_topics(options.topic_file)
        for topic in _chosen(options, topics):
            given = tuple(drafts.get(topic.topic, ()))
            yield PairsScenario(
                topic=topic,
                drafts=given,
                calls=0 if given else options.calls,
                answerers=options.answering(),
                rated=rated,
                personas=personas,
                **options.model_dump(include=AS_CHOSEN),
            )

    def graph(self, options: PairsOptions) -> Graph:
        """Return the graph: writing call by call, the filters, the selection, then all forms in parallel."""
        writing = Loop(building.write, again=lambda state: len(state["calls"]) < options.calls)
        filtering = Loop(building.check, building.answer, building.grade)
        choosing = Loop(building.select)
        loops = [writing, filtering, choosing][: UNTIL.index(options.until) + 1]
        forms = (building.offer, building.tell, building.finish) if options.until == "complete" else ()
        return generation_graph(PairsState, *loops[bool(options.drafts) :], last=forms)

    def initial(self, scenario: PairsScenario) -> dict[str, Any]:
        """Return the state with the input drafts, if any."""
        given = [draft.renewed() for draft in scenario.drafts]
        rows = [{**draft.model_dump(mode="json", exclude_defaults=True), "text_id": draft.own_id} for draft in given]
        return {"written": rows, "calls": []}

    def outcome(self, scenario: PairsScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the drafts in their current state."""
        drafts = drafts_of(state)
        return Outcome(
            messages=(),
            ended_by="error" if failed else scenario.until,
            counts={
                "pairs": len(drafts),
                "left": sum(not draft.dropped for draft in drafts),
                "complete": sum(draft.is_complete for draft in drafts),
                "unparsed_calls": sum(call["unparsed"] for call in state["calls"]),
            },
            details={"drafts": [draft.model_dump(mode="json", exclude_defaults=True) for draft in drafts]},
        )

    def talks(self, scenario: PairsScenario, outcome: Outcome) -> Iterator[Talk]:
        """Yield the written texts of pairs that were not dropped; the texts of input pairs are the user's own."""
        facts, drafts = self.facts(scenario), outcome.details["drafts"]
        for number, draft in enumerate(map(Draft.model_validate, drafts), start=1):
            if not draft.dropped:
                yield from exports.written_talks(draft, f"pair {number}", facts, is_given=bool(scenario.drafts))

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of calls for new pairs, and the number of pairs left."""
        left = sum(not draft.dropped for draft in drafts_of(state)) if "written" in state else 0
        return {"call": len(state.get("calls", ())), "pair": left}

    def outline(self, episode: Episode) -> Outline:
        """Return the pairs as an outline, dropped ones last with the reason."""
        drafts = exports.drafts_in(episode)
        left = [draft for draft in drafts if not draft.dropped]
        dropped = [draft for draft in drafts if draft.dropped]
        title = f"{episode.facets['topic']}: {len(left)} of {len(drafts)} pairs are left"
        return Outline([Span(title, "heading")], [_outlined(draft) for draft in (*left, *dropped)])

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the pairs left after each stage, and the reasons for dropped ones."""
        return exports.tables(episodes)

    def exporters(self) -> Mapping[str, Exporter]:
        """Return the formats of the drafts, and of the folder that PrefEval reads."""
        return exports.EXPORTERS

    def folder_format(self, options: PairsOptions) -> str:
        """Return the format of the pairs, or of the drafts if the run ends earlier."""
        return "pairs" if options.until == "complete" else "drafts"


def _by_topic(options: PairsOptions, note: Callable[[str], None]) -> Mapping[str, list[Draft]]:
    """Return the input drafts by topic."""
    found: dict[str, list[Draft]] = defaultdict(list)
    if options.drafts is not None:
        for draft in read_drafts(options.drafts):
            found[draft.topic].append(draft)
        changed = sum(draft.renewed().text_id != draft.text_id for drafts in found.values() for draft in drafts)
        count = sum(map(len, found.values()))
        again = f"; {changed} were changed since they were written, and are looked at again" if changed else ""
        note(f"{count} drafts of {len(found)} topics{again}")
    return found


def _chosen(options: PairsOptions, topics: list[PairTopic]) -> list[PairTopic]:
    """Return the selected topics.

    Raises:
        RecipeError: If a topic is unknown.
    """
    by_name = {topic.topic: topic for topic in topics}
    return [by_name[name] for name in chosen("topics", options.topics, by_name)]


def _outlined(draft: Draft) -> Outline:
    rate = "" if draft.violation_rate is None else f"violation rate {draft.violation_rate:.2f}"
    told = f"dropped: {draft.dropped}" if draft.dropped else rate
    parts = [Outline([Span(draft.preference, "user")]), Outline([Span(draft.question, "user")])]
    return Outline([Span(told or "written", "note")], parts)

"""Generation of new pairs for PrefEval, exported as files that PrefEval reads (see `docs/prefeval-pairs.md`).

The recipe's graph writes and filters a topic's pairs; its exports and tables present them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dialoom.graphs.capabilities import Exporter, FileItem
from dialoom.graphs.embedding import EmbeddingRecipe, find_local_embedder
from dialoom.graphs.gate.talk import Facts, GateLine, Talk
from dialoom.graphs.generation import GenerationRecipe, Loop, Note, NoteTally, Result, generation_graph
from dialoom.graphs.judge import Graph
from dialoom.graphs.outcome import Episode, Outcome
from dialoom.graphs.prefeval.results import REPLY_TYPES as CHECKERS_REPLY_TYPES
from dialoom.graphs.recipe import RecipeError, chosen
from dialoom.graphs.scenario import Shared
from dialoom.graphs.tables.pivot import Column, Pivot, tabulate
from dialoom.graphs.tables.table import Outline, Span, Table
from dialoom.grouping import group_pairs
from dialoom.personas.preferences import (
    FOLDERS,
    FORMS,
    OPTIONS_FOLDER,
    Draft,
    PairTopic,
    build_common_columns,
    build_row,
    read_drafts,
    read_rated,
    read_tellers,
    read_topics,
)

from . import building
from .building import REASONS, PairsState, merge_drafts
from .scenario import ANSWERERS, COPIED_OPTIONS, REPLY_TYPES, UNTIL, PairsOptions, PairsScenario


def _load_drafts(options: PairsOptions, note: Callable[[str], None]) -> Mapping[str, list[Draft]]:
    """Return the input drafts by topic."""
    drafts = [] if options.drafts is None else [*read_drafts(options.drafts)]
    found = group_pairs((draft.topic, draft) for draft in drafts)
    if options.drafts is not None:
        changed = sum(draft.renewed().text_id != draft.text_id for draft in drafts)
        again = f"; {changed} were edited, and are reviewed again" if changed else ""
        note(f"{len(drafts)} drafts of {len(found)} topics{again}")
    return found


def _outline_draft(draft: Draft) -> Outline:
    rate = "" if draft.violation_rate is None else f"violation rate {draft.violation_rate:.2f}"
    parts = [Outline([Span(draft.preference, "user")]), Outline([Span(draft.question, "user")])]
    return Outline([Span((f"dropped: {draft.dropped}" if draft.dropped else rate) or "written", "note")], parts)


def draft_rows(episode: Episode, scenario: PairsScenario, *_: Any) -> Iterator[FileItem]:
    """Yield every draft of a topic, with the results of its checks. Dropped drafts come last."""
    for draft in sorted(parse_drafts(episode), key=lambda draft: bool(draft.dropped)):
        yield (f"{scenario.topic.topic}.json",), draft.model_dump(mode="json", exclude_defaults=True)


def release_rows(episode: Episode, scenario: PairsScenario, *_: Any) -> Iterator[FileItem]:
    """Yield the complete pairs as rows of the release's four files. Row i of each file belongs to the same pair.

    Raises:
        RecipeError: If the run ends before the forms are written.
    """
    if scenario.until != "complete":
        raise RecipeError(
            f"format 'pairs': the run ends at the stage {scenario.until}; export drafts, and continue from them"
        )
    name = f"{scenario.topic.topic}.json"
    for index, draft in enumerate(draft for draft in parse_drafts(episode) if draft.is_complete):
        for form in FORMS:
            pair = draft.pair(form, index)
            conflicting = {"conflicting_preference": draft.conflicting_preference} if form == "explicit" else {}
            yield (*FOLDERS[form].split("/"), name), {**build_row(pair), **conflicting}
        answers = {"classification_task_options": list(draft.classification_task_options or ())}
        rate = {} if draft.violation_rate is None else {"violation_probability": draft.violation_rate}
        yield (OPTIONS_FOLDER, name), {**build_common_columns(pair), **answers, **rate}


def parse_drafts(episode: Episode) -> list[Draft]:
    """Return the drafts of an outcome."""
    return [Draft.model_validate(each) for each in episode.outcome.details["drafts"]]


def build_talks(draft: Draft, place: str, facts: Facts, is_given: bool) -> Iterator[Talk]:
    """Yield a pair's separate texts, then its dialogues. A model wrote all of them; no roles spoke the dialogues.

    Args:
        draft: The pair.
        place: The name of the pair in the locations of faults.
        facts: The facts for the gate.
        is_given: Whether the user gave the preference and the question. If so, they are not checked themselves, and
            only serve to detect copies of them.
    """
    own = {"preference": draft.preference, "question": draft.question}
    made = {"earlier preference": draft.conflicting_preference}
    answers = {f"option {number}": text for number, text in enumerate(draft.classification_task_options or (), start=1)}
    texts = {f"{place}, {name}": text for name, text in (own | made | answers).items() if text}
    since = len(own) if is_given else 0
    if len(texts) > since:
        yield Talk.of_texts("writer", texts, facts, since)
    for form in FORMS[1:]:
        spoken = [
            GateLine(line.speaker, line.content, where=f"{place}, {form} {at}")
            for at, line in enumerate(draft.pair(form, 0).talk, start=1)
        ]
        if spoken:
            yield Talk(spoken, facts, author="writer")


_COLUMNS = {
    "written": "no twins",
    "validity": "valid",
    "rate": "violated",
    "rating": "rated",
    "selection": "chosen",
    "forms": "complete",
}
"""The stages after which pairs are counted, with the titles of their columns."""
_STAGE_COUNTS = {"written": 1, "filtered": 4, "chosen": 5, "complete": 6}
_DROPPED_BY_HAND = "dropped by a person"
_REASON_STAGES = {reason: stage for stage, reasons in REASONS.items() for reason in reasons}
_REASON_MEANINGS = {reason: meaning for reasons in REASONS.values() for reason, meaning in reasons.items()}


def _build_note(number: str, draft: Draft) -> Note:
    check = draft.dropped if draft.dropped in _REASON_STAGES else _DROPPED_BY_HAND if draft.dropped else ""
    result: Result = "dropped" if draft.dropped else "passed"
    return Note(kind="pairs", id=number, check=check, round=1, result=result, reason=draft.dropped)


def _build_stage_pivot(reached: int) -> Pivot:
    """Return the pivot of the pairs that are left after each stage that the run reaches."""

    def left(place: int) -> Callable[[Episode], list[Any]]:
        return lambda episode: [
            not draft.dropped or _find_stage_index(draft) > place for draft in parse_drafts(episode)
        ]

    def rates(episode: Episode) -> list[Any]:
        return [draft.violation_rate for draft in parse_drafts(episode) if not draft.dropped]

    return Pivot(
        "stages",
        "Pairs left after each stage",
        rows=["topic"],
        columns=[
            Column("pairs", lambda episode: [True] * episode.outcome.counts["pairs"], "count"),
            *(Column(title, left(place), "count") for place, title in enumerate([*_COLUMNS.values()][:reached])),
            Column("rate %", rates, "mean"),
            Column("unparsed calls", lambda episode: [True] * episode.outcome.counts["unparsed_calls"], "count"),
        ],
        only_scored=False,
        notes=[
            "Rate: the mean violation rate of the pairs that are left. Unparsed calls: calls for new pairs whose reply "
            "could not be parsed."
        ],
    )


def _find_stage_index(draft: Draft) -> int:
    """Return the index, among the stages' columns, of the stage that dropped a draft; 0 if a person dropped it."""
    stage = _REASON_STAGES.get(draft.dropped, "written")
    return [*_COLUMNS].index(stage if stage in _COLUMNS else "forms")


class PrefEvalPairs(GenerationRecipe, EmbeddingRecipe):
    """New pairs of a preference and a question for prefeval, written, filtered and put into every form."""

    name = "prefeval-pairs"
    roles = {
        "writer": 0.5,
        **dict.fromkeys(ANSWERERS, 0.0),
        "judge": 0.0,
        "rater": 0.0,
        "embedder": 0.0,
    }
    reply_limits = dict.fromkeys(ANSWERERS, 300)
    prompts = ("prefeval_pairs/*", building.VIOLATES_PROMPT)
    reply_types = {**REPLY_TYPES, **CHECKERS_REPLY_TYPES}
    options_type = PairsOptions
    scenario_type = PairsScenario
    formats = {
        "pairs": Exporter(
            "the pairs as prefeval reads them, in the layout of its release (a folder)",
            "lists",
            release_rows,
            only_done=True,
        ),
        "drafts": Exporter(
            "all drafts with the results of their checks, to edit and continue from (a folder)",
            "lists",
            draft_rows,
            only_done=True,
        ),
    }
    folder = "pairs"

    def roles_used(self, options: PairsOptions) -> Mapping[str, float]:
        """Return all roles, with one answerer per model."""
        unused = set(ANSWERERS) - set(options.answering())
        return {role: value for role, value in super().roles_used(options).items() if role not in unused}

    def models_named(self, options: PairsOptions) -> Mapping[str, str]:
        """Return the models of the option `answerers`, and the embedder's model."""
        return {**dict(zip(ANSWERERS, options.answerers, strict=False)), **super().models_named(options)}

    def scenarios(
        self, options: PairsOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PairsScenario]:
        """Yield the topics in the file's order."""
        if embedder := find_local_embedder(options.embedder):
            note(f"threshold {options.threshold:g}: {embedder.meaning}")
        rated, personas = Shared(tuple(read_rated(options.rated))), Shared(tuple(read_tellers(options.personas)))
        drafts = _load_drafts(options, note)
        topics = [PairTopic(topic=topic) for topic in drafts] if drafts else read_topics(options.topic_file)
        by_name = {topic.topic: topic for topic in topics}
        for name in chosen("topics", options.topics, by_name):
            given = tuple(drafts.get(name, ()))
            yield PairsScenario(
                topic=by_name[name],
                drafts=given,
                calls=0 if given else options.calls,
                answerers=options.answering(),
                rated=rated,
                personas=personas,
                **options.model_dump(include=COPIED_OPTIONS),
            )

    def graph(self, options: PairsOptions) -> Graph:
        """Return the graph: it writes pairs call by call, filters and selects them, then writes all forms at once."""
        writing = Loop(building.write, again=lambda state: len(state["calls"]) < options.calls)
        filtering = Loop(building.check, building.answer, building.grade)
        loops = [writing, filtering, Loop(building.select)][: UNTIL.index(options.until) + 1]
        forms = (building.offer, building.tell, building.finish) if options.until == "complete" else ()
        return generation_graph(PairsState, *loops[bool(options.drafts) :], last=forms)

    def initial(self, scenario: PairsScenario) -> dict[str, Any]:
        """Return the state with the input drafts, if any."""
        given = [draft.renewed() for draft in scenario.drafts]
        rows = [{**draft.model_dump(mode="json", exclude_defaults=True), "text_id": draft.own_id} for draft in given]
        return {"written": rows, "calls": []}

    def outcome(self, scenario: PairsScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the drafts in their current state."""
        drafts = merge_drafts(state)
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
        """Yield the written texts of pairs that were not dropped.

        The user's own texts in input pairs are only used for comparison.
        """
        facts, drafts = self.facts(scenario), outcome.details["drafts"]
        for number, draft in enumerate(map(Draft.model_validate, drafts), start=1):
            if not draft.dropped:
                yield from build_talks(draft, f"pair {number}", facts, is_given=bool(scenario.drafts))

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of calls for new pairs, and the number of pairs left."""
        left = sum(not draft.dropped for draft in merge_drafts(state)) if "written" in state else 0
        return {"call": len(state.get("calls", ())), "pair": left}

    def outline(self, episode: Episode) -> Outline:
        """Return the pairs as an outline. Dropped pairs come last, with the reason."""
        drafts = sorted(parse_drafts(episode), key=lambda draft: bool(draft.dropped))
        left = sum(not draft.dropped for draft in drafts)
        title = f"{episode.facets['topic']}: {left} of {len(drafts)} pairs are left"
        return Outline([Span(title, "heading")], [*map(_outline_draft, drafts)])

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return a table of the pairs left after each stage, by topic, and one of the reasons for dropping pairs."""
        done = (episode for episode in episodes if episode.state == "done")
        if (first := next(done, None)) is None:
            return []
        tally = NoteTally(
            {**_REASON_MEANINGS, _DROPPED_BY_HAND: "a person dropped the pair; the drafts contain the reason"}
        )

        def counted() -> Iterator[Episode]:
            for episode in itertools.chain([first], done):
                tally.add(
                    _build_note(str(number), draft) for number, draft in enumerate(parse_drafts(episode), start=1)
                )
                yield episode

        return [*tabulate([_build_stage_pivot(_STAGE_COUNTS[str(first.facets["until"])])], counted()), *tally.tables()]


RECIPE = PrefEvalPairs()

"""The nodes that write pairs call by call, filter and select them, and write every form (PrefEval, section A.13).

Pairs that a person has selected are not filtered. A result that a draft already has is not requested again.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypedDict

from dialoom.graphs import Scene, Update, ask_each, joined
from dialoom.graphs.embedding import embed_texts
from dialoom.graphs.generation import normalize_text
from dialoom.personas.preferences import Draft, PairRating
from dialoom.personas.similarity import VectorIndex, content_words

from .scenario import OfferedChoice, PairsScenario, PersonaNumber, PersonaTalk

StageResults = dict[str, dict[str, Any]]
"""The results of a stage for some drafts: values of fields of `Draft`, by the draft's index in `written`."""

STAGES = ("validity", "rate", "rating", "selection", "choice", "persona", "options")
"""The stages in the order in which they apply to a draft; the last three run in parallel."""

REASONS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    (Path(__file__).parent / "reasons.toml").read_text(encoding="utf-8")
)
"""The reasons for dropping pairs, by stage, with their meanings. All other reasons are written by people."""

LEVELS = ("low", "medium", "high")
VIOLATES_PROMPT = "prefeval/judge-violates"
"""The prompt of PrefEval's own checker, so that violations have the same definition here."""


class PairsState(TypedDict, total=False):
    """The state that is checkpointed. The results of each stage have their own channel, which is written once.

    Attributes:
        written: The drafts as written or given.
        calls: For each call for new pairs, the number of `pairs` in the reply and of `unparsed` replies (0 or 1).
    """

    written: Annotated[list[dict[str, Any]], joined]
    calls: Annotated[list[dict[str, int]], joined]
    validity: StageResults
    rate: StageResults
    rating: StageResults
    selection: StageResults
    choice: StageResults
    persona: StageResults
    options: StageResults


def merge_drafts(state: Mapping[str, Any]) -> list[Draft]:
    """Return the drafts after all stages. If a draft has several reasons for dropping it, the first one counts."""
    merged = [dict(row) for row in state["written"]]
    for (place, row), stage in product(enumerate(merged), STAGES):
        fields = state.get(stage, {}).get(str(place), {})
        row |= {key: value for key, value in fields.items() if key != "dropped" or not row.get("dropped")}
    return [Draft.model_validate(row) for row in merged]


def select_drafts(state: Mapping[str, Any], condition: Callable[[Draft], bool] | None = None) -> dict[str, Draft]:
    """Return the drafts that were not dropped, by index; if `condition` is given, only those for which it is true."""
    left = {str(at): draft for at, draft in enumerate(merge_drafts(state)) if not draft.dropped}
    return {at: draft for at, draft in left.items() if condition is None or condition(draft)}


async def write(state: PairsState, scene: Scene[PairsScenario]) -> Update:
    """Request new pairs once. A pair that exactly repeats an earlier preference or question is dropped as a twin."""
    scenario = scene.scenario
    written = state["written"]
    progress = f"{scenario.topic.topic}: call {len(state['calls']) + 1} of {scenario.calls}"
    shown = {"count": scenario.per_call, "written": [row["preference"] for row in written]}
    reply = (await ask_each(scene, "prefeval_pairs/pairs", {"": {**scenario.topic.model_dump(), **shown}}))[""]
    if reply is None:
        scene.tell(f"{progress}: the reply could not be parsed")
        return {"calls": [{"pairs": 0, "unparsed": 1}]}
    known = {row[key].casefold() for row in written for key in ("preference", "question")}
    drafts = []
    for item in reply.items:
        texts = {item.preference.casefold(), item.question.casefold()}
        draft = Draft(topic=scenario.topic.topic, **item.model_dump(), dropped="twin" if texts & known else "")
        drafts.append({**draft.model_dump(mode="json", exclude_defaults=True), "text_id": draft.own_id})
        known |= texts
    scene.tell(f"{progress}: {len(drafts)} pairs, {len(written) + len(drafts)} in all")
    return {"written": drafts, "calls": [{"pairs": len(drafts), "unparsed": 0}]}


async def check(state: PairsState, scene: Scene) -> Update:
    """Drop pairs whose question contradicts or reveals the preference, or lacks information that an answer needs."""
    unchecked = select_drafts(state, lambda draft: not draft.chosen and draft.validity is None)
    replies = await ask_each(
        scene, "prefeval_pairs/validity", {at: _build_inputs(draft) for at, draft in unchecked.items()}
    )
    found: StageResults = {
        at: {"dropped": "validity unparsed"}
        if reply is None
        else {"dropped": "" if reply.verdict == "valid" else reply.verdict, "validity": reply.verdict}
        for at, reply in replies.items()
    }
    return _report_stage(scene, "validity", "are valid", found)


async def answer(state: PairsState, scene: Scene[PairsScenario]) -> Update:
    """Measure the violation rate: the share of answers by models unaware of the preference that contradict it."""
    judged = select_drafts(state, lambda draft: not draft.chosen)
    unmeasured = {at: draft for at, draft in judged.items() if draft.violation_rate is None}
    answers = await ask_each(
        scene,
        "prefeval_pairs/answer",
        {
            (role, at): {"question": draft.question}
            for role in scene.scenario.answerers
            for at, draft in unmeasured.items()
        },
        role=lambda key: key[0],
    )
    verdicts = await ask_each(
        scene,
        VIOLATES_PROMPT,
        {
            key: {**_build_inputs(unmeasured[key[1]]), "answer": answer}
            for key, answer in answers.items()
            if answer is not None
        },
    )
    rates = {at: draft.violation_rate for at, draft in judged.items()}
    for at in unmeasured:
        violations = [verdict.answer == "yes" for (_, place), verdict in verdicts.items() if place == at and verdict]
        rates[at] = sum(violations) / len(violations) if violations else None
    found = {
        at: {"violation_rate": value, "dropped": _check_rate(value, scene.scenario)} for at, value in rates.items()
    }
    return _report_stage(scene, "rate", "are violated often enough", found)


async def grade(state: PairsState, scene: Scene[PairsScenario]) -> Update:
    """Have a rater grade pairs. Pairs that people have rated serve as examples."""
    judged = select_drafts(state, lambda draft: not draft.chosen)
    unrated = {at: draft for at, draft in judged.items() if draft.rating is None}
    labelled = [each.model_dump() for each in scene.scenario.rated.value]
    replies = await ask_each(
        scene,
        "prefeval_pairs/rating",
        {at: {**_build_inputs(draft), "labelled": labelled} for at, draft in unrated.items()},
    )
    ratings: dict[str, PairRating | None] = {at: draft.rating for at, draft in judged.items()} | replies
    found: StageResults = {
        at: {"rating": each and each.model_dump(), "dropped": _check_rating(each, scene.scenario)}
        for at, each in ratings.items()
    }
    return _report_stage(scene, "rating", "are rated well enough", found)


def _check_rate(value: float | None, scenario: PairsScenario) -> str:
    if value is None:
        return "rate unparsed"
    return "low rate" if value < scenario.least_rate else ""


def _check_rating(rated: PairRating | None, scenario: PairsScenario) -> str:
    if rated is None:
        return "rating unparsed"
    if rated.discard:
        return "discarded"
    if LEVELS.index(rated.violation_probability) < LEVELS.index(scenario.least_probability):
        return "low probability"
    is_easy = LEVELS.index(rated.reasoning_difficulty) < LEVELS.index(scenario.least_difficulty)
    return "low difficulty" if is_easy else ""


async def select(state: PairsState, scene: Scene[PairsScenario]) -> Update:
    """Select pairs in the order of `_rank`, without near-duplicates.

    Pairs that people have selected count towards the maximum number.
    """
    scenario = scene.scenario
    by_hand = select_drafts(state, lambda draft: draft.chosen)
    others = dict(
        sorted(select_drafts(state, lambda draft: not draft.chosen).items(), key=lambda item: _sort_key(*item))
    )
    texts = [f"{draft.preference} {draft.question}" for draft in (*by_hand.values(), *others.values())]
    vectors = await embed_texts(texts, scene, scenario.embedder)
    index = VectorIndex(vectors[: len(by_hand)])
    found = StageResults()
    for at, vector in zip(others, vectors[len(by_hand) :], strict=True):
        nearest = index.nearest(vector)
        is_twin = nearest is not None and nearest[1] > scenario.threshold
        if is_twin or index.size >= scenario.keep:
            found[at] = {"dropped": "near-duplicate" if is_twin else "surplus"}
        else:
            found[at] = {"chosen": True}
            index.add(vector)
    scene.tell(f"{scenario.topic.topic}: {index.size} of {len(texts)} pairs are chosen")
    return {"selection": found}


def _sort_key(place: str, draft: Draft) -> tuple[float, ...]:
    """Return the sort key: pairs with frequent, likely and difficult violations come first.

    If two pairs are equal, the one with the lower index comes first.
    """
    rated = draft.rating
    levels = (rated.violation_probability, rated.reasoning_difficulty) if rated else ("low", "low")
    return (-(draft.violation_rate or 0.0), *(-LEVELS.index(level) for level in levels), int(place))


async def offer(state: PairsState, scene: Scene) -> Update:
    """Write, step by step, an easier question, four options, and the dialogue in which the fitting option is chosen."""
    unfinished = select_drafts(state, lambda draft: draft.choice_conversation is None)
    queries = await ask_each(
        scene, "prefeval_pairs/choice-query", {at: _build_inputs(draft) for at, draft in unfinished.items()}
    )
    first = {
        at: {"preference": unfinished[at].preference, "query": reply.query}
        for at, reply in queries.items()
        if reply is not None and normalize_text(reply.query) != normalize_text(unfinished[at].question)
    }
    offered = await ask_each(scene, "prefeval_pairs/choice-options", first)
    second = {
        at: {**first[at], "fitting": reply.options[0], "others": reply.options[1:]}
        for at, reply in offered.items()
        if reply is not None
    }
    talks = await ask_each(scene, "prefeval_pairs/choice-talk", second)
    found: StageResults = {at: {"dropped": "choice unparsed"} for at in unfinished}
    for at, talk in talks.items():
        if talk is not None and not _reveals_preference(talk, unfinished[at]):
            made = talk.after(first[at]["query"])
            found[at] = {"options": list(offered[at].options), "choice_conversation": made.model_dump()}
    return _report_stage(scene, "choice", "have a dialogue with a choice", found)


async def tell(state: PairsState, scene: Scene[PairsScenario]) -> Update:
    """Write a conversation in which a persona states the preference. The first drawn persona that fits is used."""
    scenario = scene.scenario
    unfinished = select_drafts(state, lambda draft: draft.persona_conversation is None)
    people = scenario.personas.value
    drawn = {
        at: [draft.persona]
        if draft.persona
        else scene.draw(f"personas {at}").sample(people, min(scenario.candidates, len(people)))
        for at, draft in unfinished.items()
    }
    numbers: dict[str, PersonaNumber | None] = await ask_each(
        scene,
        "prefeval_pairs/persona-choice",
        {
            at: {"preference": draft.preference, "personas": drawn[at]}
            for at, draft in unfinished.items()
            if not draft.persona
        },
    )
    found: StageResults = {}
    requests: dict[str, dict[str, Any]] = {}
    for at, draft in unfinished.items():
        reply = PersonaNumber(number=1) if draft.persona else numbers[at]
        if reply is None or reply.number > len(drawn[at]):
            found[at] = {"dropped": "persona unparsed"}
        elif reply.number == 0:
            found[at] = {"dropped": "no persona"}
        else:
            turns = scene.draw(f"turns {at}").randint(scenario.shortest, scenario.longest)
            requests[at] = {"preference": draft.preference, "persona": drawn[at][reply.number - 1], "turns": turns}
    talks: dict[str, PersonaTalk | None] = await ask_each(scene, "prefeval_pairs/persona-talk", requests)
    for at, talk in talks.items():
        if talk is None or not scenario.shortest <= len(talk.turns) <= scenario.longest:
            found[at] = {"dropped": "persona unparsed" if talk is None else "talk length"}
        else:
            turns_of_talk = [turn.model_dump() for turn in talk.turns]
            found[at] = {"persona": requests[at]["persona"], "persona_conversation": turns_of_talk}
    return _report_stage(scene, "persona", "have a dialogue with a persona", found)


async def finish(state: PairsState, scene: Scene) -> Update:
    """Write four answers to choose from, the right one first, and a conflicting preference."""
    drafts = select_drafts(state)
    lacking = {at: draft for at, draft in drafts.items() if draft.classification_task_options is None}
    answers = await ask_each(
        scene,
        "prefeval_pairs/options",
        {at: {**_build_inputs(draft), "explanation": draft.explanation} for at, draft in lacking.items()},
    )
    single = {at: draft for at, draft in drafts.items() if not draft.conflicting_preference}
    earlier = await ask_each(
        scene, "prefeval_pairs/conflict", {at: _build_inputs(draft) for at, draft in single.items()}
    )
    found: StageResults = {at: {} for at in lacking | single}
    for at, reply in answers.items():
        found[at] |= (reply and {"classification_task_options": list(reply.options)}) or {"dropped": "options unparsed"}
    for at, reply in earlier.items():
        is_other = reply is not None and normalize_text(reply.preference) != normalize_text(single[at].preference)
        conflicting = {"conflicting_preference": reply.preference} if is_other else {"dropped": "conflict unparsed"}
        found[at] = {**conflicting, **found[at]}
    return _report_stage(scene, "options", "have options to choose from", found)


def _reveals_preference(talk: OfferedChoice, draft: Draft) -> bool:
    """Return whether the assistant's last message repeats the whole preference."""
    preference = set(content_words(draft.preference))
    return bool(preference) and preference <= set(content_words(talk.assistant_acknowledgment))


def _build_inputs(draft: Draft) -> dict[str, Any]:
    return {"preference": draft.preference, "question": draft.question}


def _report_stage(scene: Scene, stage: str, what: str, found: StageResults) -> Update:
    """Return what a stage found as the update of the state, and tell how many pairs passed it."""
    made = sum(not draft.get("dropped") for draft in found.values())
    if found:
        scene.tell(f"{scene.scenario.topic.topic}: {made} of {len(found)} pairs {what}")
    return {stage: found}

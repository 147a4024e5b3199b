"""PrefEval formats: the release's own result files, and a training set of answers that follow preferences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field

from dialoom.graphs import Episode, Exporter, FileItem, FilledAxis, FromZero, Line, RecipeError
from dialoom.graphs.training_rows import SystemOptions
from dialoom.personas.preferences import DEFAULT_POOL, Form, build_common_columns, build_row, read_chats
from dialoom.prompts import ChatMessage, PromptLibrary, Utterance

from .results import CHECKERS, UNJUDGED, UNPARSED, find_error, find_quote
from .scenario import LINES_PER_TURN, Method, PrefEvalScenario, build_preference_lines, convert_lines

ROOT = "benchmark_results"
LEFT_OUT_FILE = (ROOT, "left_out.json")
"""The file that lists the answers missing from the files of verdicts, with the reasons."""

_FORMS: Mapping[Form, tuple[str, ...]] = {
    "explicit": ("explicit",),
    "choice": ("implicit", "choice"),
    "persona": ("implicit", "persona"),
}
_METHODS: Mapping[Method, str] = {
    "zero-shot": "zero-shot",
    "reminder": "remind",
    "cot": "cot",
    "rag": "rag_{k}",
    "self-critic": "selfcritic",
}


def release_rows(
    episode: Episode, scenario: PrefEvalScenario, _: PromptLibrary, models: Mapping[str, str]
) -> Iterator[FileItem]:
    """Yield rows of the files that the release's scripts read: one of answers, and one of answers with verdicts.

    The scripts require all verdicts in every row of the second file, so an answer that lacks a verdict is only in the
    first.
    """
    folders, name = _build_location(scenario, models["assistant"])
    if scenario.task == "classification":
        yield (ROOT, *_FORMS[scenario.pair.form], "mcq_results", *folders, name), _build_choice_row(scenario, episode)
        return
    into = (ROOT, *_FORMS[scenario.pair.form], "generation_results", *folders)
    row = _build_answer_row(scenario, episode)
    yield (*into, name), row
    if (error := find_error(episode.outcome.judgements)) in (UNPARSED, UNJUDGED):
        yield LEFT_OUT_FILE, {"id": episode.id, "file": "/".join((*into[1:], f"error_{name}")), "why": error}
    else:
        yield (*into, f"error_{name}"), {**row, "evaluation_error_analysis": _build_analysis(episode)}


def _build_location(scenario: PrefEvalScenario, model: str) -> tuple[tuple[str, str], str]:
    """Return the folders of a method and a topic, and the file's name.

    The release has no files for positions other than the start, for further preferences, for the conflict setting, or
    for lengths in tokens. For such items, the name of the method's folder states the position, the number of
    preferences, the arm, or the length.
    """
    others = f"_{1 + len(scenario.extras)}preferences" if scenario.extras else ""
    task = _METHODS[scenario.method].format(k=scenario.retrieved) + (f"_{scenario.arm}" if scenario.arm else others)
    if scenario.position:
        task += f"_at{scenario.position:g}"
    if scenario.token_limit:
        task += f"_{scenario.token_limit}tokens"
    topic = scenario.pair.topic
    return (task, topic), f"{model.replace('/', '_').replace(':', '_')}_{topic}_{scenario.turns}interturn.json"


def _build_answer_row(scenario: PrefEvalScenario, episode: Episode) -> dict[str, Any]:
    details = episode.outcome.details
    row = {**build_row(scenario.pair), **_build_own_reply(scenario, details), "response_to_q": details["answer"]}
    if scenario.method == "self-critic":
        row |= {"zero_shot_response_to_q": details.get("first", ""), "self_critic": details.get("critique", "")}
    return row


def _build_choice_row(scenario: PrefEvalScenario, episode: Episode) -> dict[str, Any]:
    details = episode.outcome.details
    row = {
        **build_common_columns(scenario.pair),
        "classification_task_options": list(scenario.pair.options),
        **_build_own_reply(scenario, details),
        "shuffled_options": details["options"],
        "response_to_q": details["answer"],
        "choice": details["choice"],
        "correct_idx": details["correct"],
    }
    if scenario.method == "self-critic":
        row |= {"self_critic": details.get("critique", ""), "first_choice": details["first_choice"]}
    return row


def _build_own_reply(scenario: PrefEvalScenario, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model's own reply to an explicit preference."""
    is_explicit = scenario.pair.form == "explicit"
    return {"response_to_pref": details["replies"][scenario.pair.preference]} if is_explicit else {}


def _build_analysis(episode: Episode) -> dict[str, Any]:
    """Return the checkers' verdicts. If a checker was not asked, because nothing was quoted, its verdict is no."""
    found = {each.metric: each for each in episode.outcome.judgements}

    def word(metric: str) -> str:
        return "Yes" if metric in found and found[metric].score else "No"

    words = {
        key: {"explanation": found[metric].explanation if metric in found else "", "answer": word(metric)}
        for key, metric in {"violate": "violates", "hallucinate": "hallucinates", "helpful": "helpful"}.items()
    }
    return {"acknow": {"answer": word("acknowledges"), "extract_pref": find_quote(episode.outcome.judgements)}, **words}


def item_rows(
    episode: Episode, scenario: PrefEvalScenario, _: PromptLibrary, models: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield an item as a row for the user's own analyses: its setting and texts, each verdict, and the error type."""
    details, judgements = episode.outcome.details, episode.outcome.judgements
    found = {each.metric: each.score for each in judgements}
    error = find_error(judgements)
    yield {
        "model": models["assistant"],
        **scenario.facets(),
        **build_common_columns(scenario.pair),
        "response_to_pref": details.get("replies", {}).get(scenario.pair.preference),
        "first": details.get("first"),
        "critique": details.get("critique"),
        "answer": details["answer"],
        "hit": details.get("hit"),
        "choice": details.get("choice"),
        "correct_choice": details.get("correct"),
        **{checker: found.get(checker) for checker in CHECKERS},
        "quote": find_quote(judgements),
        "is_right": None if error in (UNPARSED, UNJUDGED) else error is None,
        "error": error,
    }


class TrainingOptions(SystemOptions):
    """The options of the training set of answers."""

    between: FilledAxis[FromZero] = Field(
        (0, 5, 10),
        description="Number of unrelated turns between preference and question; one row for each number. Repeatable.",
    )
    pool: Path | None = Field(None, description="Pool of chats for the unrelated turns; by default the shipped one.")
    last_chats: int = Field(
        4,
        ge=1,
        description="Number of chats at the pool's end from which the turns are taken; tests should not use "
        "these chats.",
    )
    right_only: bool = Field(False, description="Only answers that were judged right.")

    def turns(self) -> Mapping[int, list[Line]]:
        """Return the unrelated turns, by their requested number.

        Raises:
            RecipeError: If the chats have fewer turns.
        """
        path = self.pool or DEFAULT_POOL
        lines = _read_last_lines(path, self.last_chats)
        most = len(lines) // LINES_PER_TURN
        if max(self.between) > most:
            raise RecipeError(
                f"between {max(self.between)}: the last {self.last_chats} chats of {path} have {most} turns; give a "
                "smaller number of turns, or a larger last_chats",
                setting="between",
            )
        return {turns: list(lines[: turns * LINES_PER_TURN]) for turns in self.between}


@lru_cache(maxsize=2)
def _read_last_lines(path: Path, chats: int) -> tuple[Line, ...]:
    return tuple(Line(role=line.speaker, content=line.content) for chat in read_chats(path)[-chats:] for line in chat)


def training_rows(
    episode: Episode, scenario: PrefEvalScenario, prompts: PromptLibrary, _: Any, *, options: TrainingOptions
) -> Iterator[dict[str, Any]]:
    """Yield rows in TRL's prompt-completion form. The answers were given with a reminder, which the rows leave out.

    The rows also leave out the reminder's word limit. In the run, the question directly follows an explicit preference.
    In the rows, unrelated turns can come between the preference and the question (section 3.7 of the paper).
    """
    between = options.turns()
    pair, details = scenario.pair, episode.outcome.details
    setting = (scenario.task, scenario.method, pair.form, scenario.turns, len(scenario.extras))
    if episode.state != "done" or setting != ("generation", "reminder", "explicit", 0, 0) or not details["answer"]:
        return
    if options.right_only and find_error(episode.outcome.judgements):
        return
    for turns, lines in between.items():
        messages = [*build_preference_lines(pair, details["replies"]), *lines, Line(role="user", content=pair.question)]
        history: list[Utterance] = convert_lines(messages)
        prompt = options.apply(prompts["prefeval/reply"].render({"history": history}))
        completion: list[ChatMessage] = [{"role": "assistant", "content": details["answer"]}]
        yield {"prompt": prompt, "completion": completion, "topic": pair.topic, "unrelated_turns": turns}


EXPORTERS: Mapping[str, Exporter] = {
    "prefeval": Exporter(
        "the PrefEval release's own files of results (a folder)", "lists", release_rows, only_done=True
    ),
    "rows": Exporter(
        "a row per item: its setting and texts, the checkers' verdicts and the error",
        "lines",
        item_rows,
        only_done=True,
    ),
    "sft": Exporter(
        "TRL prompt-completion: answers given with a reminder (runs with turns 0), to be learnt without one",
        "lines",
        training_rows,
        TrainingOptions,
        lacks="no answer selected by these options with form explicit, method reminder and turns 0",
    ),
}

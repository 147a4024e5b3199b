"""PersonaLens aggregates (the paper's tables 3, 4, 12 and 13, figures 4 and 5) and export formats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dialoom.graphs.capabilities import Exporter
from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting import Counted, Facet, Pivot, Table, count, mean, ratio, score, score_by_turn, tabulate
from dialoom.prompts import PromptLibrary

from .scenario import SETTINGS, PersonaLensScenario

_KINDS = {"single": "single-domain", "multi": "multi-domain"}
_SETTING = Facet("setting", order=SETTINGS)
_KIND = Facet("kind", "tasks", tuple(_KINDS), _KINDS)
_DOMAIN = Facet("domains", "domain")
_SCORES = (
    score("task_completion", title="TCR %"),
    score("personalization", title="P", scale=(1, 4)),
    score("naturalness", title="Nat. assistant", scale=(1, 5)),
    score("naturalness", "user", title="Nat. user", scale=(1, 5)),
    score("coherence", title="Coh. assistant", scale=(1, 5)),
    score("coherence", "user", title="Coh. user", scale=(1, 5)),
)
_TURNS = score_by_turn("personalization", title="P", scale=(1, 4))
_PIVOTS = (
    Pivot(
        "scores",
        "Scores by setting and kind of task",
        (_SETTING, _KIND),
        (count("dialogues"), *_SCORES),
        ("TCR: share of dialogues whose goal was reached. P: personalization, 1 to 4. Nat., Coh.: 1 to 5.",),
        charted=[column.title for column in _SCORES],
    ),
    Pivot(
        "domains",
        "Scores by setting and domain",
        (_SETTING, _DOMAIN),
        _SCORES,
        ("A multi-domain dialogue counts in each of its domains.",),
        charted=("TCR %", "P"),
    ),
    Pivot("turns", "Personalization after each assistant reply", (_SETTING, _KIND), (_TURNS,), charted=("P",)),
    Pivot("turns-by-domain", "Personalization after each assistant reply, by domain", (_SETTING, _DOMAIN), (_TURNS,)),
)
_DONE = Counted(state="done")


def _turns(episode: Episode) -> int | None:
    replies = sum(line.role == "assistant" for line in episode.outcome.messages)
    return replies if episode.state == "done" else None


def _messages(episode: Episode) -> int | None:
    return len(episode.outcome.messages) if episode.state == "done" else None


def _tokens_per_turn(episode: Episode) -> tuple[int | None, int] | None:
    tokens = [episode.output_tokens.get(role) for role in ("user", "assistant")]
    known = None if None in tokens else sum(filter(None, tokens))
    return None if (turns := _turns(episode)) is None else (known, turns)


_DIALOGUES = Pivot(
    "dialogues",
    "The dialogues",
    (_SETTING, _KIND),
    (
        count("dialogues"),
        mean("turns", _turns, _DONE, interval=False),
        mean("messages", _messages, _DONE, interval=False),
        ratio("tokens per turn", _tokens_per_turn, _DONE),
        *(count(ending, ended_by=ending) for ending in ("user_terminated", "turn_limit", "error")),
    ),
    (
        "A turn is an assistant reply with the user's line before it; turns, messages and tokens are means over "
        "finished dialogues. Tokens are those that user and assistant wrote, as their providers counted them.",
    ),
)


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """Return all tables of the report, in one pass over the episodes."""
    table = Table("judgements", "Judgement status", ["setting", "metric", "ok", "unparsed", "error"])
    table.facets = {"metric": None}
    counts: dict[tuple[int, str], Counter[str]] = {}
    of_status: dict[str, dict[str, Counted]] = {}

    def counted() -> Iterator[Episode]:
        for episode in episodes:
            setting = SETTINGS.index(str(episode.facets["setting"]))
            for each in episode.outcome.judgements:
                named = f"{each.metric}{'' if each.turn is None else ' by turn'} ({each.target})"
                counts.setdefault((setting, named), Counter())[each.status] += 1
                counted = Counted(each.metric, each.target, each.status, by_turn=each.turn is not None)
                of_status.setdefault(each.status, {})[named] = counted
            yield episode

    *pivoted, dialogues = tabulate([*_PIVOTS, _DIALOGUES], counted(), "user", "people", keep_empty=True)
    table.counted.update(of_status)
    if any(count["tied"] for count in counts.values()):
        table.columns = [*table.columns, "tied"]
    for setting, metric in sorted(counts, key=lambda key: key[0]):
        statuses = [counts[setting, metric][status] for status in table.columns[2:]]
        table.rows.append([SETTINGS[setting], metric, *statuses])
    return [each for each in (*pivoted, table, dialogues) if each.rows]


_PARTS = {"user": "_user", "assistant": "_asst"}


def release_files(
    episode: Episode, scenario: PersonaLensScenario, _: PromptLibrary, models: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield `output/dialogue/<user>/<assistant>/<task>_dialogue.json`, as the release's own tools read it.

    The assistant's folder also names the setting, because a task may have been played in several settings.
    """
    if episode.state != "done":
        return
    content = {
        "user_id": _number(scenario.user),
        "task_id": scenario.task,
        "task_description": scenario.intent,  # the release's name for the intent, which its judge is shown
        "user_model": models["user"],
        "assistant_model": models["assistant"],
        "dialogue": [{"role": line.role, "content": line.content} for line in episode.outcome.messages],
    }
    folders = ("output", "dialogue", scenario.user, _assistant(scenario, models))
    yield (*folders, f"{scenario.task}_dialogue.json"), content


def evaluation_files(
    episode: Episode, scenario: PersonaLensScenario, _: PromptLibrary, models: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield `output/evaluation/<user>/<assistant>/<metric>/<judge>/<task>.txt`, as the release's own scripts read it.

    The score has the wording by which those scripts find it (figures 16 to 20 of the paper). They treat a file without
    it as a failed task, so a missing score has no file. Judgements of single turns have no place in the layout.
    """
    for judgement in episode.outcome.judgements:
        if judgement.score is None or judgement.turn is not None:
            continue
        folders = ("output", "evaluation", scenario.user, _assistant(scenario, models), judgement.metric)
        part = _PARTS[judgement.target] if judgement.metric in ("naturalness", "coherence") else ""
        if isinstance(judgement.score, bool):
            text = f"VERDICT: {judgement.score}\nEXPLANATION: {judgement.explanation}\n"
        else:
            text = f"{judgement.metric.capitalize()} Score: {judgement.score}\nJustification: {judgement.explanation}\n"
        yield (*folders, _name(models["judge"]), f"{scenario.task}{part}.txt"), text


def _assistant(scenario: PersonaLensScenario, models: Mapping[str, str]) -> str:
    return _name(f"{models['assistant']}-{scenario.setting}")


def _name(model: str) -> str:
    return model.replace("/", "_").replace(":", "_")


def _number(user: str) -> int | str:
    """Return the number of `user7`, which is the release's id; ids of another form are unchanged."""
    found = re.fullmatch(r"user(\d+)", user, re.ASCII)
    return int(found[1]) if found else user


EXPORTERS: Mapping[str, Exporter] = {
    "personalens": Exporter("the PersonaLens release's own dialogue files (a folder)", "files", release_files),
    "evaluations": Exporter(
        "the judgements in the layout of the PersonaLens release (a folder)", "files", evaluation_files
    ),
}

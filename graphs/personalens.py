"""PersonaLens: task-oriented dialogues of simulated users, judged for personalization (see `docs/personalens.md`).

The dialogues follow section 2.3 of the paper. A turn is one assistant reply followed by one user reply. After the
user's TERMINATE, the assistant gives one last reply. The judges are those of section 3 and figures 16 to 20; scores by
turn are those of figure 5.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Literal, get_args

from langchain_core.messages import BaseMessage
from pydantic import Field

from dialoom.graphs.capabilities import Exporter, FileItem, WithExports
from dialoom.graphs.dialogue import DialogueRecipe, Turns
from dialoom.graphs.gate.talk import Facts
from dialoom.graphs.judge import Judge
from dialoom.graphs.outcome import DialogueFault, Episode, Outcome
from dialoom.graphs.recipe import AbsolutePath, FilledAxis, RecipeError, RecipeOptions, chosen
from dialoom.graphs.tables import (
    Facet,
    Pivot,
    ScenarioFilter,
    Table,
    count,
    mean,
    ratio,
    score,
    score_by_turn,
    tabulate,
)
from dialoom.graphs.traits import MANNER, STRESS, TRAIT_FACETS, TraitedScenario, TraitSpec, load_traits
from dialoom.inputs import Frozen
from dialoom.personas import PersonaLensRelease, Profile, Task, load_samples
from dialoom.prompts import PromptLibrary

Setting = Literal["vanilla", "base", "D", "I", "S", "DI", "DS", "IS", "all"]
"""The settings: which information the assistant gets (table 4 of the paper).

`vanilla` is a minimal prompt, `base` a personalizing prompt. The others add to `base` any of D (demographics), I
(summaries of past interactions) and S (situation); `all` is D + I + S.
"""

SETTINGS: tuple[str, ...] = get_args(Setting)
TURN_LIMITS: Mapping[str, int] = {"single": 20, "multi": 30}
"""Maximum number of turns of a dialogue, by kind of task (footnote 2 of the paper)."""


class DomainContext(Frozen):
    """The person's data for one domain of the task."""

    name: str
    affinities: Mapping[str, str]
    summary: str


class PersonaLensScenario(TraitedScenario):
    """The scenario of a dialogue. Affinities are shown to the user and the judge, never to the assistant."""

    user: str
    task: str
    setting: Setting
    demographics: Mapping[str, str]
    domains: tuple[DomainContext, ...]
    situation: Mapping[str, str]
    description: str
    intent: str
    goal: str
    relevant_affinities: tuple[str, ...]
    turn_limit: int

    @classmethod
    def of(
        cls,
        profile: Profile,
        task: Task,
        setting: Setting,
        turn_limit: int | None = None,
        traits: Mapping[str, str] | None = None,
    ) -> PersonaLensScenario:
        """Return the scenario of a person's task in a setting, by default with the paper's turn limit and no traits."""
        return cls(
            user=profile.user_id,
            task=task.id,
            setting=setting,
            demographics=profile.demographics.for_prompt(),
            domains=tuple(
                DomainContext(name=name, affinities=domain.preferences, summary=domain.summary)
                for name, domain in ((name, profile.domains[name]) for name in task.domains)
            ),
            situation=task.situation.for_prompt(),
            description=task.description,
            intent=task.intent,
            goal=task.goal,
            relevant_affinities=task.relevant_affinities,
            turn_limit=TURN_LIMITS[task.kind] if turn_limit is None else turn_limit,
            traits=traits or {},
        )

    @property
    def label(self) -> str:
        """The person's id, the task's id and the setting."""
        return f"{self.user} {self.task} {self.setting}"

    @property
    def kind(self) -> str:
        """`single` or `multi`, by the number of domains."""
        return "single" if len(self.domains) == 1 else "multi"

    def facets(self) -> dict[str, Any]:
        """Return the person, the task, the task's domains and kind, and the setting."""
        return {
            "user": self.user,
            "task": self.task,
            "domains": [domain.name for domain in self.domains],
            "setting": self.setting,
            "kind": self.kind,
            **self.trait_facets(),
        }

    def described(self) -> dict[str, Any]:
        """Return the facets, the task's texts and the situation."""
        return {
            **self.facets(),
            "description": self.description,
            "intent": self.intent,
            "goal": self.goal,
            "situation": dict(self.situation),
            "turn_limit": self.turn_limit,
        }

    def portrait(self) -> dict[str, Any]:
        """Return the person's demographics."""
        return {"person": dict(self.demographics)}

    def for_user(self) -> dict[str, str]:
        """Return the demographics for the simulated user's prompt.

        They include the user's traits, which no other role sees.
        """
        return {**self.demographics, **({"How you write and behave": self.traits[MANNER]} if self.traits else {})}

    def preferences(self) -> dict[str, str]:
        """Return the affinities of the task's domains."""
        return {f"{domain.name}: {name}": value for domain in self.domains for name, value in domain.affinities.items()}

    @property
    def most_replies(self) -> int:
        """Maximum number of messages of the assistant.

        If the turn limit is reached, the dialogue ends with a message of the user, so the assistant writes one message
        less.
        """
        return self.turn_limit + 1

    @property
    def assistant_prompt(self) -> str:
        """The id of the assistant's prompt."""
        return "personalens/assistant-vanilla" if self.setting == "vanilla" else "personalens/assistant"

    def for_assistant(self) -> dict[str, Any]:
        """Return the inputs of the assistant's prompt. Information that the setting does not allow is empty."""
        shown = "DIS" if self.setting == "all" else self.setting
        summaries = [{"domain": domain.name, "text": domain.summary} for domain in self.domains]
        return {
            "demographics": self.demographics if "D" in shown else None,
            "summaries": summaries if "I" in shown else [],
            "situation": self.situation if "S" in shown else None,
        }


_KINDS = {"single": "single-domain", "multi": "multi-domain"}
_SETTING = Facet("setting", order=SETTINGS)
_KIND = Facet("kind", "tasks", tuple(_KINDS), _KINDS)
_DOMAIN = Facet("domains", "domain")
_SCORE_COLUMNS = (
    score("task_completion", title="TCR %"),
    score("personalization", title="P", scale=(1, 4)),
    score("naturalness", title="Nat. assistant", scale=(1, 5)),
    score("naturalness", "user", title="Nat. user", scale=(1, 5)),
    score("coherence", title="Coh. assistant", scale=(1, 5)),
    score("coherence", "user", title="Coh. user", scale=(1, 5)),
)
_SCORE_BY_TURN = score_by_turn("personalization", title="P", scale=(1, 4))
_MULTI_DOMAIN_NOTE = "A multi-domain dialogue counts in each of its domains."
_PIVOTS = (
    Pivot(
        "scores",
        "Scores by setting and kind of task",
        (_SETTING, _KIND),
        (count("dialogues"), *_SCORE_COLUMNS),
        (
            "TCR (task completion rate): share of dialogues whose goal was reached. P: personalization, 1 to 4. Nat. "
            "(naturalness), Coh. (coherence): 1 to 5.",
        ),
        charted=[column.title for column in _SCORE_COLUMNS],
    ),
    Pivot(
        "domains",
        "Scores by setting and domain",
        (_SETTING, _DOMAIN),
        _SCORE_COLUMNS,
        (_MULTI_DOMAIN_NOTE,),
        charted=("TCR %", "P"),
    ),
    Pivot("turns", "Personalization after each assistant reply", (_SETTING, _KIND), (_SCORE_BY_TURN,), charted=("P",)),
    Pivot(
        "turns-by-domain",
        "Personalization after each assistant reply, by domain",
        (_SETTING, _DOMAIN),
        (_SCORE_BY_TURN,),
        (_MULTI_DOMAIN_NOTE,),
    ),
)


_FINISHED = ScenarioFilter(state="done")


def _count_turns(episode: Episode) -> int | None:
    return sum(line.role == "assistant" for line in episode.outcome.messages) if episode.state == "done" else None


def _count_tokens_and_turns(episode: Episode) -> tuple[int | None, int] | None:
    tokens = [episode.output_tokens.get(role) for role in ("user", "assistant")]
    known = None if None in tokens else sum(filter(None, tokens))
    return None if (turns := _count_turns(episode)) is None else (known, turns)


_DIALOGUES = Pivot(
    "dialogues",
    "Dialogues",
    (_SETTING, _KIND),
    (
        count("dialogues"),
        mean("turns", _count_turns, _FINISHED, interval=False),
        mean(
            "messages",
            lambda episode: len(episode.outcome.messages) if episode.state == "done" else None,
            _FINISHED,
            interval=False,
        ),
        ratio("tokens per turn", _count_tokens_and_turns, _FINISHED),
        *(count(ending, ended_by=ending) for ending in ("user_terminated", "turn_limit", "error")),
    ),
    (
        "A turn is an assistant reply with the user's line before it; turns and messages are means over finished "
        "dialogues. Tokens per turn: those that user and assistant wrote in all of these, as their providers "
        "counted them, divided by all of their turns.",
    ),
)


_TARGET_SUFFIXES = {"user": "_user", "assistant": "_asst"}


def release_files(
    episode: Episode, scenario: PersonaLensScenario, _: PromptLibrary, models: Mapping[str, str]
) -> Iterator[FileItem]:
    """Yield `output/dialogue/<user>/<assistant>/<task>_dialogue.json`, the layout that the release's tools read.

    The assistant's folder also states the setting, because a task may have been played in several settings.
    """
    number = re.fullmatch(r"user(\d+)", scenario.user, re.ASCII)
    content = {
        "user_id": int(number[1]) if number else scenario.user,  # the release uses numbers
        "task_id": scenario.task,
        "task_description": scenario.intent,  # the release's name for the intent, which its judge is shown
        "user_model": models["user"],
        "assistant_model": models["assistant"],
        "dialogue": [{"role": line.role, "content": line.content} for line in episode.outcome.messages],
    }
    assistant = _to_file_name(f"{models['assistant']}-{scenario.setting}")
    yield ("output", "dialogue", scenario.user, assistant, f"{scenario.task}_dialogue.json"), content


def evaluation_files(
    episode: Episode, scenario: PersonaLensScenario, _: PromptLibrary, models: Mapping[str, str]
) -> Iterator[FileItem]:
    """Yield `output/evaluation/<user>/<assistant>/<metric>/<judge>/<task>.txt`, as the release's own scripts read it.

    The score is worded in the way in which the scripts search for it (figures 16 to 20 of the paper). The scripts treat
    a file without a score as a failed task, so no file is written if the score is missing. The layout cannot hold
    judgements of single turns.
    """
    for judgement in episode.outcome.judgements:
        if judgement.score is None or judgement.turn is not None:
            continue
        assistant = _to_file_name(f"{models['assistant']}-{scenario.setting}")
        part = _TARGET_SUFFIXES[judgement.target] if judgement.metric in ("naturalness", "coherence") else ""
        if isinstance(judgement.score, bool):
            text = f"VERDICT: {judgement.score}\nEXPLANATION: {judgement.explanation}\n"
        else:
            text = f"{judgement.metric.capitalize()} Score: {judgement.score}\nJustification: {judgement.explanation}\n"
        folders = ("output", "evaluation", scenario.user, assistant, judgement.metric, _to_file_name(models["judge"]))
        yield (*folders, f"{scenario.task}{part}.txt"), text


def _to_file_name(model: str) -> str:
    return model.replace("/", "_").replace(":", "_")


EXPORTERS: Mapping[str, Exporter] = {
    "personalens": Exporter(
        "the PersonaLens release's own dialogue files (a folder)", "files", release_files, only_done=True
    ),
    "evaluations": Exporter(
        "the judgements in the layout of the PersonaLens release (a folder)", "files", evaluation_files
    ),
}


_TASK_ID = re.compile(r"(SD-.+|MD)-task-\d+")


class PersonaLensOptions(RecipeOptions):
    """The options of the recipe `personalens`."""

    profiles: AbsolutePath | None = Field(
        None, description="Folder of a PersonaLens release; by default the shipped samples."
    )
    users: str = Field(
        "all", description="People: all, ids separated by commas, or a number of people drawn with the seed."
    )
    tasks: str = Field("all", description="Tasks: all, single, multi, or ids separated by commas.")
    settings: FilledAxis[Setting] = Field(
        ("base",),
        alias="setting",
        description=f"Information that the assistant gets: {', '.join(SETTINGS)} (D: demographics, I: past "
        "interactions, S: situation, all: D+I+S). Repeatable.",
    )
    judge: bool = Field(True, description="Judge each dialogue once it has ended.")
    turn_scores: bool = Field(False, description="Judge personalization after each assistant reply as well.")
    turn_limit: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="Maximum number of turns; by default 20, or 30 for tasks over several domains.",
    )
    limit: int | None = Field(None, ge=1, description="Maximum number of dialogues.")
    traits_from: TraitSpec | None = Field(
        None,
        description="Give users the manner (length, directness, patience, corrections) of the users in this file of "
        f"conversations, or a stress kind: {' or '.join(STRESS)}. Scores are also reported by trait.",
    )

    def source(self) -> PersonaLensRelease:
        """Return the release from which people are read."""
        return load_samples() if self.profiles is None else PersonaLensRelease(self.profiles)

    def chosen_users(self, release: PersonaLensRelease, draw: random.Random) -> list[str]:
        """Return the ids of the selected people, in the release's order.

        Raises:
            RecipeError: If an id is unknown, or a number is not from 1 to the number of people.
        """
        known, named = release.user_ids(), self.users.strip()
        if named.lstrip("-").isdecimal() and named not in known:
            count = int(named)
            if not 1 <= count <= len(known):
                raise RecipeError(
                    f"users must be from 1 to {len(known)} (the number of people), got {count}", setting="users"
                )
            ids = draw.sample(known, count)
        else:
            ids = chosen("users", self.users, known)
        return [user for user in known if user in set(ids)]

    def chosen_tasks(self) -> frozenset[str] | None:
        """Return the ids of the selected tasks, or `None` if a whole kind is selected.

        Raises:
            RecipeError: If a part is neither a kind of task nor a task id.
        """
        parts = [part.strip() for part in self.tasks.split(",") if part.strip()]
        if parts in (["all"], ["single"], ["multi"]):
            return None
        if wrong := [id_ for id_ in parts or [""] if not _TASK_ID.fullmatch(id_)]:
            raise RecipeError(
                f"tasks: {wrong[0]!r} is not a task id such as SD-Alarm-task-1 or MD-task-3, nor all, single or multi",
                setting="tasks",
            )
        return frozenset(parts)

    def wants(self, task: Task, ids: frozenset[str] | None) -> bool:
        """Return whether a task is selected."""
        return task.id in ids if ids is not None else self.tasks in ("all", task.kind)


_JUDGE_PROMPT = "personalens/judge-"
_JUDGE_INPUTS = ("demographics", "domains", "situation", "description")
_PERSONALIZATION = Judge(
    "personalization",
    prompt=f"{_JUDGE_PROMPT}personalization",
    scale=(1, 4),
    sees=_JUDGE_INPUTS,
    node="judge_personalization",
)
_PERSONALIZATION_BY_TURN = replace(_PERSONALIZATION, per_turn=True, node="")


def _check_turn_limit(scenario: PersonaLensScenario, messages: list[BaseMessage]) -> str:
    """Return `turn_limit` if the user has written as many messages as the limit allows; otherwise an empty text."""
    replies = sum(message.name == "user" for message in messages) - 1
    return "turn_limit" if messages[-1].name == "user" and replies >= scenario.turn_limit else ""


class PersonaLens(DialogueRecipe, WithExports):
    """Task-oriented dialogues of simulated users, judged for personalization (PersonaLens)."""

    name = "personalens"
    languages = ("en",)
    roles = {"user": 0.5, "assistant": 0.0, "judge": 0.0}
    reply_limits = {"user": 800, "assistant": 800, "judge": 4_000}  # the release's limits
    prompts = ("personalens/user", "personalens/assistant", "personalens/assistant-vanilla")
    turns = Turns(
        max_turns="most_replies",
        end_marker="TERMINATE",
        end_reason="user_terminated",
        last_word="assistant",
        until=_check_turn_limit,
        limit_reason="turn_limit",
    )
    judges = (
        Judge(
            "task_completion", prompt=f"{_JUDGE_PROMPT}task-completion", sees=("goal",), node="judge_task_completion"
        ),
        _PERSONALIZATION,
        *(
            Judge(metric, prompt=f"{_JUDGE_PROMPT}{metric}", scale=(1, 5), target=target, sees=())
            for metric in ("naturalness", "coherence")
            for target in ("user", "assistant")
        ),
    )
    options_type = PersonaLensOptions
    formats = EXPORTERS
    scenario_type = PersonaLensScenario
    facets = (Facet("user", splits=True),)
    evaluated = "assistant"

    def scenarios(
        self, options: PersonaLensOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[PersonaLensScenario]:
        """Yield dialogues by person, then task, then setting. People and tasks are in the release's order."""
        release = options.source()
        users = options.chosen_users(release, draw)
        ids = options.chosen_tasks()
        traits = load_traits(options.traits_from, draw, note) if options.traits_from else None

        def planned() -> Iterator[PersonaLensScenario]:
            met: set[str] = set()
            for user in users:
                profile = release.profile(user)
                own = traits(user, {}) if traits else {}
                for task in release.tasks(profile, user):
                    if options.wants(task, ids):
                        met.add(task.id)
                        for setting in options.settings:
                            yield PersonaLensScenario.of(profile, task, setting, options.turn_limit, own)
            if unmet := sorted((ids or frozenset()) - met):
                raise RecipeError(f"tasks: none of the selected people has the task {unmet[0]!r}", setting="tasks")

        yield from islice(planned(), options.limit)
        if summary := release.repairs.summary():
            note(f"source: {summary}")

    def judges_used(self, options: PersonaLensOptions) -> Sequence[Judge]:
        """Return the judges of whole dialogues and, with the option `turn_scores`, the judge of single turns."""
        return (*self.judges, *((_PERSONALIZATION_BY_TURN,) if options.turn_scores else ())) if options.judge else ()

    def prompt_of(self, scenario: PersonaLensScenario, role: str) -> str:
        """Return the id of a role's prompt."""
        return scenario.assistant_prompt if role == "assistant" else super().prompt_of(scenario, role)

    def inputs(self, scenario: PersonaLensScenario, role: str) -> Mapping[str, Any]:
        """Return the inputs of a role's prompt. The assistant gets only the inputs that the setting allows."""
        if role == "assistant":
            return scenario.for_assistant()
        return {**super().inputs(scenario, role), "demographics": scenario.for_user()}

    def outcome(self, scenario: PersonaLensScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the outcome. Its counts include the end markers that were removed from the opening."""
        outcome = super().outcome(scenario, state, failed)
        stripped = {"stripped_markers": int(state.get("marked_opening", False))}
        return outcome.model_copy(update={"counts": {**outcome.counts, **stripped}})

    def facts(self, scenario: PersonaLensScenario) -> Facts:
        """Return the gate's facts: the task with its domains, and the affinities, which the opening must not reveal."""
        kept_back = tuple(value for domain in scenario.domains for value in domain.affinities.values())
        task = " ".join([scenario.intent, scenario.description, *(domain.name for domain in scenario.domains)])
        return replace(super().facts(scenario), task=task, kept_back=kept_back)

    def user_instructions(self, scenario: PersonaLensScenario) -> dict[str, str]:
        """Return the texts that instruct the user: the person, preferences, past interactions, situation and task."""
        liked = [
            f"{name} ({domain.name}): {value}"
            for domain in scenario.domains
            for name, value in domain.affinities.items()
        ]
        return {
            "person": _format_values(scenario.for_user()),
            "likes": "\n".join(liked),
            "past": "\n".join(domain.summary for domain in scenario.domains),
            "situation": _format_values(scenario.situation),
            "task": scenario.intent,
        }

    def find_faults(self, scenario: PersonaLensScenario, outcome: Outcome) -> list[DialogueFault]:
        """Return a fault for an end marker that was removed from the opening."""
        marker, stripped = self.turns.end_marker, outcome.counts.get("stripped_markers")
        return [DialogueFault(role="user", kind="end_marker", message=0, excerpt=marker)] if stripped else []

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return tables with the data of the paper's tables 3, 4, 12 and 13 and figures 4 and 5."""
        table = Table("judgements", "Judgement status", ["setting", "metric", "ok", "unparsed", "error"])
        table.facets = {"metric": None}
        counts: dict[tuple[int, str], Counter[str]] = {}
        of_status: dict[str, dict[str, ScenarioFilter]] = {}

        def counted() -> Iterator[Episode]:
            for episode in episodes:
                setting = SETTINGS.index(str(episode.facets["setting"]))
                for each in episode.outcome.judgements:
                    named = f"{each.metric}{'' if each.turn is None else ' by turn'} ({each.target})"
                    counts.setdefault((setting, named), Counter())[each.status] += 1
                    counted = ScenarioFilter(each.metric, each.target, each.status, by_turn=each.turn is not None)
                    of_status.setdefault(each.status, {})[named] = counted
                yield episode

        read = counted()
        first = [*islice(read, 1)]
        by_trait = [
            Pivot(
                name.replace("_", "-"),
                f"Scores by setting and {name.replace('_', ' ')} of the user",
                (_SETTING, Facet(name)),
                (count("dialogues"), *_SCORE_COLUMNS),
            )
            for name in TRAIT_FACETS
            if any(name in episode.facets for episode in first)
        ]
        pivots = [*_PIVOTS, *by_trait, _DIALOGUES]
        *pivoted, dialogues = tabulate(pivots, chain(first, read), "user", "people", keep_empty=True)
        table.counted.update(of_status)
        if any(count["tied"] for count in counts.values()):
            table.columns = [*table.columns, "tied"]
        for setting, metric in sorted(counts, key=lambda key: key[0]):
            statuses = [counts[setting, metric][status] for status in table.columns[2:]]
            table.rows.append([SETTINGS[setting], metric, *statuses])
        return [each for each in (*pivoted, table, dialogues) if each.rows]


def _format_values(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in values.items())


RECIPE = PersonaLens()

"""The nodes that write a person's data: interests, preferences, summaries of interactions, tasks, and situations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from dialoom.graphs import Scene, Update, ask_each, joined
from dialoom.graphs.embedding import embed_texts
from dialoom.graphs.generation import (
    GenerationState,
    Note,
    Problem,
    Problems,
    due,
    earlier,
    normalize_text,
    problem,
    reviewed,
    rule,
    settled,
    written,
)
from dialoom.personas.profile import DomainSchema
from dialoom.personas.similarity import encode_vector

from .scenario import Contradictions, ForeignPassages, PersonScenario, WrittenTask

MULTI_DOMAIN = "several domains"
"""The key of tasks over several domains."""

MIN_TASK_DOMAINS, MAX_TASK_DOMAINS = 2, 5
"""The minimum and maximum number of domains of a task over several domains."""

_JUDGE_UNPARSED = "the judge's reply could not be parsed"


class PersonState(GenerationState, total=False):
    """The state that is checkpointed.

    Attributes:
        interests: The person's domains.
        preferences: The preferences by domain and name.
        summaries: The summaries by domain.
        tasks: The drafts of tasks by domain; tasks over several domains have the key `MULTI_DOMAIN`. All people share
            the tasks.
        situations: The situations by task id.
        vector: The packed embedding of the person's preferences; empty if embeddings are cheap to compute.
        task_notes: The notes about the tasks, which all people share.
    """

    interests: list[str]
    preferences: dict[str, dict[str, Any]]
    summaries: dict[str, str]
    tasks: dict[str, list[dict[str, Any]]]
    situations: dict[str, dict[str, str]]
    vector: str
    task_notes: Annotated[list[Note], joined]


def format_preferences(values: Mapping[str, Any]) -> dict[str, str]:
    """Return preferences in the form that prompts use. If a preference has several values, semicolons separate them."""
    return {name: value if isinstance(value, str) else "; ".join(value) for name, value in values.items()}


def join_preferences(values: Mapping[str, Any]) -> str:
    """Return preferences in the form that prompts use, one per line."""
    return "\n".join(f"{name}: {text}" for name, text in format_preferences(values).items())


async def choose(state: PersonState, scene: Scene[PersonScenario]) -> Update:
    """Choose the person's domains; all other domains are masked."""
    scenario = scene.scenario
    names = {domain.domain.casefold(): domain.domain for domain in scenario.domains.value}
    domains = [{"name": each.domain, "description": each.description} for each in scenario.domains.value]
    inputs = {"demographics": scenario.demographics.for_prompt(), "domains": domains, **earlier(state, "interests")}
    replies, problems = await written(scene, "personalens_people/interests", {"interests": inputs})
    meant = [name for reply in replies.values() for name in reply.domains]
    if unknown := [name for name in meant if name.casefold() not in names]:
        problems["interests"] = problem("interests", f"there is no domain {unknown[0]!r}", "; ".join(meant))
    folded = {name.casefold() for name in meant}
    chosen = [] if unknown else [name for key, name in names.items() if key in folded]
    return {"interests": chosen, **settled(state, "interests", ["interests"], problems, scenario.repairs)}


async def prefer(state: PersonState, scene: Scene[PersonScenario]) -> Update:
    """Write the preferences of each domain."""
    domains = {name: scene.scenario.domain(name) for name in due(state, state["interests"])}
    inputs = {
        name: _build_preference_inputs(scene.scenario, domain) | earlier(state, name)
        for name, domain in domains.items()
    }
    replies, problems = await written(scene, "personalens_people/preferences", inputs)
    made = dict(state["preferences"])
    for name, reply in replies.items():
        given = [(each.name, each.values) for each in reply.preferences]
        values, why = domains[name].spelt(given, scene.scenario.open_values)
        if why:
            problems[name] = problem("form", why, join_preferences(dict(given)))
        else:
            made[name] = values
    return {"preferences": {name: made[name] for name in state["interests"] if name in made}, "problems": problems}


async def check(state: PersonState, scene: Scene[PersonScenario]) -> Update:
    """Have a judge find preferences that contradict the demographics or other preferences."""
    problems, preferences = dict(state["problems"]), dict(state["preferences"])
    new = due(state, state["interests"])
    if preferences:
        domains = [{"name": name, "preferences": format_preferences(values)} for name, values in preferences.items()]
        inputs = {"demographics": scene.scenario.demographics.for_prompt(), "domains": domains}
        found: Contradictions | None = (await ask_each(scene, "personalens_people/consistency", {"": inputs}))[""]
        named = None if found is None else _group_by_domain(found, preferences)
        if named is None:
            open_ = [name for name in new if name in preferences]
            problems |= {name: problem("consistency", _JUDGE_UNPARSED, result="unparsed") for name in open_}
        for name, why in (named or {}).items():
            problems[name] = problem("consistency", why, join_preferences(preferences.pop(name)))
    return {"preferences": preferences, **settled(state, "preferences", new, problems, scene.scenario.repairs)}


async def summarise(state: PersonState, scene: Scene[PersonScenario]) -> Update:
    """Write a summary for each domain."""
    inputs = {
        name: {
            "demographics": scene.scenario.demographics.for_prompt(),
            "domain": name,
            "description": scene.scenario.domain(name).description,
            "preferences": format_preferences(state["preferences"][name]),
            **earlier(state, name),
        }
        for name in due(state, state["preferences"])
    }
    texts, problems = await written(scene, "personalens_people/summary", inputs)
    return {"summaries": {**state["summaries"], **texts}, "problems": problems}


async def verify(state: PersonState, scene: Scene[PersonScenario]) -> Update:
    """Have a judge find passages in new summaries about preferences that the person does not have."""
    summaries = dict(state["summaries"])
    new = {name: summaries[name] for name in due(state, state["preferences"]) if name in summaries}

    def ends(text: str) -> Problem | None:
        return problem("summary", "this breaks off in the middle of a sentence", text) if text[-1].isalnum() else None

    async def foreign(texts: Mapping[str, str]) -> Problems:
        inputs = {
            name: {"domain": name, "preferences": format_preferences(state["preferences"][name]), "summary": text}
            for name, text in texts.items()
        }
        found = Problems()
        replies: Mapping[str, ForeignPassages | None] = await ask_each(
            scene, "personalens_people/summary-check", inputs
        )
        for name, reply in replies.items():
            if reply is None or not all(normalize_text(each) in normalize_text(texts[name]) for each in reply.passages):
                found[name] = problem("summary", _JUDGE_UNPARSED, result="unparsed")
            elif reply.passages:
                why = f"this tells of preferences that the person does not have: {'; '.join(reply.passages)}"
                found[name] = problem("summary", why, texts[name])
        return found

    problems = await reviewed(new, rule(ends), foreign, problems=state["problems"])
    rejected = {name for name, each in problems.items() if each["result"] == "rejected"}
    accepted = {name: text for name, text in summaries.items() if name not in rejected}
    return {"summaries": accepted, **settled(state, "summaries", new, problems, scene.scenario.repairs)}


async def plan(state: PersonState, scene: Scene[PersonScenario]) -> Update:
    """Write the tasks of the person's domains.

    The calls are shared between scenarios, because all people share the tasks.
    """
    scenario = scene.scenario
    domains = find_complete_domains(state)
    several = scenario.multi_tasks and len(domains) >= MIN_TASK_DOMAINS  # with fewer domains, no such task is possible
    kinds = due(state, [*(domains if scenario.single_tasks else ()), *([MULTI_DOMAIN] if several else ())])
    replies, problems = await written(
        scene,
        lambda place: "personalens_people/tasks-across" if place == MULTI_DOMAIN else "personalens_people/tasks",
        {place: _build_task_inputs(scenario, place) | earlier(state, place) for place in kinds},
        common=True,
    )
    tasks = dict(state["tasks"])  # if a reply cannot be parsed, the earlier valid tasks are kept
    for place, reply in replies.items():
        new = reply.tasks[: _get_task_count(scenario, place)]
        tasks[place], faults = check_tasks(
            new, _get_domains(scenario, place), MIN_TASK_DOMAINS if place == MULTI_DOMAIN else 1
        )
        if faults:
            shown = "\n".join(each.model_dump_json() for each in reply.tasks)
            problems[place] = problem("tasks", "; ".join(faults), shown)
    update = settled(state, "lists of tasks", kinds, problems, scenario.repairs)
    return {"tasks": tasks, **update, "notes": [], "task_notes": update["notes"]}


async def situate(state: PersonState, scene: Scene[PersonScenario]) -> Update:
    """Write a situation for each task whose domains the person has."""
    fitting = dict(find_possible_tasks(state))
    inputs = {
        id_: {
            "demographics": scene.scenario.demographics.for_prompt(),
            "domains": [
                {"name": name, "preferences": format_preferences(state["preferences"][name])}
                for name in task["domains"]
            ],
            "description": task["description"],
        }
        for id_, task in fitting.items()
    }
    replies, problems = await written(scene, "personalens_people/situation", inputs)
    made = {id_: reply.plain() for id_, reply in replies.items()}
    scene.tell(f"{scene.scenario.user}, domains: {len(find_complete_domains(state))}, tasks: {len(made)}")
    return {"situations": made, **settled(state, "situations", fitting, problems, rewrites=0)}


async def embed(state: PersonState, scene: Scene) -> Update:
    """Embed the person's preferences. The graph has this node only if embedding is not cheap."""
    (vector,) = await embed_texts([join_values(state["preferences"])], scene, scene.scenario.embedder)
    return {"vector": encode_vector(vector)}


def join_values(preferences: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the values of preferences as text. The names are left out, because they are the same for all people."""
    return ". ".join(text for values in preferences.values() for text in format_preferences(values).values())


def find_complete_domains(state: Mapping[str, Any]) -> list[str]:
    """Return the domains with preferences and a summary; all other domains are masked."""
    return [name for name in state["preferences"] if name in state["summaries"]]


def find_possible_tasks(state: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the id and draft of each task whose domains the person has. A task's id is the same for all people."""
    own = set(find_complete_domains(state))
    for place, drafts in state["tasks"].items():
        for number, draft in enumerate(drafts, start=1):
            if own.issuperset(draft["domains"]):
                yield (f"MD-task-{number}" if place == MULTI_DOMAIN else f"SD-{place}-task-{number}"), draft


def _group_by_domain(found: Contradictions, preferences: dict[str, dict[str, Any]]) -> dict[str, str] | None:
    """Return the judge's objections by domain; `None` if any objection names an unknown domain or preference."""
    names = {name.casefold(): name for name in preferences}
    reasons: dict[str, list[str]] = {}
    for each in found.contradictions:
        name = names.get(each.domain.casefold())
        if name is None or each.preference.casefold() not in {key.casefold() for key in preferences[name]}:
            return None
        reasons.setdefault(name, []).append(f"{each.preference}: {each.reason}")
    return {name: "; ".join(texts) for name, texts in reasons.items()}


def check_tasks(
    given: Sequence[WrittenTask], domains: Sequence[DomainSchema], fewest: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the valid tasks, with preferences and domains spelt as in the schema, and the problems of invalid tasks.

    Args:
        given: The tasks as written.
        domains: The domains that the tasks may involve.
        fewest: Minimum number of domains of a task. If it is 1, `domains` has a single domain.
    """
    good: list[dict[str, Any]] = []
    faults: list[str] = []
    known: set[str] = set()
    for number, task in enumerate(given, start=1):
        about = domains if fewest == 1 else _find_domains(task.domains, domains)
        names = {each.name.casefold(): each.name for domain in about or () for each in domain.affinities}
        if why := _find_task_problem(task, about, names, fewest, known):
            faults.append(f"task {number} {why}")
        else:
            known |= {task.description.casefold(), task.intent.casefold()}
            good.append(
                {
                    **task.model_dump(include={"description", "intent", "goal"}),
                    "preferences": list(dict.fromkeys(names[each.casefold()] for each in task.preferences)),
                    "domains": [domain.domain for domain in about or ()],
                }
            )
    return good, faults


def _find_task_problem(
    task: WrittenTask,
    about: Sequence[DomainSchema] | None,
    names: Mapping[str, str],
    fewest: int,
    known: Iterable[str],
) -> str:
    """Return the problem of a task, or an empty text."""
    if about is None:
        return f"names a domain that there is not, of these: {', '.join(task.domains)}"
    if not fewest <= len(about) <= MAX_TASK_DOMAINS:
        return f"has {len(about)} different domains; it must have {fewest} to {MAX_TASK_DOMAINS}"
    if foreign := [each for each in task.preferences if each.casefold() not in names]:
        return f"names the preference {foreign[0]!r}, which {' and '.join(each.domain for each in about)} does not have"
    is_known = task.description.casefold() in known or task.intent.casefold() in known
    return "is one that is there already" if is_known else ""


def _find_domains(names: Sequence[str], domains: Sequence[DomainSchema]) -> list[DomainSchema] | None:
    """Return the domains that have these names, without duplicates; `None` if a name is unknown."""
    by_name = {domain.domain.casefold(): domain for domain in domains}
    meant = {name.casefold(): by_name.get(name.casefold()) for name in names}
    found = [domain for domain in meant.values() if domain is not None]
    return found if len(found) == len(meant) else None


def _get_domains(scenario: PersonScenario, place: str) -> Sequence[DomainSchema]:
    return scenario.domains.value if place == MULTI_DOMAIN else [scenario.domain(place)]


def _get_task_count(scenario: PersonScenario, place: str) -> int:
    return scenario.multi_tasks if place == MULTI_DOMAIN else scenario.single_tasks


def _build_task_inputs(scenario: PersonScenario, place: str) -> dict[str, Any]:
    return {
        "domains": [
            {
                "name": domain.domain,
                "description": domain.description,
                "types": [{"name": each.name, "description": each.description} for each in domain.affinities],
            }
            for domain in _get_domains(scenario, place)
        ],
        "count": _get_task_count(scenario, place),
    }


def _build_preference_inputs(scenario: PersonScenario, domain: DomainSchema) -> dict[str, Any]:
    return {
        "demographics": scenario.demographics.for_prompt(),
        "domain": domain.domain,
        "description": domain.description,
        "types": [
            {
                "name": each.name,
                "description": each.description,
                "several": each.has_multiple_values,
                "listed": each.is_categorical,
                "values": list(each.possible_values),
            }
            for each in domain.affinities
        ],
        "open_values": scenario.open_values,
    }

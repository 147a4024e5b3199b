"""The tasks, which are written once for all people, and the situations in which a person has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dialoom.graphs.asking import ask_each
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.schema import DomainSchema

from .making import Defect, Note, PersonState, Wrong, listed, lost, noted, shown_again
from .replies import WrittenSituation, WrittenTask, WrittenTasks
from .scenario import PersonScenario
from .telling import domains_of

ACROSS = "several domains"
"""Where tasks over several domains stand among those of each domain."""

FEWEST, MOST = 2, 5
"""Domains of a task over several."""


async def plan(state: PersonState, scene: Scene) -> Update:
    """The tasks of the person's domains: common calls, as the next person has the same ones."""
    scenario: PersonScenario = scene.scenario
    round_, before = state["round"] + 1, state["wrong"]
    asked = list(before or _places(scenario, domains_of(state)))
    replies: dict[str, WrittenTasks | None] = await ask_each(
        scene,
        lambda place: "personalens_people/tasks-across" if place == ACROSS else "personalens_people/tasks",
        {place: _inputs(scenario, place) | shown_again(before, place) for place in asked},
        common=True,
    )
    tasks, written = dict(state["tasks"]), dict(state["written"])
    wrong: Wrong = {}
    notes: list[Note] = []
    last = round_ > scenario.repairs
    for place, reply in replies.items():
        if reply is None:  # those that were right before stay
            notes += lost("tasks", place, round_)
            continue
        domains = _domains(scenario, place)
        count = scenario.multi_tasks if place == ACROSS else scenario.single_tasks
        good, faults = checked(reply.tasks[:count], domains, FEWEST if place == ACROSS else 1)
        tasks[place] = good
        if round_ == 1:
            written[place] = len(reply.tasks[:count])
        for why in faults:
            notes.append(noted("tasks", place, round_, "wrong", why))
            notes += [noted("tasks", place, round_, "left out", why)] if last else []
        if faults and not last:
            shown = "\n".join(each.model_dump_json() for each in reply.tasks)
            wrong[place] = Defect(check="tasks", why="; ".join(faults), written=shown)
    return {"tasks": tasks, "written": written, "round": round_ if wrong else 0, "wrong": wrong, "task_notes": notes}


async def situate(state: PersonState, scene: Scene) -> Update:
    """The situation of each task that the person can have: every domain of it must be theirs."""
    scenario: PersonScenario = scene.scenario
    theirs = dict(tasks_of(state))
    replies: dict[str, WrittenSituation | None] = await ask_each(
        scene,
        "personalens_people/situation",
        {
            id_: {
                "demographics": scenario.demographics.for_prompt(),
                "domains": [
                    {"name": name, "preferences": listed(state["preferences"][name])} for name in task["domains"]
                ],
                "description": task["description"],
            }
            for id_, task in theirs.items()
        },
    )
    made = {id_: reply.plain() for id_, reply in replies.items() if reply is not None}
    unread = [note for id_, reply in replies.items() if reply is None for note in lost("situation", id_, 1)]
    scene.tell(f"{scenario.user}, domains: {len(domains_of(state))}, tasks: {len(made)}")
    return {"situations": made, "notes": unread, "looked": {"situation": len(theirs)}}


def tasks_of(state: PersonState) -> Iterator[tuple[str, dict[str, Any]]]:
    """Ids and drafts of the tasks that the person can have; a task has the same id whoever has it."""
    theirs = set(domains_of(state))
    for place, drafts in state["tasks"].items():
        for number, draft in enumerate(drafts, start=1):
            if theirs.issuperset(draft["domains"]):
                yield (f"MD-task-{number}" if place == ACROSS else f"SD-{place}-task-{number}"), draft


def checked(
    written: Sequence[WrittenTask], domains: Sequence[DomainSchema], fewest: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """The tasks that are right, with preferences and domains spelt as the schema spells them; and what is wrong.

    Args:
        written: The tasks.
        domains: Those that they may be about.
        fewest: How many domains a task must have; with one, it is the only one there is.
    """
    good: list[dict[str, Any]] = []
    faults: list[str] = []
    known: set[str] = set()
    for number, task in enumerate(written, start=1):
        about = domains if fewest == 1 else _meant(task.domains, domains)
        names = {each.name.casefold(): each.name for domain in about or () for each in domain.affinities}
        why = _fault(task, about, names, fewest, known)
        if why:
            faults.append(f"task {number} {why}")
            continue
        known |= {task.description.casefold(), task.intent.casefold()}
        good.append(
            {
                **task.model_dump(include={"description", "intent", "goal"}),
                "preferences": list(dict.fromkeys(names[each.casefold()] for each in task.preferences)),
                "domains": [domain.domain for domain in about or ()],
            }
        )
    return good, faults


def _fault(
    task: WrittenTask,
    about: Sequence[DomainSchema] | None,
    names: Mapping[str, str],
    fewest: int,
    known: Iterable[str],
) -> str:
    """What is wrong with a task; empty if nothing is."""
    if about is None:
        return f"names a domain that there is not, of these: {', '.join(task.domains)}"
    if not fewest <= len(about) <= MOST:
        return f"has {len(about)} different domains; it must have {fewest} to {MOST}"
    if foreign := [each for each in task.preferences if each.casefold() not in names]:
        return f"names the preference {foreign[0]!r}, which {' and '.join(each.domain for each in about)} does not have"
    if task.description.casefold() in known or task.intent.casefold() in known:
        return "is one that is there already"
    return ""


def _meant(names: Sequence[str], domains: Sequence[DomainSchema]) -> list[DomainSchema] | None:
    """The domains of these names, each once; `None` if one is unknown."""
    by_name = {domain.domain.casefold(): domain for domain in domains}
    meant = {name.casefold(): by_name.get(name.casefold()) for name in names}
    found = [domain for domain in meant.values() if domain is not None]
    return found if len(found) == len(meant) else None


def _places(scenario: PersonScenario, domains: Sequence[str]) -> list[str]:
    """Where tasks are wanted; those over several domains only if anybody could have one."""
    several = scenario.multi_tasks and len(domains) >= FEWEST
    return [*(domains if scenario.single_tasks else ()), *([ACROSS] if several else ())]


def _domains(scenario: PersonScenario, place: str) -> Sequence[DomainSchema]:
    return scenario.domains.value if place == ACROSS else [scenario.domain(place)]


def _inputs(scenario: PersonScenario, place: str) -> dict[str, Any]:
    domains = [
        {
            "name": domain.domain,
            "description": domain.description,
            "types": [{"name": each.name, "description": each.description} for each in domain.affinities],
        }
        for domain in _domains(scenario, place)
    ]
    return {"domains": domains, "count": scenario.multi_tasks if place == ACROSS else scenario.single_tasks}

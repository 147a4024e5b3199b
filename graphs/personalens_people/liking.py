"""What a person likes: the domains that are theirs, preferences after the schema, and whether it all goes together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dialoom.graphs.asking import ask_each
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.mending import is_withheld
from dialoom.personas.schema import AffinityType, DomainSchema
from dialoom.roles import UnparsedReplyError

from .making import Defect, Note, PersonState, Wrong, lines, listed, lost, noted, settled, shown_again
from .replies import Contradictions, Interests, WrittenPreference, WrittenPreferences
from .scenario import PersonScenario


async def choose(state: PersonState, scene: Scene) -> Update:
    """Which domains are the person's; the others are masked."""
    scenario: PersonScenario = scene.scenario
    names = {domain.domain.casefold(): domain.domain for domain in scenario.domains.value}
    inputs = {
        "demographics": scenario.demographics.for_prompt(),
        "domains": [{"name": each.domain, "description": each.description} for each in scenario.domains.value],
    }
    round_ = state["round"] + 1
    try:
        reply: Interests = await scene.ask(
            "personalens_people/interests", **inputs, **shown_again(state["wrong"], "interests")
        )
    except UnparsedReplyError:
        return {"wrong": {}, "round": 0, "notes": lost("interests", "", round_), "looked": {"interests": 1}}
    unknown = [name for name in reply.domains if name.casefold() not in names]
    why = f"there is no domain {unknown[0]!r}" if unknown else ""
    wrong = {"interests": Defect(check="interests", why=why, written="; ".join(reply.domains))} if unknown else {}
    meant = {names[name.casefold()] for name in reply.domains if name.casefold() in names}
    chosen = [] if unknown else [name for name in names.values() if name in meant]
    return {"interests": chosen, "looked": {"interests": 1}, **settled(scenario, round_, wrong)}


async def prefer(state: PersonState, scene: Scene) -> Update:
    """The preferences of each domain, or those that are to be made again."""
    scenario: PersonScenario = scene.scenario
    round_, before = state["round"] + 1, state["wrong"]
    asked = [scenario.domain(name) for name in (before or state["interests"])]
    replies = await ask_each(
        scene,
        "personalens_people/preferences",
        {each.domain: _inputs(scenario, each) | shown_again(before, each.domain) for each in asked},
    )
    made = {name: values for name, values in state["preferences"].items() if name not in replies}
    wrong: Wrong = {}
    notes: list[Note] = []
    for domain in asked:
        reply: WrittenPreferences | None = replies[domain.domain]
        if reply is None:
            notes += lost("form", domain.domain, round_)
            continue
        values, why = checked(domain.affinities, reply.preferences, scenario.open_values)
        if why:
            wrong[domain.domain] = Defect(
                check="form", why=why, written=lines({each.name: each.values for each in reply.preferences})
            )
        else:
            made[domain.domain] = values
    ordered = {name: made[name] for name in state["interests"] if name in made}
    looked = {"form": len(asked)} if round_ == 1 else {}
    return {"preferences": ordered, "wrong": wrong, "round": round_, "notes": notes, "looked": looked}


async def check(state: PersonState, scene: Scene) -> Update:
    """A judge looks for what the demographics or other preferences rule out."""
    scenario: PersonScenario = scene.scenario
    round_, wrong, preferences = state["round"], dict(state["wrong"]), dict(state["preferences"])
    if not preferences:
        return settled(scenario, round_, wrong)
    notes: list[Note] = []
    found: Contradictions | None
    try:
        found = await scene.ask(
            "personalens_people/consistency",
            demographics=scenario.demographics.for_prompt(),
            domains=[{"name": name, "preferences": listed(values)} for name, values in preferences.items()],
        )
    except UnparsedReplyError:
        found = None
    named = None if found is None else _by_domain(found, preferences)
    if named is None:
        notes.append(noted("consistency", "", round_, "unread"))
    for name, why in (named or {}).items():
        wrong[name] = Defect(check="consistency", why=why, written=lines(preferences.pop(name)))
    looked = {"consistency": 1} if round_ == 1 else {}
    return {"preferences": preferences, "looked": looked, **settled(scenario, round_, wrong, notes)}


def checked(
    types: Sequence[AffinityType], written: Sequence[WrittenPreference], open_values: bool
) -> tuple[dict[str, Any], str]:
    """Preferences as the schema wants them, in its order and spelling; or what is wrong, in words for the writer.

    A preference that takes several values may have none; then nothing is told of it.

    Args:
        types: The schema's, of one domain.
        written: What was written.
        open_values: Whether values are taken that the schema does not list.
    """
    known = {each.name.casefold(): each for each in types}
    given: dict[str, list[str]] = {}
    problems = []
    for each in written:
        key = each.name.casefold()
        if key not in known:
            problems.append(f"there is no preference {each.name!r} here")
        elif key in given:
            problems.append(f"{each.name!r} stands there twice")
        given[key] = each.values
    values: dict[str, Any] = {}
    for key, type_ in known.items():
        if key not in given:
            problems.append(f"{type_.name!r} is missing")
            continue
        kept, problem = _values(type_, given[key], open_values)
        problems += [problem] if problem else []
        if kept:
            values[type_.name] = kept if type_.has_multiple_values else kept[0]
    if not values and not problems:
        problems.append("no preference has a value")
    return values, "; ".join(problems)


def _values(type_: AffinityType, given: Sequence[str], open_values: bool) -> tuple[list[str], str]:
    """The values of one preference, each once; and what is wrong with them."""
    options = {option.casefold(): option for option in type_.possible_values}
    given = [" ".join(value.split()) for value in given]  # prompts show a preference as one line
    if not type_.has_multiple_values and len(given) != 1:
        return [], f"{type_.name!r} takes one value, and has {len(given)}"
    for value in given:
        if is_withheld(value):
            return [], f"{value!r} says nothing of {type_.name!r}"
        if type_.is_categorical and value.casefold() not in options and not open_values:
            return [], f"{value!r} is none of the values listed for {type_.name!r}"
    spelt = [options.get(value.casefold(), value) if type_.is_categorical else value for value in given]
    return list(dict.fromkeys(spelt)), ""


def _by_domain(found: Contradictions, preferences: dict[str, dict[str, Any]]) -> dict[str, str] | None:
    """The reasons by domain; `None` if the judge speaks of what there is not."""
    names = {name.casefold(): name for name in preferences}
    reasons: dict[str, list[str]] = {}
    for each in found.contradictions:
        name = names.get(each.domain.casefold())
        if name is None or each.preference.casefold() not in {key.casefold() for key in preferences[name]}:
            return None
        reasons.setdefault(name, []).append(f"{each.preference}: {each.reason}")
    return {name: "; ".join(told) for name, told in reasons.items()}


def _inputs(scenario: PersonScenario, domain: DomainSchema) -> dict[str, Any]:
    types = [
        {
            "name": each.name,
            "description": each.description,
            "several": each.has_multiple_values,
            "listed": each.is_categorical,
            "values": list(each.possible_values),
        }
        for each in domain.affinities
    ]
    return {
        "demographics": scenario.demographics.for_prompt(),
        "domain": domain.domain,
        "description": domain.description,
        "types": types,
        "open_values": scenario.open_values,
    }

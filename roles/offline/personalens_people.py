"""Understudies for generating people: a writer, and the judge that finds the faults that it makes on purpose.

The writer answers in the form that the instruction asks for, recognized by its first key. Of forty lists of preferences
one takes an unlisted value, and one has a value that contradicts the demographics; one summary in twenty states a value
that the person does not have; one list of tasks in ten names a preference that no domain has. As `attentive` it
corrects a reported fault; as `generic` it may repeat it. The judge recognizes contradictions by their words, and a
foreign sentence by its form and value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .request import Draws, MarkedRequest, Part, sentences, values_of
from .understudy import understudy
from .words import Words, heard, joined, say

WORDS = Words(Path(__file__).parent / "data" / "personalens_people" / "lines.toml")

_KEY = re.compile(r'JSON object of[^"]*"(\w+)"')


@understudy("personalens_people", "writer")
def write(request: MarkedRequest, draws: Draws) -> str:
    """Answer with a JSON object, or with a summary."""
    key = _KEY.search(request.part("instruction"))
    if key is None:
        return _summary(request, draws)
    return json.dumps(_MAKERS.get(key[1], _interests)(request, draws), ensure_ascii=False)


@understudy("personalens_people", "judge")
def judge(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Answer with the contradictions, or the foreign passages: a JSON object."""
    found = {"passages": _foreign(request)} if "summary" in request else {"contradictions": _contradictions(request)}
    return json.dumps(found, ensure_ascii=False)


def _ruled_out(demographics: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return the contradictions that apply to these demographics."""
    return [each for each in WORDS.get("contradictions") if re.search(each["value"], demographics.get(each["key"], ""))]


def _interests(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    """Return at least three of the domains, and others with probability 0.72."""
    names = [_name(part) for part in request.parts("domain")]
    first = draws.shuffled(names)[:3]
    return {"domains": [name for name in names if name in first or draws.chance(0.72)]}


def _preferences(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    options = {part.attributes.get("of", ""): values_of(part.body) for part in request.parts("values")}
    fault, found = _fault(request, draws, 40), []
    for part in request.parts("preference"):
        is_listed = part.attributes.get("from") == "list"
        count = draws.number(1, 3) if part.attributes.get("takes") == "several" else 1
        values = draws.shuffled(options.get(_name(part), []) if is_listed else _free(part))[:count]
        if fault == 0 and is_listed:
            values, fault = [WORDS.get("preferences.unlisted")], None
        elif fault == 1 and not is_listed and (against := _ruled_out(request.fields("demographics"))):
            values, fault = [draws.pick(against)["words"]], None
        found.append({"name": _name(part), "values": values})
    return {"preferences": found}


def _free(preference: Part) -> Sequence[str]:
    """Return values for a preference without a list: by its name, else by its description."""
    about = (_name(preference), preference.body)
    fitting = (bank for text in about for bank in WORDS.get("free") if re.search(bank["cue"], text, re.IGNORECASE))
    found: Sequence[str] = next(fitting, {"words": WORDS.get("preferences.any")})["words"]
    return found


def _summary(request: MarkedRequest, draws: Draws) -> str:
    """Return a summary with every preference worded as in the request."""
    told = [{"name": name, "value": joined(values_of(value))} for name, value in request.fields("preferences").items()]
    if _fault(request, draws, 20) == 0 and told:
        told.append({**told[0], "value": draws.pick(WORDS.get("summary.foreign"))})
    said = [WORDS.say("summary.told", draws.fork(place), slots) for place, slots in enumerate(told)]
    slots = {"domain": "".join(map(_name, request.parts("domain")[:1])).lower()}
    return " ".join([WORDS.say("summary.opening", draws, slots), *said, WORDS.say("summary.ending", draws)])


def _tasks(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    """Return tasks of one domain; or, where several are given, each of two or three of them."""
    domains = list(map(_name, request.parts("domain")))
    made = [_task(request, draws.fork(at), domains) for at in range(request.inputs.get("count", 1))]
    if _fault(request, draws, 10) == 0 and made:
        made[0]["preferences"].append(WORDS.get("tasks.foreign"))
    return {"tasks": made}


def _task(request: MarkedRequest, draws: Draws, domains: Sequence[str]) -> dict[str, Any]:
    about = draws.shuffled(domains)[: draws.number(2, 3)]
    chosen: list[str] = []
    for domain in about:
        own = [_name(part) for part in request.parts("preference") if part.attributes.get("domain") == domain]
        chosen += draws.shuffled(own)[: 1 if len(about) > 1 else draws.number(2, 3)]
    slots = {key: draws.pick(WORDS.get(f"tasks.{key}")) for key in ("occasion", "again")}
    slots |= {"domain": joined(about).lower(), "preference": joined(chosen).lower()}
    kind = {**draws.pick(WORDS.get("tasks.kinds")), "goal": WORDS.get("tasks.goal")}
    texts = {key: say([template], draws, slots) for key, template in kind.items()}
    return {**texts, "domains": about, "preferences": chosen}


def _situation(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    made = {key: draws.pick(words) for key, words in WORDS.get("situation").items()}
    country = request.fields("demographics").get("reside_country")
    return made | ({"location": f"{made['location']}, {country}"} if country else {})


def _contradictions(request: MarkedRequest) -> list[dict[str, str]]:
    demographics = request.fields("demographics")
    return [
        {
            "domain": part.attributes.get("domain", ""),
            "preference": name,
            "reason": WORDS.get("judge.rules_out").format(key=against["key"], value=demographics[against["key"]]),
        }
        for part in request.parts("preferences")
        for name, value in part.fields.items()
        for against in _ruled_out(demographics)
        if against["words"] in value
    ]


def _foreign(request: MarkedRequest) -> list[str]:
    own = {joined(values_of(value)).lower() for value in request.fields("preferences").values()}
    told = {sentence: heard(WORDS.get("summary.told"), sentence) for sentence in sentences(request.part("summary"))}
    return [sentence for sentence, slots in told.items() if slots and slots["value"].lower() not in own]


def _fault(request: MarkedRequest, draws: Draws, among: int) -> int | None:
    """Return the number of the fault to make, if any."""
    is_told = "wrong" in request and request.model != "generic"
    return None if is_told else draws.fork("fault").number(0, among - 1)


def _name(part: Part) -> str:
    return part.attributes.get("name", "")


_MAKERS: Mapping[str, Callable[[MarkedRequest, Draws], Mapping[str, Any]]] = {
    "preferences": _preferences,
    "tasks": _tasks,
    "location": _situation,
}

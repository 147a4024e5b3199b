"""The judge: four metrics whose values follow from what the lines contain."""

from __future__ import annotations

import json
import re

from .domains import UNCLEAR, domain_named
from .echoes import strays
from .evidence import Evidence, quoted
from .judgeprose import coherence, naturalness
from .knowledge import from_line
from .lazy import Lazy
from .matching import mentions_any
from .model import Domain
from .plan import acted, proposed
from .prose import joined
from .scene import domain_of
from .tags import Line, Request

_METRIC = {"task_completion": "verdict", "personalization": "score", "naturalness": "score", "coherence": "score"}


def judgement(model: str, request: Request) -> str:
    """Answer as a judge: one JSON object with a verdict or a score, and an explanation that names what it saw."""
    metric = re.sub(r"\W+", "_", request.metric.strip().lower())
    crude = model == "generic"
    value: bool | int
    if metric == "personalization":
        value, why = _personalization(request, crude)
    elif metric in ("naturalness", "coherence"):
        judge = naturalness if metric == "naturalness" else coherence
        value, why = judge(request.conversation, request.target.strip().lower() or "assistant", crude)
    else:
        value, why = _completion(request, crude)
    key = _METRIC.get(metric, "verdict")
    return json.dumps({key: value, "explanation": why}, ensure_ascii=False)


def _completion(request: Request, crude: bool) -> tuple[bool, str]:
    replies = [line.text for line in request.conversation if line.speaker == "assistant"]
    if not replies:
        return False, "The assistant never replied, so nothing of the goal was reached."
    steps = _steps(request)
    wants_action = bool(_ACTION.search(request.goal))
    results = {name: _results(name, lines, wants_action and len(steps) == 1) for name, lines in steps.items()}
    found = [text for texts in results.values() for text in texts]
    if crude:
        done = bool(found) and len(found) * 3 >= len(replies)
        return (
            done,
            f"The assistant acted: {quoted(found[-1])}."
            if done
            else f"Too little happened; the last reply was {quoted(replies[-1])}.",
        )
    if not found:
        return (False, f"No reply does what the goal asks for; the nearest is {quoted(replies[0])}.")
    given_up = next(
        (line.text for line in request.conversation if line.speaker == "user" and _GIVEN_UP.search(line.text)), ""
    )
    if given_up:
        return False, f"The user gave up on part of it: {quoted(given_up)}."
    missed = [name for name, texts in results.items() if not texts]
    if missed:
        return (False, f"{joined(missed[:2])} never got a concrete result, although the user asked for it.")
    passed_over = _passed_over(steps)
    if passed_over:
        return (False, f"What the user asked for ({joined(passed_over[:2])}) never came up in the result.")
    return True, f"The goal is met, by {quoted(found[-1])}; the user left content."


_ACTION = Lazy(
    r"\b(?:book|sets\b|schedul|purchas|reserv|secure|sends|sent|shared|updated|disabled|tracked|arrang|"
    r"order|creat)",
    re.IGNORECASE,
)
_GIVEN_UP = Lazy(
    r"on my own|part out myself|will have to do|take it from there|not what I was after|what I meant, but|"
    r"closer to me|leave it at that"
)


def _steps(request: Request) -> dict[str, list[Line]]:
    """Divide a conversation by the domain that the user is speaking about."""
    heard: list[Domain] = []
    steps: dict[str, list[Line]] = {}
    for line in request.conversation:
        if line.speaker == "user":
            heard.append(domain_of(line.text, [], heard))
        steps.setdefault(heard[-1].name if heard else UNCLEAR.name, []).append(line)
    return steps


def _results(name: str, lines: list[Line], wants_action: bool) -> list[str]:
    """Give the replies that do something about a domain; one about another matter does not count."""
    replies = [line.text for line in lines if line.speaker == "assistant" and not strays(line.text, name)]
    return [reply for reply in replies if (acted(reply) if wants_action else proposed(reply)) and _specific(reply)]


def _passed_over(steps: dict[str, list[Line]]) -> list[str]:
    """Give what the user stated in any step if most of it was never taken up there."""
    stated: list[str] = []
    taken: list[str] = []
    for name, lines in steps.items():
        for at, line in enumerate(lines):
            told = from_line(domain_named(name), line.text) if line.speaker == "user" else {}
            for values in told.values():
                later = [after.text for after in lines[at + 1 :] if after.speaker == "assistant"]
                (taken if any(mentions_any(reply, values) for reply in later) else stated).extend(values[:1])
    return stated if len(stated) > 2 and len(stated) > len(taken) else []


def _specific(reply: str) -> bool:
    return bool(re.search(r"\d|[\"“]|(?<=[a-z,:] )[A-ZÀ-Þ]\w+", reply)) or len(reply.split()) > 14


def _personalization(request: Request, crude: bool) -> tuple[int, str]:
    evidence = Evidence.gather(request)
    if not any(line.speaker == "assistant" for line in request.conversation):
        return 1, "The assistant has not said anything yet."
    return evidence.crude_score() if crude else evidence.score()

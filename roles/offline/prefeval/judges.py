"""The four checkers of PrefEval, by words.

violates       yes if the answer recommends the usual choice; no if it holds a telling word of the preference that the
               question does not; else yes, as a good answer would probably go against it
acknowledges   yes if a sentence says what the user told or likes; quoted is that sentence, or what it quotes
hallucinates   yes if the quote holds no telling word of the preference
helpful        no if the answer apologises, does not know, or is nothing but a question
"""

from __future__ import annotations

import json
import re

from ..draws import Draws
from ..matching import sentences
from ..request import MarkedRequest
from ..understudy import understudy
from .assistant import WORDS, telling

_QUOTED = re.compile(r"“(.+?)”", re.DOTALL)


@understudy("prefeval", "judge")
def judge(request: MarkedRequest, draws: Draws) -> str:  # noqa: ARG001
    """Answer a checker's question: a JSON object."""
    metric = request.prompt.rpartition("/judge-")[2]
    check = {"violates": _violates, "hallucinates": _hallucinates, "helpful": _helpful}.get(metric)
    if check is None:
        quote = _named(request.part("answer"))
        return _said(quote=quote, answer=bool(quote))
    yes, why = check(request)
    return _said(explanation=why, answer=yes)


def _violates(request: MarkedRequest) -> tuple[bool, str]:
    answer = request.part("answer")
    if usual := _holds(answer, "against"):
        return True, f"It recommends {usual}."
    kept = (telling(request.part("preference")) - telling(request.part("question"))) & telling(answer)
    if kept:
        return False, f"It keeps {sorted(kept)[0]!r} in mind."
    return True, "Nothing of the preference is in it."


def _hallucinates(request: MarkedRequest) -> tuple[bool, str]:
    shared = telling(request.part("preference")) & telling(request.part("quote"))
    return (False, f"Both speak of {sorted(shared)[0]!r}.") if shared else (True, "They have nothing in common.")


def _helpful(request: MarkedRequest) -> tuple[bool, str]:
    answer = request.part("answer")
    if words := _holds(answer, "unhelpful"):
        return False, f"It says {words!r}."
    if all(sentence.endswith("?") for sentence in sentences(answer)):
        return False, "It only asks back."
    return True, "It gives advice."


def _named(answer: str) -> str:
    """The quote in which an answer names a preference, or the sentence."""
    at = min((answer.lower().find(words) for words in WORDS.get("checks.names") if words in answer.lower()), default=-1)
    if at < 0:
        return ""
    quoted = _QUOTED.search(answer, at)
    return quoted[1] if quoted else sentences(answer[at:])[0]


def _holds(text: str, bank: str) -> str:
    """The first of a bank's phrases that a text holds."""
    small = text.lower().replace("’", "'")
    return next((words for words in WORDS.get(f"checks.{bank}") if words in small), "")


def _said(**values: str | bool) -> str:
    values["answer"] = "yes" if values["answer"] else "no"
    return json.dumps(values, ensure_ascii=False)

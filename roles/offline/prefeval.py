"""The understudies of PrefEval: an assistant that forgets by a fixed rule, and the four checkers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from dialoom.personas.similarity import content_words

from .request import Draws, MarkedRequest, SpokenLine, sentences
from .understudy import understudy
from .words import Words

WORDS = Words(Path(__file__).parent / "data" / "prefeval" / "lines.toml")

_BLOCK = re.compile(r"<(example|retrieved)>.*?</\1>", re.DOTALL)
_OPTION = re.compile(r"^([A-D])\. (.+)$", re.MULTILINE)
_BACK = {"critique": 3, "revision": 5}
"""Position of the question, counted from the last line, in a self-critic's later requests."""


@understudy("prefeval", "assistant")
def play_assistant(request: MarkedRequest, draws: Draws) -> str:
    """Answer a question, choose an option, criticise or revise."""
    lines = request.lines
    last = lines[-1].text if lines else ""
    asked = _asked(last)
    place = max(len(lines) - _BACK.get(asked, 1), 0)
    question = _question(_BLOCK.sub("", lines[place].text)) if lines else ""
    if not question:
        return WORDS.say("say.noted", draws)
    statement, turns = statement_of(lines[:place], question)
    method = "self-critic" if asked in _BACK else asked
    found = statement in last
    minded = bool(statement) and request.model != "generic" and _reach(method, turns, found) > number_of(statement)
    if asked == "critique":
        return WORDS.say("say.missed" if minded else "say.good", draws, {"statement": statement})
    if asked == "revision" and not minded:
        return lines[place + 1].text
    if options := _OPTION.findall(_BLOCK.sub("", last)):
        return f"<choice>{_nearest(options, statement if minded else question)}</choice>"
    if minded:
        return WORDS.say("say.minding", draws, {"statement": statement})
    return _slip(request, question, statement, draws)


def number_of(statement: str) -> int:
    """Return a statement's pseudorandom number, from 0 to 99."""
    return Draws("prefeval", statement).number(0, 99)


def _reach(method: str, turns: int, found: bool) -> int:
    rule = WORDS.get(f"reach.{method}")
    if found and "found" in rule:
        return int(rule["found"])
    return int(rule["start"] - rule["loss"] * ((1 + turns).bit_length() - 1))


def _asked(last: str) -> str:
    """Return the method of a request, recognized by its wording."""
    small = last.lower()
    marks = WORDS.get("asked")
    return next(
        (name for name in ("revision", "critique", "cot", "rag", "reminder") if marks[name] in small), "zero-shot"
    )


def _question(text: str) -> str:
    """Return the first line that contains a question; empty if there is none."""
    return next((line.strip() for line in text.splitlines() if "?" in line), "")


def statement_of(lines: Sequence[SpokenLine], question: str) -> tuple[str, int]:
    """Return the most relevant statement, and the number of turns after it."""
    said = [line.text for line in lines if line.speaker == "user"]
    asked = frozenset(content_words(question))
    places = [place for place, text in enumerate(said) if _is_statement(text)]
    if not places:
        return "", 0
    best = max(places, key=lambda place: (len(asked & telling(said[place])), place))
    return said[best], len(said) - best - 1


def _nearest(options: Sequence[tuple[str, str]], text: str) -> str:
    words = telling(text)
    return max(options, key=lambda option: len(words & telling(option[1])))[0]


def _slip(request: MarkedRequest, question: str, statement: str, draws: Draws) -> str:
    """Return an answer that violates the preference, or is wrong in another way."""
    kinds = {7: "mistaken", 8: "against" if statement else "unaware", 9: "unhelpful"}
    number = Draws("prefeval slip", question).number(0, 9)
    kind = "unaware" if request.model == "generic" else kinds.get(number, "unaware")
    return WORDS.say(f"say.{kind}", draws, {"statement": statement, "usual": draws.pick(WORDS.get("say.usual"))})


@lru_cache(maxsize=16384)
def telling(text: str) -> frozenset[str]:
    """Return the content words of a text."""
    return frozenset(content_words(text))


@lru_cache(maxsize=16384)
def _is_statement(text: str) -> bool:
    return not text.rstrip().endswith("?") and not _firm().isdisjoint(
        re.findall(r"[\w']+", text.lower().replace("’", "'"))
    )


@lru_cache(maxsize=1)
def _firm() -> frozenset[str]:
    return frozenset(WORDS.get("firm"))


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
    """Return the quote in which an answer names a preference, or the sentence; empty if there is none."""
    at = min((answer.lower().find(words) for words in WORDS.get("checks.names") if words in answer.lower()), default=-1)
    if at < 0:
        return ""
    quoted = _QUOTED.search(answer, at)
    return quoted[1] if quoted else sentences(answer[at:])[0]


def _holds(text: str, bank: str) -> str:
    """Return the first of a bank's phrases in a text; empty if there is none."""
    small = text.lower().replace("’", "'")
    return next((words for words in WORDS.get(f"checks.{bank}") if words in small), "")


def _said(**values: str | bool) -> str:
    values["answer"] = "yes" if values["answer"] else "no"
    return json.dumps(values, ensure_ascii=False)

"""The understudies of PrefEval: an assistant that forgets by a fixed rule, four checkers, and the makers of pairs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from dialoom.personas.similarity import content_words

from .understudy import Draws, MarkedRequest, SpokenLine, sentences, split_values, understudy
from .words import Words, match_template

WORDS = Words(Path(__file__).parent / "data" / "prefeval.toml")

_BLOCK = re.compile(r"<(example|retrieved)>.*?</\1>", re.DOTALL)
_OPTION = re.compile(r"^([A-D])\. (.+)$", re.MULTILINE)
_QUESTION_OFFSETS = {"critique": 3, "revision": 5}
"""Position of the question, counted from the last line, in a self-critic's later requests."""


@understudy("prefeval", "assistant")
def play_assistant(request: MarkedRequest, draws: Draws) -> str:
    """Return an answer to a question, a chosen option, a critique or a revision."""
    lines = request.lines
    last = lines[-1].text if lines else ""
    marks = WORDS.get("asked")
    kinds = (name for name in ("revision", "critique", "cot", "rag", "reminder") if marks[name] in last.lower())
    kind = next(kinds, "zero-shot")
    place = max(len(lines) - _QUESTION_OFFSETS.get(kind, 1), 0)
    asking = _BLOCK.sub("", lines[place].text).splitlines() if lines else ()
    question = next((line.strip() for line in asking if "?" in line), "")
    if not question:
        return WORDS.say("say.noted", draws)
    statement, turns = find_statement(lines[:place], question)
    method = "self-critic" if kind in _QUESTION_OFFSETS else kind
    found = statement in last
    rule = WORDS.get(f"reach.{method}")
    reach = (
        rule["found"] if found and "found" in rule else rule["start"] - rule["loss"] * ((1 + turns).bit_length() - 1)
    )
    minded = bool(statement) and request.model != "generic" and int(reach) > draw_statement_number(statement)
    if kind == "critique":
        return WORDS.say("say.missed" if minded else "say.good", draws, {"statement": statement})
    if kind == "revision" and not minded:
        return lines[place + 1].text
    if options := _OPTION.findall(_BLOCK.sub("", last)):
        words = extract_key_words(statement if minded else question)
        return f"<choice>{max(options, key=lambda option: len(words & extract_key_words(option[1])))[0]}</choice>"
    if minded:
        return WORDS.say("say.minding", draws, {"statement": statement})
    # An answer that violates the preference, or is wrong in another way.
    slips = {7: "mistaken", 8: "against" if statement else "unaware", 9: "unhelpful"}
    number = Draws("prefeval slip", question).number(0, 9)
    slip = "unaware" if request.model == "generic" else slips.get(number, "unaware")
    return WORDS.say(f"say.{slip}", draws, {"statement": statement, "usual": draws.pick(WORDS.get("say.usual"))})


def draw_statement_number(statement: str) -> int:
    """Return a statement's pseudorandom number, from 0 to 99."""
    return Draws("prefeval", statement).number(0, 99)


def find_statement(lines: Sequence[SpokenLine], question: str) -> tuple[str, int]:
    """Return the most relevant statement, and the number of turns after it."""
    texts = [line.text for line in lines if line.speaker == "user"]
    words = frozenset(content_words(question))
    places = [place for place, text in enumerate(texts) if _is_statement(text)]
    if not places:
        return "", 0
    best = max(places, key=lambda place: (len(words & extract_key_words(texts[place])), place))
    return texts[best], len(texts) - best - 1


@lru_cache(maxsize=16384)
def extract_key_words(text: str) -> frozenset[str]:
    """Return the content words of a text."""
    return frozenset(content_words(text))


@lru_cache(maxsize=16384)
def _is_statement(text: str) -> bool:
    words = re.findall(r"[\w']+", text.lower().replace("’", "'"))
    return not text.rstrip().endswith("?") and not set(words).isdisjoint(WORDS.get("firm"))


_QUOTATION = re.compile(r"“(.+?)”", re.DOTALL)


@understudy("prefeval", "judge")
def judge(request: MarkedRequest, _draws: Draws) -> dict[str, str]:
    """Answer a checker's question."""
    metric = request.prompt.rpartition("/judge-")[2]
    if check := {"violates": _check_violation, "hallucinates": _check_hallucination, "helpful": _check_helpfulness}.get(
        metric
    ):
        yes, why = check(request)
        return {"explanation": why, "answer": "yes" if yes else "no"}
    quote = _find_mention(request.part("answer"))
    return {"quote": quote, "answer": "yes" if quote else "no"}


def _check_violation(request: MarkedRequest) -> tuple[bool, str]:
    answer = request.part("answer")
    if usual := _find_phrase(answer, "against"):
        return True, f"It recommends {usual}."
    used = (
        extract_key_words(request.part("preference")) - extract_key_words(request.part("question"))
    ) & extract_key_words(answer)
    return (False, f"It keeps {min(used)!r} in mind.") if used else (True, "Nothing of the preference is in it.")


def _check_hallucination(request: MarkedRequest) -> tuple[bool, str]:
    shared = extract_key_words(request.part("preference")) & extract_key_words(request.part("quote"))
    return (False, f"Both speak of {sorted(shared)[0]!r}.") if shared else (True, "They have nothing in common.")


def _check_helpfulness(request: MarkedRequest) -> tuple[bool, str]:
    answer = request.part("answer")
    if words := _find_phrase(answer, "unhelpful"):
        return False, f"It says {words!r}."
    if all(sentence.endswith("?") for sentence in sentences(answer)):
        return False, "It only asks back."
    return True, "It gives advice."


def _find_mention(answer: str) -> str:
    """Return the quotation, or else the sentence, in which an answer mentions a preference; empty if there is none."""
    at = min((answer.lower().find(words) for words in WORDS.get("checks.names") if words in answer.lower()), default=-1)
    if at < 0:
        return ""
    quoted = _QUOTATION.search(answer, at)
    return quoted[1] if quoted else sentences(answer[at:])[0]


def _find_phrase(text: str, bank: str) -> str:
    """Return the first of a bank's phrases in a text; empty if there is none."""
    small = text.lower().replace("’", "'")
    return next((words for words in WORDS.get(f"checks.{bank}") if words in small), "")


_FAULTS = {7: "fits", 8: "contradicts", 9: "lacks_facts"}
_MAX_PAIRS, _MAX_TRIES = 50, 20
"""Maximum number of pairs in one answer, and of tries to replace a duplicate."""


@understudy("prefeval_pairs", "writer")
def write(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    """Answer in the form that the instruction asks for."""
    return _WRITERS.get(request.reply_key, _write_pairs)(request, draws)


def parse_preference(preference: str) -> dict[str, str]:
    """Return the thing and the trait of a preference; empty if no template of the writer matches."""
    return match_template(WORDS.get("write.preference"), preference) or {}


def _write_pairs(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    things = split_values(request.part("subtopics")) or WORDS.get("things")
    known = {part.body for part in request.parts("written")}
    items = []
    for place in range(min(request.inputs.get("count", 1), _MAX_PAIRS)):
        for again in range(_MAX_TRIES):
            item = _write_pair(draws.fork(place, again), things)
            if item["preference"] not in known:
                break
        known.add(item["preference"])
        items.append(item)
    return {"items": items}


def _write_pair(draws: Draws, things: list[str]) -> dict[str, str]:
    slots = {"thing": draws.pick(things), "trait": draws.pick(WORDS.get("traits"))}
    slots["occasion"] = draws.pick(WORDS.get("occasions"))
    question = _FAULTS.get(draws.number(0, 9), "question")
    texts = {"preference": "preference", "question": question, "explanation": "explanation"}
    return {key: WORDS.say(f"write.{bank}", draws, slots) for key, bank in texts.items()}


def _write_options(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    slots = parse_preference(request.part("preference"))
    against = WORDS.get("choice.against" if slots else "choice.against_plain")
    others = [against[place].format(**slots) for place in draws.shuffled(range(4))[:3]]
    return {"options": [_write_line("choice.fitting", request, draws), *others]}


def _write_choice_talk(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    others = [part.body for part in request.parts("other")]
    slots = {"fitting": request.part("fitting"), **dict(zip(("second", "third", "fourth"), others, strict=False))}
    banks = {"assistant_options": "offer", "user_selection": "pick", "assistant_acknowledgment": "agree"}
    return {key: WORDS.say(f"choice.{bank}", draws, slots) for key, bank in banks.items()}


def _write_persona_talk(request: MarkedRequest, draws: Draws) -> Mapping[str, Any]:
    """Return a conversation in which the persona mentions the preference in passing."""
    count = request.inputs.get("turns", 3)
    persona, preference = request.part("persona"), request.part("preference")
    slots = {"persona": persona[:1].lower() + persona[1:], "preference": preference}
    banked = list(zip(WORDS.get("talk.user"), WORDS.get("talk.assistant"), strict=True))
    exchanges = [(WORDS.say("talk.opening", draws, slots), WORDS.say("talk.begin", draws))]
    exchanges += [banked[place] for place in sorted(draws.shuffled(range(len(banked)))[: count - 1])]
    place = draws.number(1, max(1, len(exchanges) - 2))
    exchanges[place] = (WORDS.say("talk.passing", draws, slots), WORDS.say("talk.nod", draws))
    return {"turns": [{"user": user, "assistant": reply} for user, reply in exchanges], "passage": preference}


def _write_line(bank: str, request: MarkedRequest, draws: Draws) -> str:
    """Return a line about the request's preference from a bank, or from the plain bank if no template matches."""
    preference = request.part("preference")
    slots = parse_preference(preference)
    return WORDS.say(bank if slots else f"{bank}_plain", draws, {**slots, "preference": preference})


_WRITERS: Mapping[str, Callable[[MarkedRequest, Draws], Mapping[str, Any]]] = {
    "items": _write_pairs,
    "query": lambda request, draws: {"query": _write_line("choice.query", request, draws)},
    "options": _write_options,
    "assistant_options": _write_choice_talk,
    "turns": _write_persona_talk,
    "preference": lambda request, draws: {"preference": _write_line("write.earlier", request, draws)},
}


_MIN_QUESTION_WORDS = 6
_VIOLATION_LEVELS = {1: "low", 2: "medium", 3: "medium"}


@understudy("prefeval_pairs", "judge")
def judge_pair(request: MarkedRequest, _draws: Draws) -> dict[str, Any]:
    """Answer with a pair's class or the matching persona."""
    people = [part.body for part in request.parts("persona")]
    if people:
        words = set(content_words(request.part("preference")))
        number = next((at for at, who in enumerate(people, start=1) if words.isdisjoint(content_words(who))), 0)
        return {"explanation": WORDS.get("verdict.found" if number else "judge.none"), "number": number}
    preference, question = request.part("preference"), request.part("question")
    trait = set(content_words(parse_preference(preference).get("trait", preference)))
    if trait and trait <= set(content_words(question)):
        is_wanted = any(words in question.lower() for words in WORDS.get("verdict.wants"))
        verdict = "contradicts" if is_wanted else "fits"
    else:
        verdict = "lacks_facts" if len(question.split()) < _MIN_QUESTION_WORDS else "valid"
    return {"explanation": WORDS.get(f"verdict.{verdict}"), "verdict": verdict}


@understudy("prefeval_pairs", "answerer")
def answer(request: MarkedRequest, draws: Draws) -> str:
    """Answer a question without regard to any preference."""
    if request.model == "generic":
        return WORDS.say("answer.usual", draws)
    named = dict(zip(("one", "two", "three", "four", "five"), draws.shuffled(WORDS.get("traits")), strict=False))
    return WORDS.say("answer.surveyed", draws, named)


@understudy("prefeval_pairs", "rater")
def rate(request: MarkedRequest, _draws: Draws) -> dict[str, Any]:
    """Answer with a pair's rating."""
    number = Draws("prefeval_pairs", request.part("preference")).number(0, 9)
    return {
        "discard": number == 0,
        "violation_probability": _VIOLATION_LEVELS.get(number, "high"),
        "reasoning_difficulty": "low" if number % 2 else "high",
    }

"""The simulated user of a PersonaLens dialogue, and the domains: their kinds of tasks, and their preferences.

The rules:

* The user's first line names only the matter. If there are several, it names all of them, and then the one to begin
  with; they are handled in turn.
* A user has a patience (0 to 2), drawn from a hash of the prompt's parts. It influences how many preferences are
  important.
* Each reply is evaluated: which preferences it honours, what it asks, whether it does or proposes something.
* The user states the preferences that are asked for, at most two per line, or else the next important preference that
  nobody has named. A preference that the reply ignored is stated once more.
* The user corrects a reply about another matter, at most twice, and complains once about a reply that does nothing.
* Once something was done or proposed and nothing is left to say, the user accepts, and goes on or ends with TERMINATE.
  If nothing was done by then, or the turns are used up, the user says that they will handle it themselves.

The user's progress is recomputed from the replies of the conversation, so the user needs no memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from .understudy import Draws, MarkedRequest, mentions_any, sentences, split_values, understudy
from .words import Words, joined, match_template, say, tidy

FOLDER = Path(__file__).parent / "data" / "personalens"
USER = Words(FOLDER / "user.toml")
_INDEX = Words(FOLDER / "index.toml")
_SIGNALS = Words(FOLDER / "signals.toml")
_FILLER = re.compile(r"\b(?:preferences?|preferred|favou?rite|types?|desired|usual|choices?)\b", re.IGNORECASE)


@cache
def load_signal(name: str) -> re.Pattern[str]:
    """Return one of the patterns that classify lines (`signals.toml`)."""
    return re.compile(_SIGNALS.get(name), re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Facet:
    """A kind of preference: its name, and templates for stating it and asking for it."""

    noun: str
    names: str
    asked: str
    ask: Sequence[str]
    reveal: Sequence[str]
    one: bool = False

    def is_asked_in(self, questions: Iterable[str]) -> bool:
        """Return whether one of the questions asks for this preference."""
        return any(re.search(self.asked, question, re.IGNORECASE) for question in questions)


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of task: its opening, its plan, and its completion."""

    cue: str
    open: Sequence[str]
    plan: str
    done: str


@dataclass(frozen=True, eq=False)
class DomainWords:
    """A domain: the user's name for it (`matter`), the assistant's (`thing`), its kinds of task and its facets."""

    name: str
    matter: str
    thing: str
    kinds: tuple[Kind, ...]
    facets: tuple[Facet, ...]

    def kind(self, text: str) -> Kind:
        """Return the kind of task that a text asks for; the last one if none matches."""
        return next((kind for kind in self.kinds if re.search(kind.cue, text, re.IGNORECASE)), self.kinds[-1])

    def statement_in(self, sentence: str) -> tuple[Facet, str] | None:
        """Return the facet and the value that a sentence of the user's understudy states."""
        for lead in ("", *USER.get("leads"), *USER.get("again"), *USER.get("late")):
            if not sentence.lower().startswith(lead.lower()):
                continue
            rest = sentence[len(lead) :]
            for facet in self.facets:
                slots = match_template(facet.reveal, rest)
                if slots:
                    return facet, slots["v"]
            slots = match_template(USER.get("frames"), rest)
            if slots:
                known = (facet for facet in self.facets if facet.noun == slots["noun"])
                return next(known, build_plain_facet(slots["noun"])), slots["v"]
        return None


@lru_cache(maxsize=256)
def load_domain(name: str) -> DomainWords:
    """Return a domain by its name, ignoring case."""
    known = next((key for key in _INDEX.table if key.lower() == name.strip().lower()), "")
    if not known:
        topic = (name := name.strip()).lower()
        plain = Kind("", USER.get("help"), f"see to {topic}", f"{topic} is seen to")
        return DomainWords(name, topic, topic, (plain,), ())
    entry = _INDEX.get(known)
    table = Words(FOLDER / "domains" / f"{entry['file']}.toml").table
    kinds = tuple(Kind(kind.get("cue", ""), kind["open"], kind["plan"], kind["done"]) for kind in table["kinds"])
    facets = tuple(Facet(**facet) for facet in table["facets"])
    return DomainWords(known, entry["matter"], entry["thing"], kinds, facets)


@lru_cache(maxsize=1024)
def build_plain_facet(name: str) -> Facet:
    """Return a facet without a file, named after the preference."""
    noun = re.sub(r"\s+", " ", _FILLER.sub("", name)).strip().lower() or "that"
    noun = noun if noun.startswith("the ") else f"the {noun}"
    return Facet(noun=noun, names=re.escape(name), asked=re.escape(noun.removeprefix("the ")), ask=(), reveal=())


Wish = tuple[Facet, list[str]]


def list_wishes(domain: DomainWords, fields: Mapping[str, str], task: str) -> list[Wish]:
    """Return a person's preferences with their facets; those that the task mentions come first."""
    found: list[Wish] = []
    for name, text in fields.items():
        facet = next((each for each in domain.facets if re.search(each.names, name, re.IGNORECASE)), None)
        if facet is None or any(facet is other for other, _ in found):
            facet = build_plain_facet(name)
        if values := split_values(text):
            found.append((facet, values))
    touched = [wish for wish in found if re.search(wish[0].names, task, re.IGNORECASE)]
    return touched + [wish for wish in found if wish not in touched]


def read_affinities(request: MarkedRequest) -> list[tuple[DomainWords, dict[str, str]]]:
    """Return the domains whose preferences a request contains, with the preferences."""
    parts = [part for part in request.parts("affinities") if part.attributes.get("domain")]
    return [(load_domain(part.attributes["domain"]), part.fields) for part in parts]


@cache
def _compile_cues() -> dict[str, re.Pattern[str]]:
    return {
        name: re.compile(rf"(?<![\w-])(?:{entry['cues']})(?![\w-])", re.IGNORECASE)
        for name, entry in _INDEX.table.items()
    }


@lru_cache(maxsize=8192)
def count_topics(text: str) -> dict[str, int]:
    """Count the cues for each domain in a text; the result has only domains with a cue, the most frequent one first."""
    counts = {name: len({hit.lower() for hit in cues.findall(text)}) for name, cues in _compile_cues().items()}
    return dict(sorted(((name, count) for name, count in counts.items() if count), key=lambda pair: -pair[1]))


@lru_cache(maxsize=8192)
def find_topic(line: str, current: str) -> str:
    """Return the domain that a user's line is about, if the one before was about `current` (empty at first).

    The domain changes if the line announces it with a phrase of the user's understudy, or if the line asks for another
    domain and mentions nothing of the current one.
    """
    parts = sentences(line)
    for part in reversed(parts):
        slots = match_template((*USER.get("next"), *USER.get("strayed")), part) or match_template(
            _list_opening_sentences(), part
        )
        if slots:
            known = (name for name, entry in _INDEX.table.items() if entry["matter"] == slots["matter"])
            return next(known, "") or next(iter(count_topics(slots["matter"])), slots["matter"])
    if not current:
        return next(iter(count_topics(line)), "")
    for part in parts:
        found = count_topics(part) if load_signal("moves_on").search(part) else {}
        if found and current not in found and not load_domain(current).statement_in(part):
            return next(iter(found))
    return current


@cache
def _list_opening_sentences() -> tuple[str, ...]:
    return tuple(part for template in USER.get("begin") for part in sentences(template) if "{matter}" in part)


def is_off_topic(reply: str, domain: DomainWords) -> bool:
    """Return whether a reply is about another domain and unrelated to the given one."""
    if domain.name not in _INDEX.table:
        return False
    own = [text for kind in domain.kinds for text in (kind.plan, kind.done)]
    plain = re.sub(r"“[^”]*”|\"[^\"]*\"", " ", reply).lower()
    found = count_topics(plain)
    questions = [part for part in sentences(plain) if part.endswith("?")]
    if any(facet.is_asked_in(questions) for facet in domain.facets):
        return False
    other = any(count > 1 or _INDEX.get(name)["thing"] in plain for name, count in found.items())
    return other and domain.name not in found and domain.thing not in plain and not mentions_any(reply, own)


def reports_action(reply: str) -> bool:
    """Return whether a reply says that something was done."""
    return bool(load_signal("acted").search(reply))


@lru_cache(maxsize=8192)
def extract_relevant(reply: str, domain: DomainWords) -> str:
    """Return a reply without the sentences about other matters."""
    own = [text for kind in domain.kinds for text in (kind.plan, kind.done)]
    parts = sentences(reply)
    return " ".join(p for p in parts if domain.name in (found := count_topics(p)) or not found or mentions_any(p, own))


def makes_offer(reply: str) -> bool:
    """Return whether a reply asks for permission to do something ("Shall I ...?")."""
    return any(part.endswith("?") and load_signal("offers").search(part) for part in sentences(reply))


END_MARK = "TERMINATE"


@dataclass
class _Step:
    """The progress of one matter of the task."""

    domain: DomainWords
    wishes: list[Wish]
    important: int
    limit: int
    stated: list[Facet] = field(default_factory=list)
    honoured: set[Facet] = field(default_factory=set)
    turns: int = 0
    corrected: int = 0
    pressed: bool = False
    handled: bool = False
    accepted: bool = False

    def passed_over(self) -> list[Facet]:
        """Return the facets that the user has stated but no reply has used."""
        return [facet for facet in self.stated if facet not in self.honoured]

    def values(self, facet: Facet) -> list[str]:
        return next((values for known, values in self.wishes if known is facet), [])


@dataclass(frozen=True)
class _Move:
    """The user's next move: a reaction, preferences to state, a step to go on to, or the end."""

    step: _Step
    reaction: str  # a bank of user.toml, or empty
    tell: tuple[Facet, ...] = ()
    lead: str = "leads"
    following: _Step | None = None
    ends: bool = False


class _Plan:
    """The user's side of a dialogue."""

    def __init__(self, request: MarkedRequest) -> None:
        draws = request.lasting_draws("patience")
        self.patience = draws.number(0, 2)
        found = read_affinities(request) or [
            (load_domain(next(iter(count_topics(request.part("task"))), "Services")), {})
        ]
        single = len(found) == 1
        self.cap = 7 if single else 13
        self.steps: list[_Step] = []
        for domain, fields in found:
            listed = list_wishes(domain, fields, request.part("task"))
            important = 1 + self.patience + draws.chance(0.5) if single else 1 + draws.chance(0.25 + self.patience / 4)
            limit = 4 + self.patience if single else 2 if len(found) > 3 else 3
            self.steps.append(_Step(domain, listed, important, limit))
        self.at = 0

    def decide(self, reply: str, turn: int) -> _Move:
        """Return the move after a reply; the replies must be given in order."""
        now = self.steps[self.at]
        now.turns += 1
        fresh = {facet for facet, values in now.wishes if mentions_any(reply, values)} - now.honoured
        now.honoured |= fresh
        astray = not fresh and is_off_topic(reply, now.domain)
        if not astray:
            reply = extract_relevant(reply, now.domain)
            now.handled |= reports_action(reply) or makes_offer(reply) or bool(load_signal("proposed").search(reply))
        if turn >= self.cap:
            return _Move(now, "gives_up" if not now.handled else "fits", ends=True)
        if astray and now.corrected < 2:
            now.corrected += 1
            now.turns -= 1
            return _Move(now, "strayed")
        return (self._stay(now, reply, fresh) if now.turns < now.limit else None) or self._go_on(now, reply)

    def _stay(self, now: _Step, reply: str, fresh: set[Facet]) -> _Move | None:
        """Return a move within the current matter; `None` if nothing is left to say."""
        questions = [part for part in sentences(reply) if part.endswith("?") and not makes_offer(part)]
        questions = [part for part in questions if not load_signal("more").search(part)]
        requested = [facet for facet, _ in now.wishes if facet not in now.stated and facet.is_asked_in(questions)]
        acted = reports_action(reply)
        if not requested and not now.pressed and now.passed_over() and not fresh:
            now.pressed = True
            return _Move(now, "", (now.passed_over()[0],), "again")
        # Important facets that neither side has named.
        untold = [f for f, _ in now.wishes[: now.important] if f not in now.stated and f not in now.honoured]
        if tell := requested[:2] or untold[:1]:
            now.stated += tell
            now.pressed = False
            idle = questions and not (requested or acted)
            is_surprised = not fresh <= set(now.stated)
            reaction = "fits" if is_surprised else "no_preference" if idle else "partly" if now.handled else ""
            return _Move(now, reaction, tuple(tell), "late" if acted and not requested else "leads")
        if questions and not acted:
            return _Move(now, "no_preference")
        if not now.handled and not now.pressed:
            now.pressed = True
            return _Move(now, "ignored")
        if not now.accepted and not acted and makes_offer(reply):
            now.accepted = True
            return _Move(now, "accept") if self.at + 1 == len(self.steps) else None
        return None

    def _go_on(self, now: _Step, reply: str) -> _Move:
        """Return the move that starts the next matter or ends the conversation."""
        good = now.handled and len(now.passed_over()) <= len(now.honoured)
        reaction = ("accept" if makes_offer(reply) else "fits") if good else "partly" if now.handled else "gives_up"
        if self.at + 1 == len(self.steps):
            return _Move(now, reaction, ends=True)
        self.at += 1
        return _Move(now, reaction, following=self.steps[self.at])


@understudy("personalens", "user")
def write_user_line(request: MarkedRequest, draws: Draws) -> str:
    """Write the user's next line."""
    plan = _Plan(request)
    replies = request.said_by("assistant")
    if not replies:
        return _write_opening(request, plan, draws)
    move = [plan.decide(reply, turn) for turn, reply in enumerate(replies, start=1)][-1]
    tries = [_write_message(move, _choose_register(request), draws.fork(attempt)) for attempt in range(4)]
    text = choose_least_repetitive(tries, request.said_by("user"))
    return f"{text} {END_MARK}" if move.ends else text


def _write_opening(request: MarkedRequest, plan: _Plan, draws: Draws) -> str:
    first = plan.steps[0].domain
    values = [value for step in plan.steps for _, wish in step.wishes for value in wish]
    if len(plan.steps) == 1:
        banks = [first.kind(request.part("task")).open, first.kinds[-1].open, USER.get("help")]
    else:
        banks = [USER.get("begin"), USER.get("help")]
    slots = {"matter": first.matter, "all": joined([step.domain.matter for step in plan.steps])}
    greeting = draws.pick(USER.get("greeting"))
    texts = (tidy(greeting + say(bank, draws, slots)) for bank in banks)
    fitting = (each for each in texts if not mentions_any(each, values) and find_topic(each, "") == first.name)
    return next(fitting, None) or tidy(greeting + say(USER.get("help"), draws, slots))


def _write_message(move: _Move, register: str, draws: Draws) -> str:
    parts = [USER.say(move.reaction, draws) or USER.say(f"{move.reaction}.{register}", draws)] if move.reaction else []
    if move.reaction == "strayed":
        parts = [USER.say("strayed", draws, {"matter": move.step.domain.matter})]
    for at, facet in enumerate(move.tell):
        lead = "leads" if at else move.lead
        parts.append(_write_statement(move.step, facet, lead if parts or lead != "leads" else "", draws))
    if move.following:
        parts.append(USER.say("next", draws, {"matter": move.following.domain.matter}))
    if move.ends:
        parts.append(USER.say(f"ends.{register}", draws))
    return tidy(" ".join(parts) or USER.say(f"partly.{register}", draws))


def _write_statement(step: _Step, facet: Facet, lead: str, draws: Draws) -> str:
    values = [re.sub(r"\b(?:her|his|their)\b", "my", value) for value in step.values(facet)]
    most = 1 if facet.one or any("," in value or " and " in value for value in values) else 2
    slots = {"v": joined(values[:most]), "noun": facet.noun}
    clause = say(facet.reveal, draws, slots) or say(USER.get("frames"), draws, slots)
    before = draws.pick(USER.get(lead, ("",)))
    if before and not before.endswith(". ") and not clause.startswith(("I ", "I'")):
        clause = clause[0].lower() + clause[1:]
    return f"{before}{clause}."


def _choose_register(request: MarkedRequest) -> str:
    """Return the person's register of language, chosen by proficiency in English and age."""
    about = request.fields("demographics")
    if re.search(r"beginner|basic|intermediate|limited", about.get("english_proficiency", ""), re.IGNORECASE):
        return "simple"
    age = int((re.findall(r"\d+", about.get("age", "")) or ["40"])[0])
    return "casual" if age < 35 else "polite" if age >= 55 else "plain"


def choose_least_repetitive(tries: list[str], own: list[str]) -> str:
    """Return the line that repeats the fewest sentences."""
    before = {part for line in own for part in sentences(line)}
    return min(tries, key=lambda text: (text in own, sum(part in before for part in sentences(text))))


def find_preferences(lines: Iterable[str], domain: DomainWords) -> list[tuple[Facet, str]]:
    """Return the preferences stated in lines of the user's understudy, in order."""
    found = (domain.statement_in(part) for line in lines for part in sentences(line))
    return [pair for pair in found if pair]

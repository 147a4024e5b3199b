"""The user's first line: the intent in the person's own words, without any of their preferences."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .circumstances import detail_line
from .declarative import as_request, is_declarative, spoken, told
from .domains import domain_named, facets_of
from .draws import Draws
from .grammar import render_first
from .lazy import Lazy
from .matching import mentions_any
from .model import Slots
from .prose import joined, sentence, tidy, uncapitalised
from .tags import Request
from .topics import topic_of_line
from .userphrases import CLARIFY, PLAINLY

# From here on an intent only lists what to consider; people do not say that aloud.
_CONSIDERATIONS = Lazy(
    r"(?:,|\s)\s*(?:(?:all )?(?:based on|tailored to|according to|considering|taking into account|while "
    r"(?:factoring|considering|"
    r"accounting|still)|factoring|incorporating|prioriti[sz]ing|with a focus on|aligned? with|aligning with|"
    r"that (?:best )?(?:match|align|"
    r"suit|fit|offer|meet|reflect|cater)\w*|suitable for your|within your|from your (?:preferred|"
    r"favou?rite)|in your (?:preferred|"
    r"desired)|at your (?:preferred|favou?rite|usual)|of your (?:preferred|favou?rite)|with your "
    r"(?:preferred|favou?rite)|for your "
    r"(?:preferred|favou?rite)|to your (?:preferred|favou?rite|tastes?)|by finding|by getting|by exploring|"
    r"by coordinating|with details|"
    r"using the most|that can accommodate|in line with|and make it|with personalized|with in-depth|"
    r"including|potentially|on your preferred|your "
    r"preferred|your favou?rite|you (?:usually|typically) (?:like|enjoy|prefer)))\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_PLAINER = (
    (r"\bpurchase\b", "buy"),
    (r"\bdiscover\b", "find"),
    (r"\blocate\b", "find"),
    (r"\bobtain\b", "get"),
    (r"\butili[sz]e\b", "use"),
    (r"\breceive\b", "get"),
    (r"\bapartment-style accommodations?\b", "apartments"),
    (r"\baccommodations?\b", "a place to stay"),
    (r"\bmodify\b", "change"),
    (r"\brecommend\b", "find me"),
    (r"\bvarious\b", "some"),
    (r"\bupcoming ", ""),
    (r"\bhighly[- ]rated\b", "good"),
    (r"\btop-rated\b", "good"),
    (r"\bfind recommendations for\b", "find"),
    (r"\bget recommendations (?:for|on)\b", "find"),
    (r"\bfind a restaurant recommendation for\b", "find a restaurant for"),
    (r"\bcurrent location\b", "location"),
    (r"\bexplore\b", "look at"),
    (r"\bpersonalized\b", "good"),
    (r"\b(?:rental car|car|movie|hotel) recommendations\b", lambda found: found.group().split(" rec")[0] + " ideas"),
    (r"\bnew book recommendations\b", "something new to read"),
    (r"\b(restaurant|movie|film|book|game|hotel) recommendations? for\b", r"\1 for"),
    (
        r"\b(restaurant|product|hotel) options?\b",
        lambda found: found.group(1) + ("s" if found.group().endswith("s") else ""),
    ),
    (r"\bjourney options\b", "journeys"),
    (r"\bflight options\b", "flights"),
    (r"\bdesired (?:travel )?", ""),
    (r"\bin the wild\b", ""),
)
_LEADS = {
    "casual": (
        "hey, can you help me {core}",
        "hi, I want to {core}",
        "hey, I need to {core}",
        "could you quickly help me {core}",
        "hi there, I'm trying to {core}",
        "so, I'd like to {core}",
        "hey, would you help me {core}",
    ),
    "polite": (
        "hello, I'd like to {core}, please",
        "good {part}, could you help me {core}",
        "hello, I would like to {core}",
        "good {part}, I'd like some help to {core}",
        "could you please help me {core}",
    ),
    "plain": (
        "I'd like to {core}",
        "can you help me {core}",
        "I want to {core}",
        "I need to {core}",
        "could you help me {core}",
        "I'm hoping to {core}",
        "I was wondering if you could help me {core}",
    ),
    "simple": ("I want to {core}", "please help me {core}", "I need to {core}", "can you help me {core}"),
}
_REMARKS = (
    (
        "evening",
        ("I finally have a quiet moment.", "I've got half an hour to myself.", "No rush, I've got the evening."),
    ),
    (
        "evening",
        (
            "It was on my mind all day.",
            "It's been a long day, so I'd like to get it off my mind.",
            "I'm winding down and thought I'd get this sorted.",
        ),
    ),
    (
        "morning",
        (
            "I've got a little time before the day gets going.",
            "I'd like to get it done over my coffee.",
            "I'm trying to get it sorted early.",
        ),
    ),
    ("afternoon", ("I've got a free hour this afternoon.", "I thought I'd do it before the evening rush.")),
    ("noisy", ("It's loud around me, so short answers are fine.",)),
    ("smartphone", ("I'm on my phone, so keep it short.", "I'm on my phone, just so you know.")),
    ("commut", ("I'm on the move just now.",)),
    (
        "weekend",
        (
            "I'd like to have it settled for the weekend.",
            "It would be good to have that off the list before Sunday.",
            "The weekend is the only time I get round to such things.",
        ),
    ),
)


def register(request: Request) -> str:
    """Tell how the person talks: simple, polite, casual or plain; from their English and their age."""
    people = request.demographics
    proficiency = people.get("english_proficiency", people.get("english proficiency", "")).lower()
    if re.search(r"beginner|basic|elementary|limited|low", proficiency):
        return "simple"
    age = re.search(r"\d+", people.get("age", ""))
    years = int(age.group()) if age else 40
    return "casual" if years < 35 else "polite" if years >= 55 else "plain"


def core_of(intent: str) -> str:
    """Turn an intent ("Set an alarm at your ...") into what the person would say; empty if it cannot be done."""
    text = intent.strip().split("\n")[0].rstrip(". ")
    text = re.sub(r"\([^)]*\)|\[[^\]]*\]", "", text)
    text = re.sub(r"^as someone new to the area,\s*", "", text, flags=re.IGNORECASE)
    text = re.split(r"(?<=[a-z])[.;]\s", text)[0]
    cut = _CONSIDERATIONS.sub("", text)
    if cut != text:
        text = re.sub(r"(?:\s+(?:for|to|with|and|of|in|by|on|a|the|news|related))+\s*$", "", cut.strip(" ,")).strip(
            " ,"
        )
    for pattern, plain in _PLAINER:
        text = re.sub(pattern, plain, text, flags=re.IGNORECASE)
    text = re.sub(r"\b(help|let|give|tell|remind|suit|interest)(s?) you\b", r"\1\2 me", text)
    text = re.sub(r"\byourself\b", "myself", text)
    text = re.sub(r"\byour\b", "my", re.sub(r"\byou(?:'re| are)\b", "I'm", text))
    text = re.sub(r"\b(for|to|with|from|about) you\b", r"\1 me", re.sub(r"\byou've\b", "I've", text))
    text = re.sub(r"\byou\b", "I", text)
    text = re.sub(r"\s+", " ", text).strip(" ,")
    words = text.split()
    if len(words) > 17 and "," in text:
        text = text.split(",")[0]
    return uncapitalised(text) if 3 <= len(text.split()) <= 18 else ""


def _part_of_day(request: Request) -> str:
    part = request.situation.get("time of day", "").lower()
    return next((name for name in ("morning", "afternoon", "evening") if name in part), "day")


def _remark(request: Request, draws: Draws) -> str:
    around = " ".join([*request.situation.values()]).lower()
    if "saturday" in around or "friday" in around:
        around += " weekend"
    fitting = [draws.pick(lines) for cue, lines in _REMARKS if cue in around]
    return draws.pick(fitting) if fitting else ""


def _main_clause(request: Request, draws: Draws) -> str:
    names = list(request.affinities) or ["Services"]
    core = core_of(request.task)
    style = register(request)
    if len(names) == 1 and (not core or draws.chance(0.2)):
        return render_first(domain_named(names[0]).opening, {}, draws)
    if not core:
        core = f"sort out a few things: {joined([domain_named(name).thing[0] for name in names])}"
    return render_first(_LEADS[style], {"core": core, "part": _part_of_day(request)}, draws)


def _tells(task: str) -> bool:
    """Tell whether the intent is a story or a plain request, not a list of kinds of preference to consider."""
    lists = re.search(
        r"\bprefer|\bfavou?rite|\bmatch|\balign|\btailored|\binterests\b|\bconsidering\b", task, re.IGNORECASE
    )
    return is_declarative(task) or (not lists and task.count(".") > 0 and len(task.split()) > 12)


def _covered(request: Request, name: str) -> bool:
    """Tell whether a preference takes the place of what would be invented, such as a place on the person's list."""
    keys = {facet.key for facet, _ in facets_of(name, request.affinities.get(name, {}))}
    return bool(keys & {"list", "service"})


_ASKS = {
    "suggest": ("could you suggest {said}?", "I'm looking for {said}.", "I'd be glad of {said}."),
    "please": ("please {said}.", "could you {said}?"),
    "have": ("I'd like to {said}.", "could you {said}?", "I need to {said}."),
    "do": ("could you {said}?", "I'd like to {said}.", "can you help me {said}?", "would you {said}?"),
}


def _telling(request: Request, draws: Draws) -> list[str]:
    """Say what the matter is, then what is wanted."""
    greeting = {"casual": ("Hey, ", "Hi, ", "So, ", ""), "polite": ("Hello, ", "Good {part}, ", "")}
    said: list[str] = []
    for kind, text in told(request.task):
        if kind == "tell":
            said.append(spoken(kind, text))
            continue
        lead, rest = as_request(text)
        rest = uncapitalised(rest)
        if "could you" in " ".join(said):
            lead = "have"
        said.append(sentence(render_first(_ASKS[lead], {"said": rest}, draws)))
    hello = draws.pick(greeting.get(register(request), ("", "Hi, ", "Hello, "))).format(part=_part_of_day(request))
    if said and hello and hello[-5:] != "day, ":
        said[0] = hello + (said[0] if said[0].startswith(("I ", "I'")) else uncapitalised(said[0]))
    return said


def named_plainly(templates: Sequence[str], name: str, tastes: list[str], draws: Draws) -> str:
    """Fill in the domain so that it cannot be taken for another, and without naming any taste."""
    options = [(line, thing) for line in templates for thing in PLAINLY.get(name, (name.lower(),))]
    for line, thing in draws.shuffled(options):
        text = render_first((line,), {"thing": thing}, draws)
        if topic_of_line(text, first=False) == name and not mentions_any(text, tastes):
            return text
    return render_first(templates, {"thing": PLAINLY.get(name, (name.lower(),))[0]}, draws)


def _clear(text: str, name: str, tastes: list[str], draws: Draws) -> str:
    """Add what it is about when the assistant could not tell from the text."""
    if not name or topic_of_line(text) == name:
        return text
    return f"{text} {named_plainly(CLARIFY, name, tastes, draws)}"


def opening(request: Request, facts: Slots, talkative: float, draws: Draws) -> str:
    """Write the first line; it holds no affinity value and never ends the dialogue."""
    names = list(request.affinities)
    tastes = [value for domain in request.affinities.values() for values in domain.values() for value in values]
    for attempt in range(6):
        stream = draws.fork("opening", attempt)
        if _tells(request.task) and attempt < 4:
            parts = _telling(request, stream)
            if len(names) > 1:
                parts.append(first_step(names[0], stream))
            text = _clear(tidy(" ".join(parts)), (names or [""])[0], tastes, stream)
            if parts and not mentions_any(text, tastes):
                return text
            continue
        clause = _main_clause(request, stream)
        asks = bool(re.match(r"(?:\w+, |good \w+, |hi there, )?(?:can|could|would) you", clause, re.IGNORECASE))
        parts = [sentence(clause, "?" if asks else ".")]
        if names and stream.chance(0.75) and not _covered(request, names[0]):
            parts.append(sentence(detail_line(names[0], facts, request.task, stream)))
        if len(names) > 1:
            parts = [parts[0], first_step(names[0], stream)]
        elif stream.chance(talkative * 0.7):
            parts.append(_remark(request, stream))
        text = tidy(" ".join(part for part in parts if part.strip(".")))
        text = _clear(text, (names or [""])[0], tastes, stream)
        if not mentions_any(text, tastes):
            return text
    thing = domain_named(names[0]).thing[0] if names else "something"
    neutral = tidy(draws.pick(["Hi, I could use some help.", "Hello, could you help me with something?"]))
    candidate = f"Hi, could you help me with {thing}?"
    if len(names) > 1:
        candidate = draws.pick(
            [
                "Hi, I've got a few things to arrange, and {} comes first.",
                "Hello, there's a bit to organise, starting with {}.",
                "I have several things to sort out. Could we start with {}?",
            ]
        ).format(thing)
    return candidate if not mentions_any(candidate, tastes) else neutral


def first_step(domain: str, draws: Draws) -> str:
    """Say where to begin in a request that spans several domains."""
    thing = draws.pick(domain_named(domain).thing)
    return draws.pick([f"Let's start with {thing}.", f"Could we begin with {thing}?", f"First up would be {thing}."])

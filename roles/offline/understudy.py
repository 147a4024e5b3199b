"""The registry of understudies, one per role; the requests that they get in parsed form; and reproducible draws."""

from __future__ import annotations

import hashlib
import importlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from random import Random
from typing import Any, TypeVar

from dialoom.prompts import ToolDefinition

T = TypeVar("T")


class Draws:
    """A stream of random choices seeded by the SHA-256 of its parts: equal parts give equal choices on any machine."""

    def __init__(self, *parts: object) -> None:
        """Create a stream seeded with the string forms of `parts`."""
        self._parts = parts
        text = "\x1f".join(str(part) for part in parts)
        self._random = Random(int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()))

    def fork(self, *parts: object) -> Draws:
        """Return an independent stream, which does not depend on earlier draws from this one."""
        return Draws(*self._parts, *parts)

    def pick(self, options: Sequence[T]) -> T:
        """Return one of `options`, which must not be empty."""
        return options[self._random.randrange(len(options))]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """Return all `options` in random order."""
        return self._random.sample(list(options), len(options))

    def chance(self, probability: float) -> bool:
        """Return `True` with the given probability, 0 to 1."""
        return self._random.random() < probability

    def number(self, low: int, high: int) -> int:
        """Return a random whole number from `low` to `high`, both included."""
        return self._random.randint(low, high)


_BLOCK = re.compile(r"<([a-z][\w-]*)\b([^<>]*)>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_INSTRUCTION = re.compile(r"<instruction\b[^<>]*>(.*?)(?:</instruction\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))""")
_KEY = re.compile(r'JSON object of[^"]*"(\w+)"')
_UNSEEDED_ROLES = ("assistant", "answerer")
"""Roles whose names do not seed the draws."""

_UNINFORMATIVE = re.compile(
    r"^\W*(?:n/?a|none|null|nil|unknown|redacted|nothing yet|no preferences?|not (?:applicable|specified|available)|"
    r"any)?\W*$",
    re.IGNORECASE,
)


def is_informative(value: str) -> bool:
    """Return whether a value is informative.

    Empty values, "N/A", "[Redacted]", "Nothing yet.", "no preference" and the like are not.
    """
    return not _UNINFORMATIVE.match(value)


def split_values(text: str) -> list[str]:
    """Split a list `a; b; c` into its distinct informative values."""
    found = (re.sub(r"^[\s\[\"'•*-]+|[\s\]\"';.,]+$", "", value) for value in text.split(";"))
    return list(dict.fromkeys(value for value in found if value and is_informative(value)))


@dataclass(frozen=True)
class SpokenLine:
    """One line of a conversation; `speaker` is the role that spoke, whichever role is called.

    A tool's output is a line with the speaker `tool`. `calls` are the tool calls of a line, each as the name and the
    arguments as JSON.
    """

    speaker: str
    text: str
    calls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Part:
    """A marked part of a prompt: its tag and attributes (names in lower case) and the text between the tags."""

    tag: str
    attributes: Mapping[str, str]
    body: str

    @cached_property
    def fields(self) -> dict[str, str]:
        """The values of the part's `key: value` lines, with keys in lower case and without uninformative values."""
        parted = (line.partition(":") for line in self.body.splitlines())
        known = ((key, value) for key, colon, value in parted if colon and key.strip() and is_informative(value))
        return {key.strip(" \t-*•").lower(): value.strip() for key, value in known}


@dataclass(frozen=True)
class MarkedRequest:
    """The content of a request, as shown to the model, in parsed form.

    Attributes:
        prompt: The prompt's id.
        role: The role that must answer.
        model: "attentive" or "generic".
        seed: Varies the wording.
        system: The text of the system messages.
        shown: The prompt's parts, in order.
        lines: The conversation, oldest line first.
        inputs: The prompt's inputs, for values that its text does not mark, such as a count.
        tools: The tools offered.
    """

    prompt: str
    role: str
    model: str = "attentive"
    seed: int | None = None
    system: str = ""
    shown: tuple[Part, ...] = ()
    lines: tuple[SpokenLine, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[ToolDefinition, ...] = ()

    def __contains__(self, tag: str) -> bool:
        return any(part.tag == tag for part in self.shown)

    def parts(self, tag: str) -> list[Part]:
        """Return every part with this tag."""
        return [part for part in self.shown if part.tag == tag]

    def part(self, tag: str) -> str:
        """Return the text of the first part with this tag; empty if there is none or if it is uninformative."""
        body = next((part.body for part in self.parts(tag)), "")
        return body if is_informative(body) else ""

    def fields(self, tag: str) -> dict[str, str]:
        """Return the `key: value` lines of the first part with this tag, keys in lower case."""
        return next((part.fields for part in self.parts(tag)), {})

    @property
    def reply_key(self) -> str:
        """The first key of the JSON object that the instruction asks for; empty if it asks for none."""
        found = _KEY.search(self.part("instruction"))
        return found[1] if found else ""

    @property
    def is_repair(self) -> bool:
        """Return whether the request reports a fault in an earlier reply and the model is one that corrects faults."""
        return "wrong" in self and self.model != "generic"

    def said_by(self, speaker: str) -> list[str]:
        """Return the lines of one speaker, oldest first."""
        return [line.text for line in self.lines if line.speaker == speaker]

    def draws(self, **named: str) -> Draws:
        """Return draws seeded by everything in the request and by the given named values.

        In the seed, the role and the named values come first, and whole numbers among the inputs come before the
        instruction.
        """
        first = {**self._first, **named}
        shown = [(part.tag, part.body) for part in self.shown]
        at = next((at for at, (tag, _) in enumerate(shown) if tag == "instruction"), len(shown))
        shown[at:at] = [(name, str(value)) for name, value in self.inputs.items() if type(value) is int]
        system = "\n".join([*(f"<{tag}>{text}</{tag}>" for tag, text in first.items()), self.system])
        lines = [(line.speaker, line.text, *line.calls) for line in self.lines]
        return Draws(self.model, self.role, system, [*first.items(), *shown], lines, self.seed)

    def lasting_draws(self, *purpose: object) -> Draws:
        """Return draws that stay the same throughout a conversation.

        Their seed contains neither the conversation nor the instruction.
        """
        shown = [(part.tag, part.body) for part in self.shown if part.tag not in ("conversation", "instruction")]
        return Draws("lasting", self.role, [*self._first.items(), *shown], *purpose)

    @property
    def _first(self) -> dict[str, str]:
        return {} if self.role in _UNSEEDED_ROLES else {"role": self.role}


def read_request(
    messages: Sequence[Mapping[str, Any]],
    prompt: str,
    role: str,
    *,
    model: str = "attentive",
    seed: int | None = None,
    inputs: Mapping[str, Any] | None = None,
    tools: Sequence[ToolDefinition] = (),
) -> MarkedRequest:
    """Parse a chat request into the prompt's marked parts and the conversation; see `play` for the arguments."""
    texts = [(each["role"], each.get("content") or "", _parse_calls(each)) for each in messages]
    own = [text for kind, text, _ in texts if kind in ("system", "developer")]
    turns = [each for each in texts if each[0] in ("user", "assistant", "tool")]
    shown = [part for text in own for part in _parse_parts(text)]
    role = role.lower()
    if role != "assistant":
        if turns and _parse_parts(_INSTRUCTION.sub("", turns[0][1])):
            shown += _parse_parts(turns[0][1])
            turns = turns[1:]
        asked = [found[1] for _, text, _ in turns for found in _INSTRUCTION.finditer(text)]
        shown += (each for text in asked for each in (Part("instruction", {}, text.strip()), *_parse_parts(text)))
        turns = [(kind, _INSTRUCTION.sub("", text), calls) for kind, text, calls in turns]
    swap = {"user": "assistant", "assistant": "user"} if role == "user" else {}
    spoken = tuple(
        SpokenLine(swap.get(kind, kind), text.strip(), calls) for kind, text, calls in turns if text.strip() or calls
    )
    if read := next((part for part in shown if part.tag == "conversation"), None):
        blocks = _BLOCK.findall(read.body)
        spoken = tuple(SpokenLine(tag.lower(), text.strip()) for tag, _, text in blocks if text.strip())
    return MarkedRequest(
        prompt, role, model, seed, "\n".join(own), tuple(shown), spoken, inputs=inputs or {}, tools=tuple(tools)
    )


def _parse_calls(message: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    called = (each["function"] for each in message.get("tool_calls") or ())
    return tuple((each["name"], each["arguments"]) for each in called)


@lru_cache(maxsize=512)
def _parse_parts(text: str) -> tuple[Part, ...]:
    """Return the parts of a prompt; parts inside an instruction are returned separately."""
    found: list[Part] = []
    for tag, attributes, body in _BLOCK.findall(text):
        named = {name.lower(): one or two or bare for name, one, two, bare in _ATTRIBUTE.findall(attributes)}
        found.append(Part(tag.lower(), named, body.strip()))
        if tag.lower() == "instruction":
            found += _parse_parts(body)
    return tuple(found)


_WORD = re.compile(r"\d[\d:.,+½]*\w*|[^\W\d_]+(?:['’ʻ&][^\W\d_]+)*")
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b(?:St|Mr|Dr|vs)\.)[\"”]?\s+")
_ENDINGS = (("ings", 3), ("ing", 3), ("ied", 2), ("ies", 2), ("ers", 4), ("ed", 3), ("ly", 4), ("s", 3))
_STOP = frozenset(
    "a an the of and or in on at to for with by from per my your his her their our only one preference preferred type "
    "style sound tone music genre place time times".split()
)


def sentences(text: str) -> list[str]:
    """Split prose into sentences; initials and usual abbreviations do not end one."""
    return [part.strip() for part in _SENTENCE.split(text.strip()) if part.strip()]


def normalize(text: str) -> str:
    """Return a text in lower case without accents and typographic apostrophes."""
    spelled = unicodedata.normalize("NFKD", text.lower().replace("’", "'"))
    return "".join(letter for letter in spelled if not unicodedata.combining(letter))


def stem(word: str) -> str:
    """Return the stem of a word in lower case: `bake`, `bakes` and `baking` have the same stem."""
    for ending, left in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= left and not word.endswith(("ss", "us")):
            word = word[: -len(ending)] + ("y" if ending in ("ied", "ies") else "")
            break
    word = word[:-1] if word.endswith("e") and len(word) > 3 else word
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > 3 else word


@lru_cache(maxsize=16384)
def stem_words(text: str) -> tuple[str, ...]:
    """Return the stems of a text's words, in lower case, without accents."""
    small = re.sub(r"\b0?(\d{1,2}:\d\d)\s*([ap])\.?m\b\.?", r"\1\2m", normalize(text))
    return tuple(stem(word.rstrip(".,:")) for word in _WORD.findall(small))


@lru_cache(maxsize=16384)
def content_words(text: str) -> frozenset[str]:
    """Return the stems of content words: no articles, prepositions, or words common to all values."""
    return frozenset(word for word in stem_words(text) if word not in _STOP)


@lru_cache(maxsize=16384)
def _words_by_sentence(text: str) -> tuple[frozenset[str], ...]:
    return tuple(map(content_words, sentences(text)))


def mentions(text: str, value: str) -> bool:
    """Return whether `text` mentions `value`: all content words of the value occur in one sentence."""
    needed = content_words(value)
    if not needed:
        return bool(stem_words(value)) and set(stem_words(value)) <= set(stem_words(text))
    return any(needed <= words for words in _words_by_sentence(text))


def mentions_any(text: str, values: Iterable[str]) -> bool:
    """Return whether `text` mentions at least one of `values`."""
    return any(mentions(text, value) for value in values)


def quote(text: str, most: int = 14) -> str:
    """Quote the beginning of a text."""
    words = text.split()
    return '"' + " ".join(words[:most]).rstrip(".,;:") + ('..."' if len(words) > most else '"')


@dataclass(frozen=True)
class ToolTurn:
    """An understudy's reply to a request with tools: text, and tool calls as pairs of a name and JSON arguments."""

    words: str = ""
    calls: tuple[tuple[str, str], ...] = ()


Understudy = Callable[[MarkedRequest, Draws], str | Mapping[str, Any] | ToolTurn]
_BUILT_IN = ("personalens_assistant", "personalens_judges", "aloe", "prefeval", "people", "apollo")
_PACKAGE = __name__.rpartition(".")[0]


class UnderstudyError(ValueError):
    """An understudy cannot answer because of an error in the system's own module or data file."""


class NoUnderstudyError(UnderstudyError):
    """A request addresses a role that has no understudy."""


class SilentUnderstudyError(UnderstudyError):
    """An understudy found no text, because its data file lacks a bank or slot that its code uses."""


_registered: dict[tuple[str, str, frozenset[str]], Understudy] = {}
"""The understudies by system, role and marks."""


def understudy(system: str, role: str, *, marks: Sequence[str] = ()) -> Callable[[Understudy], Understudy]:
    """Register the decorated function as the understudy of a role in one system.

    Args:
        system: The first part of the ids of the system's prompts: `lesson` for `lesson/tutor`.
        role: The role of these prompts.
        marks: Tags of parts that a request must contain. If several functions match, the one with the most marks is
            used. If none matches, the closest is used, so that a prompt with missing parts is answered, too.

    A function takes the `MarkedRequest` and `Draws` seeded by its content, and returns the reply: a text, a `ToolTurn`,
    or a mapping, which is sent as JSON. Registering the same role and marks again replaces the earlier function, so a
    module can be loaded twice.
    """

    def register(function: Understudy) -> Understudy:
        _registered[system, role.lower(), frozenset(marks)] = function
        return function

    return register


def plays(system: str, role: str) -> bool:
    """Return whether any understudy plays a role of a system."""
    return role.lower() in _find_roles(system)


def find_understudy(request: MarkedRequest) -> Understudy:
    """Return the function that plays a request's role.

    Raises:
        NoUnderstudyError: If there is none.
    """
    system = request.prompt.partition("/")[0]
    role, known = request.role, _find_roles(system)
    if role not in known:
        played = ", ".join(sorted(known)) or "none of its roles"
        raise NoUnderstudyError(
            f"no understudy plays the role {role!r} of {system!r}: give it a model, or register a function for it with "
            f"@understudy({system!r}, {role!r}); understudies play {played}; offline/placeholder plays any role"
        )

    def fit(marks: frozenset[str]) -> tuple[bool, int]:
        present = sum(mark in request for mark in marks)
        return present == len(marks), present

    return _registered[system, role, max(known[role], key=fit)]


def _find_roles(system: str) -> dict[str, list[frozenset[str]]]:
    """Return the roles of a system that have understudies, each with the marks of its understudies."""
    _load_built_in()
    own = [(role, marks) for known, role, marks in _registered if known == system]
    return {role: [marks for each, marks in own if each == role] for role, _ in own}


@cache
def _load_built_in() -> None:
    for name in _BUILT_IN:
        importlib.import_module(f"{_PACKAGE}.{name}")

"""Requests as understudies read them: the parts that prompts mark with tags, and the conversation so far.

A part is `<tag name="x">text</tag>`. Only two tags have a meaning here: `conversation` (lines of the form
`<speaker>text</speaker>`) and `instruction` (the current task; its text is not speech). Only the prompt's own text is
parsed for parts: system messages, the first message after them, and instructions. A tag within a line of the
conversation is speech, and for the role `assistant` everything except the system messages is speech.

The role, the prompt's id and the prompt's inputs come with the request, not in its messages.

Parsing is lenient, since prompts can be overridden: parts may be missing, unknown or in any order. Nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from dialoom.prompts import ToolDefinition

from .draws import Draws

_BLOCK = re.compile(r"<([a-z][\w-]*)\b([^<>]*)>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_INSTRUCTION = re.compile(r"<instruction\b[^<>]*>(.*?)(?:</instruction\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))""")
_UNNAMED = ("assistant", "answerer")
"""Roles that do not seed the draws."""

_NOTHING = re.compile(
    r"^\W*(?:n/?a|none|null|nil|unknown|redacted|nothing yet|no preferences?|not (?:applicable|specified|available)|"
    r"any)?\W*$",
    re.IGNORECASE,
)


def usable(value: str) -> bool:
    """Return whether a value is informative: not empty, "N/A", "[Redacted]", "Nothing yet." or "no preference"."""
    return not _NOTHING.match(value)


def values_of(text: str) -> list[str]:
    """Split a list `a; b; c` into its distinct informative values."""
    found = (re.sub(r"^[\s\[\"'•*-]+|[\s\]\"';.,]+$", "", value) for value in text.split(";"))
    return list(dict.fromkeys(value for value in found if value and usable(value)))


@dataclass(frozen=True)
class SpokenLine:
    """One line of a conversation; `speaker` is the speaker's role as seen by an outsider, whichever role is called.

    A tool's output is a line by `tool`, and `calls` are a line's tool calls: name and arguments' JSON of each.
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
        """Its lines `key: value`: keys in lower case; uninformative values are left out."""
        found = {}
        for line in self.body.splitlines():
            key, colon, value = line.partition(":")
            if colon and key.strip() and usable(value):
                found[key.strip(" \t-*•").lower()] = value.strip()
        return found


@dataclass(frozen=True)
class MarkedRequest:
    """The content of a request as shown to the model.

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
    _by_tag: dict[str, list[Part]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for part in self.shown:
            self._by_tag.setdefault(part.tag, []).append(part)

    def __contains__(self, tag: str) -> bool:
        return tag in self._by_tag

    def parts(self, tag: str) -> list[Part]:
        """Return every part with this tag."""
        return self._by_tag.get(tag, [])

    def part(self, tag: str) -> str:
        """Return the text of the first part with this tag; empty if there is none or if it is uninformative."""
        body = next((part.body for part in self.parts(tag)), "")
        return body if usable(body) else ""

    def fields(self, tag: str) -> dict[str, str]:
        """Return the `key: value` lines of the first part with this tag, keys in lower case."""
        return next((part.fields for part in self.parts(tag)), {})

    def said_by(self, speaker: str) -> list[str]:
        """Return the lines of one speaker, oldest first."""
        return [line.text for line in self.lines if line.speaker == speaker]

    def draws(self, **named: str) -> Draws:
        """Return draws seeded by everything in the request, and by the named values.

        The role and the named values count as parts before the others, whole numbers among the inputs as parts before
        the
        instruction.
        """
        first = {**self._first, **named}
        shown = [(part.tag, part.body) for part in self.shown]
        at = next((at for at, (tag, _) in enumerate(shown) if tag == "instruction"), len(shown))
        shown[at:at] = [(name, str(value)) for name, value in self.inputs.items() if type(value) is int]
        system = "\n".join([*(f"<{tag}>{text}</{tag}>" for tag, text in first.items()), self.system])
        said = [(line.speaker, line.text, *line.calls) for line in self.lines]
        return Draws(self.model, self.role, system, [*first.items(), *shown], said, self.seed)

    def lasting_draws(self, *purpose: object) -> Draws:
        """Return draws that stay the same throughout a conversation: seeded by the role and its parts."""
        shown = [(part.tag, part.body) for part in self.shown if part.tag not in ("conversation", "instruction")]
        return Draws("lasting", self.role, [*self._first.items(), *shown], *purpose)

    @property
    def _first(self) -> dict[str, str]:
        return {} if self.role in _UNNAMED else {"role": self.role}


def read_request(
    messages: Sequence[Mapping[str, object]],
    prompt: str,
    role: str,
    *,
    model: str = "attentive",
    seed: int | None = None,
    inputs: Mapping[str, Any] | None = None,
    tools: Sequence[ToolDefinition] = (),
) -> MarkedRequest:
    """Parse the parts and the conversation of a chat request; see `play` for the arguments."""
    texts = [(str(message.get("role", "")), _content(message), _calls(message)) for message in messages]
    own = [text for kind, text, _ in texts if kind in ("system", "developer")]
    said = [each for each in texts if each[0] in ("user", "assistant", "tool")]
    shown = [part for text in own for part in _parts(text)]
    role = role.lower()
    if role != "assistant":
        if said and _parts(_INSTRUCTION.sub("", said[0][1])):
            shown += _parts(said[0][1])
            said = said[1:]
        said = [(kind, _without_instructions(text, shown), calls) for kind, text, calls in said]
    swap = {"user": "assistant", "assistant": "user"} if role == "user" else {}
    heard = tuple(
        SpokenLine(swap.get(kind, kind), text.strip(), calls) for kind, text, calls in said if text.strip() or calls
    )
    read = next((part for part in shown if part.tag == "conversation"), None)
    lines = tuple(_lines(read.body)) if read else heard
    return MarkedRequest(
        prompt, role, model, seed, "\n".join(own), tuple(shown), lines, inputs=inputs or {}, tools=tuple(tools)
    )


def _content(message: Mapping[str, object]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # the content of OpenAI messages may be a list of parts
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""


def _calls(message: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    given = message.get("tool_calls")
    called = [each.get("function") for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    return tuple((str(each.get("name")), str(each.get("arguments"))) for each in called if isinstance(each, dict))


@lru_cache(maxsize=512)
def _parts(text: str) -> tuple[Part, ...]:
    """Return the parts of a prompt; those inside an instruction are parts of their own."""
    found: list[Part] = []
    for tag, attributes, body in _BLOCK.findall(text):
        named = {name.lower(): one or two or bare for name, one, two, bare in _ATTRIBUTE.findall(attributes)}
        found.append(Part(tag.lower(), named, body.strip()))
        if tag.lower() == "instruction":
            found += _parts(body)
    return tuple(found)


def _without_instructions(text: str, shown: list[Part]) -> str:
    """Return a line's text without instructions, which are added to `shown` with their parts."""
    for found in _INSTRUCTION.finditer(text):
        shown += (Part("instruction", {}, found.group(1).strip()), *_parts(found.group(1)))
    return _INSTRUCTION.sub("", text)


def _lines(body: str) -> list[SpokenLine]:
    return [SpokenLine(tag.lower(), text.strip()) for tag, _, text in _BLOCK.findall(body) if text.strip()]

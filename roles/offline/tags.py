"""Read the marked parts of a request: who must answer, what it is shown, and the conversation so far.

Lenient on purpose: unknown tags, missing parts and any order are fine, and nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .lazy import Lazy

_KNOWN = (
    "role|demographics|affinities|summary|situation|task|goal|instruction|metric|target|conversation|scale|rubric|"
    "profile|personality|message|answer|first|second"
)
_BLOCK = Lazy(rf"<({_KNOWN})\b([^<>]*)>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_INSTRUCTION = Lazy(r"<instruction\b[^<>]*>.*?(?:</instruction\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_DOMAIN = Lazy(r"""domain\s*=\s*["']?([^"'<>]+)""", re.IGNORECASE)
_LINE = Lazy(r"<(user|assistant)\b[^<>]*>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_UNTOLD = Lazy(r"^\s*nothing yet\.?\s*$", re.IGNORECASE)
_NOTHING = Lazy(
    r"^\W*(?:n/?a|none|null|nil|unknown|redacted|no preferences?|not (?:applicable|specified|available)|"
    r"any)?\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Line:
    """One line of a conversation: `speaker` is "user" or "assistant", whatever role the message had."""

    speaker: str
    text: str


@dataclass
class Request:
    """What one request shows to the model."""

    role: str = "assistant"
    system: str = ""
    demographics: dict[str, str] = field(default_factory=dict)
    affinities: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    situation: dict[str, str] = field(default_factory=dict)
    task: str = ""
    goal: str = ""
    metric: str = ""
    target: str = ""
    profile: str | None = None
    personality: str | None = None
    message: str = ""
    answer: str = ""
    first: str = ""
    second: str = ""
    bare: bool = False
    """Whether it is nothing but a chat: no system message and no marked part but the chat itself."""
    conversation: list[Line] = field(default_factory=list)

    def said_by(self, speaker: str) -> list[str]:
        """Give the lines of one speaker, oldest first."""
        return [line.text for line in self.conversation if line.speaker == speaker]


def usable(value: str) -> bool:
    """Tell whether a value says anything: not empty, "N/A", "[Redacted]" or "no preference"."""
    return not _NOTHING.match(value)


def values_of(text: str) -> list[str]:
    """Split a `a; b; c` list, without the entries that say nothing."""
    parts = (re.sub(r"^[\s\[\"'•*-]+|[\s\]\"';.,]+$", "", part) for part in text.split(";"))
    return list(dict.fromkeys(part for part in parts if part and usable(part)))


def _pairs(body: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in body.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip():
            found[key.strip(" \t-*•")] = value.strip()
    return found


def _content(message: Mapping[str, object]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # the parts form of OpenAI messages
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""


def _take_block(request: Request, tag: str, attributes: str, body: str) -> None:
    named = _DOMAIN.search(attributes)
    domain = named.group(1).strip() if named else ""
    if tag == "demographics":
        request.demographics = {key.lower(): value for key, value in _pairs(body).items() if usable(value)}
    elif tag == "affinities" and domain:
        request.affinities[domain] = {name: values_of(value) for name, value in _pairs(body).items()}
    elif tag == "summary" and domain:
        request.summaries[domain] = body.strip()
    elif tag == "situation":
        request.situation = {key.lower(): value for key, value in _pairs(body).items() if usable(value)}
    elif tag in ("profile", "personality"):
        setattr(request, tag, "" if _UNTOLD.match(body) else body.strip())
    elif tag in ("task", "goal", "metric", "target", "message", "answer", "first", "second"):
        setattr(request, tag, body.strip())
    elif tag == "instruction":
        for inner, more, text in _BLOCK.findall(body):
            if inner.lower() in ("profile", "personality"):
                _take_block(request, inner.lower(), more, text)
    elif tag == "conversation":
        lines = _LINE.findall(body)
        request.conversation = [Line(speaker.lower(), text.strip()) for speaker, text in lines if text.strip()]


def _is_bare(messages: Sequence[Mapping[str, object]]) -> bool:
    kinds = {str(message.get("role", "")) for message in messages}
    return "user" in kinds and kinds <= {"user", "assistant"} and not any(_BLOCK.search(_content(m)) for m in messages)


def read_request(messages: Sequence[Mapping[str, object]]) -> Request:
    """Read all marked parts of a chat request and its conversation, the speakers named from the outside."""
    request = Request(bare=_is_bare(messages))
    heard: list[Line] = []
    swap = {"user": "assistant", "assistant": "user"}
    for message in messages:
        kind, text = str(message.get("role", "")), _content(message)
        own_prompt = kind in ("system", "developer")
        if own_prompt:
            request.system += text + "\n"
        role = re.search(r"<role\b[^<>]*>\s*(\w+)\s*</role\s*>", text, re.IGNORECASE)
        if role and (own_prompt or message is messages[0]):
            request.role = role.group(1).lower()
        if own_prompt or request.role != "assistant":
            for tag, attributes, body in _BLOCK.findall(text):
                _take_block(request, tag.lower(), attributes, body)
        if own_prompt or kind not in swap:
            continue
        rest = _BLOCK.sub("", _INSTRUCTION.sub("", text)) if request.role != "assistant" else text
        if rest.strip():
            heard.append(Line(swap[kind] if request.role == "user" else kind, rest.strip()))
    if request.role != "judge" and not request.conversation:
        request.conversation = heard
    return request

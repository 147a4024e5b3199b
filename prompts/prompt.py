"""One prompt: front matter, sections and their rendering to chat messages.

A prompt file is YAML front matter and a body cut into sections by marker lines::

    ---
    id: personalens/assistant
    version: 1
    role: assistant
    inputs: [demographics, history]
    reply: text
    ---
    === system ===
    You help {{ demographics.age }} ...
    === history ===
    === user ===
    Answer now.

Each section is a separate Jinja2 template, so no input can start a new section. Sections keep their order: text that
is constant within a scenario comes first, the conversation next, the current instruction last.

No input can open or close a tag of the prompt either: in messages and all other inputs, the `<` of a tag that the
prompt itself uses is written `&lt;`. Any other `<` is kept.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, UndefinedError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dialoom.errors import first_problem
from dialoom.inputs import DataError, parse_yaml
from dialoom.sandbox import Sandbox

from .errors import PromptError
from .messages import ChatMessage, Utterance, call_text

_MARKER = re.compile(r"^===[ \t]*(\w+)[ \t]*===[ \t]*$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n(.*)\Z", re.DOTALL)
_SECTIONS = ("system", "history", "user", "assistant")
_TAG = re.compile(r"<\s*/?\s*([A-Za-z][\w-]*)")
_OF_TRANSCRIPTS = frozenset({"assistant", "conversation", "user"})
_CALL = "tool_call"
_MOST_CHARACTERS = 20_000_000
"""The most characters of a rendered section, several times any model's context window."""


class Section(BaseModel):
    """A part of a prompt's body: the kind of message it becomes and its template text."""

    model_config = ConfigDict(frozen=True)
    kind: Literal["system", "history", "user", "assistant"]
    text: str
    line: int


class FrontMatter(BaseModel):
    """The front matter of a prompt file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: str = Field(min_length=1)
    version: int = Field(ge=1)
    role: str = Field(min_length=1)
    inputs: tuple[str, ...]
    reply: str = "text"
    more: int = Field(0, ge=0)
    """Tokens that a reply to this prompt may have beyond its role's limit, if there is one."""
    history: Literal["messages", "text"] = "messages"
    """`messages`: the conversation becomes chat messages; `text`: the whole prompt becomes one flat user message."""


def transcript(history: Sequence[Utterance]) -> str:
    """Return a conversation as tagged text: `<speaker>text</speaker>`, one block per utterance.

    A tool call is a `<tool_call>` within the block of its speaker.
    """
    return "\n".join(f"<{line['speaker']}>{_worded(line)}</{line['speaker']}>" for line in history)


def _worded(line: Utterance) -> str:
    """Return an utterance's text and tool calls as one text."""
    if not (calls := line.get("tool_calls")):
        return line["content"]
    said = [line["content"]] if line["content"] else []
    return "\n".join([*said, *(f"<{_CALL}>{call_text(call)}</{_CALL}>" for call in calls)])


def _without_tags(value: Any, tag: re.Pattern[str]) -> Any:
    """Return an input in which the prompt's own tags are escaped, in text and in text within plain values."""
    if isinstance(value, str):
        return tag.sub("&lt;", value) if "<" in value else value
    if isinstance(value, dict | Mapping):  # dict first: isinstance with Mapping is slow
        return {_without_tags(key, tag): _without_tags(each, tag) for key, each in value.items()}
    return [_without_tags(each, tag) for each in value] if isinstance(value, list | tuple) else value


@lru_cache(maxsize=1024)
def _any_of(tags: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern that matches the `<` of each of these tags, opening or closing."""
    names = "|".join(sorted(map(re.escape, tags)))
    return re.compile(rf"<(?=\s*/?\s*(?:{names})\b)" if names else r"(?!)", re.IGNORECASE)


def _environment() -> Sandbox:
    environment = Sandbox(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False)
    environment.filters["transcript"] = transcript
    return environment


_ENVIRONMENT = _environment()


class Prompt(BaseModel):
    """A parsed prompt. Its hash depends on its source alone.

    Attributes:
        front: The front matter.
        source: The file's whole text, stored in a run so that the run never needs the file again.
        place: The origin of the text, for error messages.
    """

    model_config = ConfigDict(frozen=True, ignored_types=(cached_property,))
    front: FrontMatter
    sections: tuple[Section, ...]
    source: str
    place: str

    @property
    def id(self) -> str:
        """The prompt's id, e.g. `personalens/user`."""
        return self.front.id

    @cached_property
    def hash(self) -> str:
        """The first 16 hex digits of the source's SHA-256."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]

    @classmethod
    def parse(cls, source: str, place: str) -> Prompt:
        """Parse a prompt file's text.

        Raises:
            PromptError: If the front matter, a marker, a template or a variable is wrong.
        """
        return _parsed(source.replace("\r\n", "\n"), place)

    @classmethod
    def compose(cls, id_: str, role: str, body: str, reply: str = "text") -> Prompt:
        """Return a prompt made in code; its inputs are the variables of its body and the history.

        Args:
            id_: The prompt's id, e.g. `support/user`.
            role: The role that uses it.
            body: Sections with their marker lines, as in a prompt file.
            reply: The name of the reply type.

        Raises:
            PromptError: If the body is not a template.
        """
        try:
            used = set(_ENVIRONMENT.template_variables(body))
        except TemplateSyntaxError as error:
            raise PromptError(f"{id_}:{error.lineno}", f"is not a template: {error.message}") from error
        front = {"id": id_, "version": 1, "role": role, "inputs": sorted(used | {"history"}), "reply": reply}
        matter = "\n".join(f"{key}: {json.dumps(value)}" for key, value in front.items())
        return cls.parse(f"---\n{matter}\n---\n{body}", id_)

    def render(self, inputs: Mapping[str, Any]) -> list[ChatMessage]:
        """Return the chat messages of this prompt; see `rendered`."""
        return self.rendered(inputs)[0]

    def rendered(self, inputs: Mapping[str, Any]) -> tuple[list[ChatMessage], range]:
        """Return the chat messages of this prompt, and the places among them of the conversation's messages.

        No place is the conversation's in a prompt that becomes one flat message.

        Args:
            inputs: A value for each declared input; `history`, if declared, is a sequence of `Utterance`.

        Raises:
            PromptError: If an input is missing or a template uses an undefined name.
        """
        missing = [name for name in self.front.inputs if name not in inputs]
        if missing:
            wanted = f"input{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            raise PromptError(
                None if self.place == self.id else self.place,  # a prompt stored in a run has no file
                f"prompt {self.id!r} needs the {wanted}; given were {', '.join(sorted(inputs)) or 'none'}",
            )
        history: Sequence[Utterance] = inputs.get("history", ())
        speakers = {line["speaker"] for line in history}
        calls = {_CALL} if any(line.get("tool_calls") for line in history) else set()
        tag = _any_of(self._tags | _OF_TRANSCRIPTS | speakers | calls)
        harmless = {name: _without_tags(each, tag) if name in self._told else each for name, each in inputs.items()}
        messages: list[ChatMessage] = []
        conversation = range(0)
        for section, template in self._templates:
            if section.kind == "history":
                conversation = range(len(messages), len(messages) + len(history))
                messages += self._history(harmless["history"] if self.front.history == "text" else history)
            elif text := self._text(section, template, harmless):
                messages.append({"role": section.kind, "content": text})
        if self.front.history == "text":
            return [{"role": "user", "content": "\n\n".join(message["content"] for message in messages)}], range(0)
        return messages, conversation

    @cached_property
    def _templates(self) -> tuple[tuple[Section, Template], ...]:
        return tuple((section, _template(section.text)) for section in self.sections)

    @cached_property
    def _tags(self) -> frozenset[str]:
        """The tags that the prompt's own text uses."""
        return frozenset(name.lower() for section in self.sections for name in _TAG.findall(section.text))

    @cached_property
    def _told(self) -> frozenset[str]:
        """The inputs that are rendered into the prompt's own text, next to its tags."""
        text = "".join(section.text for section in self.sections)
        flat = {"history"} if self.front.history == "text" else set()
        return frozenset(name for name in self.front.inputs if name in text) | flat

    @cached_property
    def _own_tag(self) -> re.Pattern[str]:
        return _any_of(self._tags)

    def _history(self, history: Sequence[Utterance]) -> list[ChatMessage]:
        """Return the conversation from this role's side: its own lines are the assistant's, all others the user's.

        A chat message holds one utterance, but an instruction may be appended to the last one; so the prompt's own
        tags, and only these, are escaped here too.
        """
        if self.front.history == "text":
            return [{"role": "user", "content": f"<conversation>\n{transcript(history)}\n</conversation>"}]
        own_calls = {
            call["id"] for line in history if line["speaker"] == self.front.role for call in line.get("tool_calls", ())
        }
        return [self._message(line, own_calls) for line in history]

    def _message(self, line: Utterance, own_calls: Collection[str]) -> ChatMessage:
        """Return the chat message of an utterance: this role's tool calls and their results keep their types."""
        content = _without_tags(line["content"], self._own_tag)
        if line["speaker"] == self.front.role:
            message: ChatMessage = {"role": "assistant", "content": content}
            if calls := line.get("tool_calls"):
                message["tool_calls"] = calls
            if carried := line.get("carried"):
                message["carried"] = carried
            return message
        if (answered := line.get("tool_call_id")) in own_calls and answered is not None:
            return {"role": "tool", "content": content, "tool_call_id": answered}
        return {"role": "user", "content": _without_tags(_worded(line), self._own_tag)}

    def _text(self, section: Section, template: Template, inputs: Mapping[str, Any]) -> str:
        place = f"section '{section.kind}' (line {section.line}) of {self.id!r}"
        rendered: list[str] = []
        length = 0
        try:
            for piece in template.generate(inputs):
                rendered.append(piece)
                if (length := length + len(piece)) > _MOST_CHARACTERS:
                    raise PromptError(self.place, f"{place} makes more than {_MOST_CHARACTERS:,} characters")
        except UndefinedError as error:
            raise PromptError(self.place, f"{place}: {error}") from error
        except (TemplateError, ArithmeticError, RecursionError, TypeError, ValueError) as error:
            raise PromptError(self.place, f"{place} cannot be rendered: {error}") from error
        return "".join(rendered).strip()

    def _check_variables(self) -> None:
        allowed = set(self.front.inputs)
        for section in self.sections:
            try:
                used = _ENVIRONMENT.template_variables(section.text)
            except TemplateSyntaxError as error:
                line = section.line + (error.lineno or 1)
                raise PromptError(f"{self.place}:{line}", f"not a template: {error.message}") from error
            if unknown := sorted(used - allowed):
                raise PromptError(
                    self.place,
                    f"prompt {self.id!r} uses the variable {unknown[0]!r}, which it does not get; "
                    f"it gets {', '.join(sorted(allowed)) or 'none'}",
                )


@lru_cache(maxsize=256)
def _parsed(source: str, place: str) -> Prompt:
    """Parse a prompt. Cached with its templates: a process opens many runs, which have the same prompts."""
    match = _FRONT_MATTER.match(source)
    if match is None:
        raise PromptError(place, "a prompt starts with front matter between two lines of '---'")
    front = _front_matter(match.group(1), place)
    prompt = Prompt(front=front, sections=_sections(source, match.start(2), place), source=source, place=place)
    prompt._check_variables()
    return prompt


def _template(text: str) -> Template:
    template = _ENVIRONMENT.from_string(text)
    template.globals = dict(template.globals)  # Jinja's own is a chain of dictionaries, copied slowly at each rendering
    return template


def _front_matter(text: str, place: str) -> FrontMatter:
    try:
        values = parse_yaml(text, place, first_line=2)
    except DataError as error:
        raise PromptError(None, str(error)) from error
    if not isinstance(values, dict):
        raise PromptError(place, "the front matter is not a list of 'key: value' lines")
    try:
        return FrontMatter.model_validate(values)
    except ValidationError as error:
        key, message, _ = first_problem(error)
        raise PromptError(place, f"front matter {key!r}: {message}") from error


def _sections(source: str, start: int, place: str) -> tuple[Section, ...]:
    """Split the body, which begins at offset `start` of `source`, at its marker lines."""
    body = source[start:]
    markers = list(_MARKER.finditer(body))
    if not markers or body[: markers[0].start()].strip():
        raise PromptError(place, "a prompt's body starts with a section marker such as '=== system ==='")
    ends = [marker.start() for marker in markers[1:]] + [len(body)]
    sections = []
    for marker, end in zip(markers, ends, strict=True):
        line = source.count("\n", 0, start + marker.start()) + 1
        kind = marker.group(1)
        if kind not in _SECTIONS:
            raise PromptError(f"{place}:{line}", f"unknown section {kind!r}; there are {', '.join(_SECTIONS)}")
        sections.append(Section.model_validate({"kind": kind, "text": body[marker.end() : end], "line": line}))
    return tuple(sections)

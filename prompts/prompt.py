"""A prompt: its front matter, its sections, and how they are rendered to chat messages.

A prompt file has YAML front matter and a body that marker lines divide into sections::

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

An input cannot open or close a tag of the prompt, either. In messages and all other inputs, the `<` of a tag that the
prompt itself uses is replaced by `&lt;`. Any other `<` is kept.
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from pathlib import Path
from typing import Any, Literal

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, UndefinedError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dialoom.errors import DialoomError, first_problem
from dialoom.inputs import DataError, Frozen, Record, parse_yaml, read_text
from dialoom.sandbox import Sandbox
from dialoom.settings import SHIPPED_PROMPTS

from .messages import ChatMessage, Utterance, format_call

_MARKER = re.compile(r"^===[ \t]*(\w+)[ \t]*===[ \t]*$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n(.*)\Z", re.DOTALL)
_SECTIONS = ("system", "history", "user", "assistant")
_TAG = re.compile(r"<\s*/?\s*([A-Za-z][\w-]*)")
_TRANSCRIPT_TAGS = frozenset({"assistant", "conversation", "user"})
_CALL_TAG = "tool_call"
_MAX_SECTION_CHARACTERS = 20_000_000
"""Maximum number of characters of a rendered section. It is several times any model's context window."""


class PromptError(DialoomError):
    """A template that cannot be used. The message states its file and the correct form."""

    def __init__(self, place: str | Path | None, message: str) -> None:
        super().__init__(message if place is None else f"{place}: {message}")


_HISTORY_USE = re.compile(r"\{[{%][^}]*\bhistory\b")
"""A pattern for the use of the conversation in a template."""


class Section(Frozen):
    """A section of a prompt's body: the kind of message that it becomes, and its template."""

    kind: Literal["system", "history", "user", "assistant"]
    text: str
    line: int


class FrontMatter(Record):
    """The front matter of a prompt file."""

    id: str = Field(min_length=1)
    version: int = Field(ge=1)
    role: str = Field(min_length=1)
    inputs: tuple[str, ...]
    reply: str = "text"
    more: int = Field(0, ge=0)
    """The number of tokens by which a reply to this prompt may exceed its role's limit, if there is one."""
    history: Literal["messages", "text"] = "messages"
    """`messages`: the conversation becomes chat messages. `text`: the whole prompt becomes a single user message."""


def format_transcript(history: Sequence[Utterance]) -> str:
    """Return a conversation as tagged text: `<speaker>text</speaker>`, one block per utterance.

    A tool call becomes a `<tool_call>` within the block of its speaker.
    """
    return "\n".join(f"<{line['speaker']}>{_format_utterance(line)}</{line['speaker']}>" for line in history)


def _format_utterance(line: Utterance) -> str:
    """Return an utterance's text and its tool calls as one text."""
    if not (calls := line.get("tool_calls")):
        return line["content"]
    parts = [line["content"]] if line["content"] else []
    return "\n".join([*parts, *(f"<{_CALL_TAG}>{format_call(call)}</{_CALL_TAG}>" for call in calls)])


def _escape_tags(value: Any, tag: re.Pattern[str]) -> Any:
    """Return an input with the prompt's own tags escaped, in strings and in strings within plain values."""
    if isinstance(value, str):
        return tag.sub("&lt;", value) if "<" in value else value
    if isinstance(value, dict | Mapping):  # dict first: isinstance with Mapping is slow
        return {_escape_tags(key, tag): _escape_tags(each, tag) for key, each in value.items()}
    return [_escape_tags(each, tag) for each in value] if isinstance(value, list | tuple) else value


@lru_cache(maxsize=1024)
def _compile_tags(tags: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern that matches the `<` of opening and closing tags with these names."""
    names = "|".join(sorted(map(re.escape, tags)))
    return re.compile(rf"<(?=\s*/?\s*(?:{names})\b)" if names else r"(?!)", re.IGNORECASE)


class _MissingName(StrictUndefined):
    """An undefined name in a template. If a mapping lacks the name, the error message lists the mapping's names."""

    @property
    def _undefined_message(self) -> str:
        if not isinstance(self._undefined_obj, Mapping):
            return str(super()._undefined_message)
        names = ", ".join(map(str, self._undefined_obj))
        return f"there is no {self._undefined_name!r}{f'; the names are {names}' if names else ': the value is empty'}"


_ENVIRONMENT = Sandbox(undefined=_MissingName, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False)
_ENVIRONMENT.filters["transcript"] = format_transcript


class Prompt(BaseModel):
    """A parsed prompt. Its hash depends only on its source.

    Attributes:
        front: The front matter.
        source: The whole text of the file. A run stores it, so that it does not need the file again.
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
        return _parse(source.replace("\r\n", "\n"), place)

    @classmethod
    def compose(cls, id_: str, role: str, body: str, reply: str = "text") -> Prompt:
        """Return a prompt made in code. Its inputs are the variables of its body, and the history.

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
        """Return the chat messages of this prompt; see `render_with_history`."""
        return self.render_with_history(inputs)[0]

    def render_with_history(self, inputs: Mapping[str, Any]) -> tuple[list[ChatMessage], range]:
        """Return the chat messages of this prompt, and the positions of the conversation's messages among them.

        The range of positions is empty if the prompt becomes a single message.

        Args:
            inputs: A value for each declared input; `history`, if declared, is a sequence of `Utterance`.

        Raises:
            PromptError: If an input is missing or a template uses an undefined name.
        """
        missing = [name for name in self.front.inputs if name not in inputs]
        if missing:
            needed = f"input{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            raise PromptError(
                None if self.place == self.id else self.place,  # a prompt stored in a run has no file
                f"prompt {self.id!r} needs the {needed}, but got {', '.join(sorted(inputs)) or 'none'}",
            )
        history: Sequence[Utterance] = inputs.get("history", ())
        speakers = {line["speaker"] for line in history}
        calls = {_CALL_TAG} if any(line.get("tool_calls") for line in history) else set()
        tag = _compile_tags(self._tags | _TRANSCRIPT_TAGS | speakers | calls)
        escaped = {
            name: _escape_tags(each, tag) if name in self._rendered_inputs else each for name, each in inputs.items()
        }
        messages: list[ChatMessage] = []
        conversation = range(0)
        for section, template in self._templates:
            if section.kind == "history":
                conversation = range(len(messages), len(messages) + len(history))
                messages += self._to_messages(escaped["history"] if self.front.history == "text" else history)
            elif text := self._render_section(section, template, escaped):
                messages.append({"role": section.kind, "content": text})
        if self.front.history == "text":
            return [{"role": "user", "content": "\n\n".join(message["content"] for message in messages)}], range(0)
        return messages, conversation

    @cached_property
    def _templates(self) -> tuple[tuple[Section, Template], ...]:
        return tuple((section, _compile_template(section.text)) for section in self.sections)

    @cached_property
    def _tags(self) -> frozenset[str]:
        """The tags that the prompt's own text uses."""
        return frozenset(name.lower() for section in self.sections for name in _TAG.findall(section.text))

    @cached_property
    def _rendered_inputs(self) -> frozenset[str]:
        """The names of the inputs that are rendered into the prompt's own text, next to its tags."""
        text = "".join(section.text for section in self.sections)
        history = {"history"} if self.front.history == "text" else set()
        return frozenset(name for name in self.front.inputs if name in text) | history

    @property
    def quotes_history(self) -> bool:
        """Return whether the prompt's text contains the conversation, which is otherwise in separate chat messages."""
        return self.front.history == "text" or any(_HISTORY_USE.search(section.text) for section in self.sections)

    def _to_messages(self, history: Sequence[Utterance]) -> list[ChatMessage]:
        """Return the conversation from this role's point of view, as its prompt needs it.

        The role's own lines become the assistant's, lines of `system` stay system messages, and all other lines become
        the user's.

        A chat message holds one utterance, but an instruction may be appended to the last message. Therefore the
        prompt's own tags, and only these, are also escaped here.
        """
        if self.front.history == "text":
            return [{"role": "user", "content": f"<conversation>\n{format_transcript(history)}\n</conversation>"}]
        own_calls = {
            call["id"] for line in history if line["speaker"] == self.front.role for call in line.get("tool_calls", ())
        }
        return [self._to_message(line, own_calls) for line in history]

    def _to_message(self, line: Utterance, own_calls: Collection[str]) -> ChatMessage:
        """Return the chat message of an utterance. This role's tool calls and their results keep their types."""
        tag = _compile_tags(self._tags)
        content = _escape_tags(line["content"], tag)
        if line["speaker"] == self.front.role:
            message: ChatMessage = {"role": "assistant", "content": content}
            if calls := line.get("tool_calls"):
                message["tool_calls"] = calls
            if carried := line.get("carried"):
                message["carried"] = carried
            return message
        if (answered := line.get("tool_call_id")) in own_calls and answered is not None:
            return {"role": "tool", "content": content, "tool_call_id": answered}
        if line["speaker"] == "system":
            return {"role": "system", "content": content}
        return {"role": "user", "content": _escape_tags(_format_utterance(line), tag)}

    def _render_section(self, section: Section, template: Template, inputs: Mapping[str, Any]) -> str:
        place = f"section '{section.kind}' (line {section.line}) of {self.id!r}"
        rendered: list[str] = []
        length = 0
        try:
            for piece in template.generate(inputs):
                rendered.append(piece)
                if (length := length + len(piece)) > _MAX_SECTION_CHARACTERS:
                    raise PromptError(
                        self.place, f"{place} renders to more than {_MAX_SECTION_CHARACTERS:,} characters"
                    )
        except UndefinedError as error:
            raise PromptError(self.place, f"{place}: {error}") from error
        except (TemplateError, ArithmeticError, RecursionError, TypeError, ValueError) as error:
            raise PromptError(self.place, f"{place} cannot be rendered: {error}") from error
        return "".join(rendered).strip()


@lru_cache(maxsize=256)
def _parse(source: str, place: str) -> Prompt:
    """Parse a prompt.

    The parsed prompt is cached with its templates, because a process opens many runs with the same prompts.
    """
    match = _FRONT_MATTER.match(source)
    if match is None:
        raise PromptError(place, "a prompt starts with front matter between two lines of '---'")
    front = _parse_front_matter(match.group(1), place)
    sections = _split_sections(source, match.start(2), place)
    for section in sections:
        try:
            used = _ENVIRONMENT.template_variables(section.text)
        except TemplateSyntaxError as error:
            line = section.line + (error.lineno or 1)
            raise PromptError(f"{place}:{line}", f"not a template: {error.message}") from error
        if unknown := sorted(used.difference(front.inputs)):
            raise PromptError(
                place,
                f"prompt {front.id!r} uses the variable {unknown[0]!r}, which is not an input; its inputs are "
                f"{', '.join(sorted(set(front.inputs))) or 'none'}",
            )
    return Prompt(front=front, sections=sections, source=source, place=place)


def _compile_template(text: str) -> Template:
    template = _ENVIRONMENT.from_string(text)
    template.globals = dict(
        template.globals
    )  # Jinja's own globals are a chain of dictionaries, which is slow to copy at each rendering
    return template


def _parse_front_matter(text: str, place: str) -> FrontMatter:
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


def _split_sections(source: str, start: int, place: str) -> tuple[Section, ...]:
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
            raise PromptError(f"{place}:{line}", f"unknown section {kind!r}; the sections are {', '.join(_SECTIONS)}")
        sections.append(Section.model_validate({"kind": kind, "text": body[marker.end() : end], "line": line}))
    return tuple(sections)


SHIPPED_FOLDER = Path(__file__).parent

_TEXTS_FOLDER = "dialogue"
"""The folder of the texts from which prompts are made in code, such as the prompts of studies."""

_PLACEHOLDER = re.compile(r"%[A-Z]+%")


def shared_text(name: str, sets: Iterable[str] = ()) -> str:
    """Return a text from which prompts are made in code. If several sets contain it, that of the last set is used.

    Args:
        name: The name of the text's file in `dialogue/`, without the suffix.
        sets: Sets of prompts, given as names of shipped sets or as paths of folders.

    Raises:
        PromptError: If a set's text lacks a placeholder of the original.
    """
    original = text = read_text(SHIPPED_FOLDER / _TEXTS_FOLDER / f"{name}.txt")
    for folder in map(_find_set, sets):
        if (path := folder / _TEXTS_FOLDER / f"{name}.txt").is_file():
            text = read_text(path)
            if missing := set(_PLACEHOLDER.findall(original)).difference(_PLACEHOLDER.findall(text)):
                raise PromptError(path, f"lacks {min(missing)}, which the original text has")
    return text


def _find_set(spec: str) -> Path:
    """Return the folder of a set of prompts."""
    return SHIPPED_FOLDER / spec if spec in SHIPPED_PROMPTS else Path(spec)


class PromptLibrary(dict[str, Prompt]):
    """Prompts by id. A run stores the sources of the prompts it uses, so it does not read the files again."""

    def __init__(self, prompts: Iterable[Prompt]) -> None:
        super().__init__((prompt.id, prompt) for prompt in prompts)

    @classmethod
    def load(
        cls, selected: Iterable[str | Prompt], sets: Iterable[str] = (), shipped: Path | None = None
    ) -> PromptLibrary:
        """Load prompts.

        Args:
            selected: Ids such as `personalens/user`, or prompts made in code.
            sets: Names of shipped sets, or paths of folders. Each `*.md` file in a set replaces the prompt with the id
                that the file states, and any replacement of it in an earlier set. Files for prompts of other recipes
                are ignored.
            shipped: The folder that holds the original prompts as `<id>.md`; by default dialoom's own folder.

        Raises:
            DataError: If a file cannot be read.
            PromptError: If a file does not contain a valid prompt, or an override has an unknown id or input.
        """
        folder = shipped or SHIPPED_FOLDER
        originals = (_read_prompt(folder / f"{each}.md") if isinstance(each, str) else each for each in selected)
        prompts = {prompt.id: prompt for prompt in originals}
        overrides = [_read_overrides(_find_set(each), prompts) for each in sets]
        return cls(reduce(operator.or_, overrides, prompts).values())

    @classmethod
    def from_sources(cls, sources: Mapping[str, str]) -> PromptLibrary:
        """Return the prompts whose sources a run stores, by id."""
        return cls(Prompt.parse(source, id_) for id_, source in sources.items())


def _read_prompt(path: Path) -> Prompt:
    return Prompt.parse(read_text(path), str(path))


def _read_overrides(folder: Path, originals: Mapping[str, Prompt]) -> dict[str, Prompt]:
    """Return the overrides in a folder that replace one of the original prompts, by id."""
    if not folder.is_dir():
        raise PromptError(folder, f"no such folder of prompts; the shipped sets are {', '.join(SHIPPED_PROMPTS)}")
    paths, texts = sorted(folder.rglob("*.md")), sorted(folder.glob(f"{_TEXTS_FOLDER}/*.txt"))
    if not (paths or texts):
        raise PromptError(folder, "contains no prompt; an override is a .md file with the front matter of its original")
    known_texts = {path.name for path in (SHIPPED_FOLDER / _TEXTS_FOLDER).iterdir()}
    if unknown := [path for path in texts if path.name not in known_texts]:
        raise PromptError(
            unknown[0], f"replaces no shipped text; the shipped texts are {', '.join(sorted(known_texts))}"
        )
    found: dict[str, Prompt] = {}
    for path in paths:
        prompt = _read_prompt(path)
        if prompt.id in found:
            raise PromptError(path, f"overrides {prompt.id!r}, which {found[prompt.id].place} already overrides")
        if prompt.id in originals:
            _check_override(prompt, originals[prompt.id])
            found[prompt.id] = prompt
        elif not (SHIPPED_FOLDER / f"{prompt.id}.md").is_file():
            known = ", ".join(sorted(originals))
            raise PromptError(path, f"overrides the unknown prompt {prompt.id!r}; the prompts are {known}")
    return found


def _check_override(prompt: Prompt, original: Prompt) -> None:
    if unknown := sorted(set(prompt.front.inputs) - set(original.front.inputs)):
        raise PromptError(
            prompt.place,
            f"prompt {prompt.id!r} declares the input {unknown[0]!r}, which is not available; the available inputs "
            f"are {', '.join(original.front.inputs)}",
        )
    for key in ("role", "reply"):
        expected, actual = getattr(original.front, key), getattr(prompt.front, key)
        if expected != actual:
            raise PromptError(prompt.place, f"{key} of {prompt.id!r} must stay {expected!r}, not {actual!r}")

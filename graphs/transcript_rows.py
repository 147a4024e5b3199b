"""Recorded conversations in files: recognition of the formats, and strict readers for their rows."""

from __future__ import annotations

import importlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, groupby
from pathlib import Path
from typing import Any, TypeAlias

from pydantic_core import to_jsonable_python

from dialoom.inputs import MAX_BYTES, DataError, open_input, parse_json, read_json, read_lines
from dialoom.personas.rows import read_parquet_rows
from dialoom.prompts import FunctionCall
from dialoom.roles.gateway.calls import INCOMPLETE_REASONS
from dialoom.text import to_well_formed_value

from .conversation import TOOL
from .outcome import SYSTEM, TRIAL_OF, USER, USER_MODEL, Line, episode_id
from .study import ASSISTANT

RECORDED = "recorded"
"""The ending of a conversation whose file does not state one. It is also the name of the node that adds recorded lines.
"""

TRANSCRIPT = "transcript"
"""The name of the recipe for imported conversations."""

CONVERSATION_KEYS = ("messages", "conversations", "conversation", "turns", "dialogue")
ROLE_KEYS = ("role", "from", "speaker")
CONTENT_KEYS = ("content", "value", "text", "utterance")
_ROLES = {"user": USER, "human": USER, "system": SYSTEM, "developer": SYSTEM} | dict.fromkeys(
    ("assistant", "gpt", "bot", "ai", "model", "chatbot", "chosen", "function_call"), ASSISTANT
)
_ROLES |= dict.fromkeys(("tool", "function", "observation"), TOOL)
"""The roles of other programs, in any letter case. ShareGPT calls tool calls and their results `function_call` and
`observation`; OpenAI's earlier results are of the role `function`.
"""
_READ_KEYS = frozenset({"id", "tools", "ended_by", "person", "task"})
_GENERATION_KEYS = frozenset({"judgements", "faults", "recipe", "models", "prompts"})
"""Keys of `dialogues` exports that state how a conversation was generated and scored, rather than what it contains."""
_INCLUDED_KEYS = ("facets", "scores")
"""Keys of objects that exports may include. They state what the other keys state already, or how it was scored."""
_TRANSCRIPT_KEYS = frozenset({"name", "branch", "environment", "error", USER_MODEL})
"""Keys of an export of imported conversations that are no columns of their rows; `name` is the conversation's id.

The user model is a column, which is in `scenario`, too.
"""
_PERSON_KEYS = ("person", "user", "persona")
"""Keys under `scenario` in `dialogues` exports that name the person; each recipe has one of them."""

SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".eval")
"""The suffixes of the formats that are read; a file with another suffix is read as JSON Lines."""

LABEL_PREFIX = "label:"
"""The prefix of the keys, and of the columns in labels files, that hold people's labels. Judges must not see these."""

MAX_FACET_CHARACTERS = 60
"""Maximum number of characters of a value by which imported conversations are grouped."""


NumberedRow: TypeAlias = "tuple[int, Mapping[str, Any] | DataError]"
"""The number of a row or of its line, and the row. If the row cannot be read, the error is in its place."""


def is_label(name: str) -> bool:
    """Return whether a key holds a person's labels."""
    return name.lower().startswith(LABEL_PREFIX)


def normalize_role(name: str) -> str:
    """Return the role that a name in a file means, by `_ROLES`; for another name, return the name."""
    return _ROLES.get(name.lower(), name)


def read_raw_rows(path: Path) -> Iterator[NumberedRow]:
    """Yield the rows of a JSON Lines, JSON or Parquet file. In place of an invalid row, yield an error.

    Raises:
        DataError: If the file cannot be read, or the whole file is not valid JSON or Parquet.
    """
    if path.suffix.lower() == ".parquet":
        yield from enumerate(read_parquet_rows(path), 1)
    elif path.suffix.lower() == ".json":
        yield from enumerate(_read_json_rows(path), 1)
    else:
        for number, line in read_lines(path):
            try:
                if line.strip():
                    yield number, _parse_row(line, path, number)
            except DataError as error:
                yield number, error


def _parse_row(written: bytes, path: Path, number: int) -> Mapping[str, Any]:
    try:
        line = written.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        found = f"byte {written[error.start]:#04x} at {error.start + 1}"
        raise DataError(path, f"not UTF-8: {found}; give JSON lines or Parquet", number) from error
    row = parse_json(line, path, number)
    if isinstance(row, str):
        return {"text": row}
    if not isinstance(row, dict):
        raise DataError(path, f"each row must be an object, got {line.strip()[:60]}", number)
    return row


def _read_json_rows(path: Path) -> list[Mapping[str, Any]]:
    """Return the rows of a file that is a JSON list, as in some releases."""
    rows = read_json(path)
    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(path, "the file must contain an object or a list of objects")
    return rows


def build_round_lines(both: Mapping[str, Any]) -> list[Line]:
    """Return the lines of a round in ALOE's format.

    If a round has several replies, the one from which the conversation continued is used.
    """
    reply = both.get("assistant")
    if isinstance(reply, dict):
        reply = reply.get(str(both.get("chosen")), reply.get("preferred"))
    if isinstance(reply, list):
        reply = reply[0] if reply else None
    user = Line(role="user", content=both["user"])
    return [user, Line(role="assistant", content=reply)] if isinstance(reply, str) else [user]


Reader: TypeAlias = "Callable[[Path], Iterator[NumberedRow]]"


@dataclass(frozen=True)
class RecordedTalk:
    """A recorded conversation. Its attributes are described in `Transcript`."""

    name: str
    person: dict[str, Any]
    task: dict[str, Any]
    columns: dict[str, Any]
    lines: tuple[Line, ...]
    tools: tuple[dict[str, Any], ...]
    ended_by: str


def read_talks(path: Path, reader: Reader | None = None) -> Iterator[tuple[int, RecordedTalk | DataError]]:
    """Yield the conversations of a file, or of all files of a folder, in order. For a broken row, yield an error.

    Args:
        path: The file or folder.
        reader: A function that yields the rows of a file in a format of the user's own. It replaces the known formats.

    Raises:
        DataError: If a file as a whole cannot be read.
    """
    for file in find_files(path):
        for number, row in read_rows(file, reader):
            try:
                if isinstance(row, DataError):
                    raise row
                yield number, parse_talk(row, file, number)
            except DataError as error:
                yield number, error


def find_files(path: Path) -> list[Path]:
    """Return the files of a folder in order, without hidden files and Markdown. For a file, return the file itself."""
    if not path.is_dir():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and file.suffix.lower() != ".md"
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )


def read_rows(file: Path, reader: Reader | None) -> Iterator[NumberedRow]:
    """Recognise a file's format, and return the file's rows."""
    if reader is not None:
        return reader(file)
    if file.suffix.lower() == ".eval":
        return _read_inspect_rows(file)
    row = next((row for _, row in read_raw_rows(file)), None)
    is_traced = (
        isinstance(row, Mapping) and not _has_conversation(row) and bool({"resourceSpans", "attributes"} & row.keys())
    )
    return _read_span_rows(file) if is_traced else _read_plain_rows(file)


def _has_conversation(row: Mapping[str, Any]) -> bool:
    return any(row.get(name) is not None for name in CONVERSATION_KEYS)


def _read_plain_rows(path: Path) -> Iterator[NumberedRow]:
    """Yield the rows of a file. The rows of an inspect_ai log in JSON are its samples."""
    for number, row in read_raw_rows(path):
        if isinstance(row, Mapping) and isinstance(row.get("eval"), dict) and isinstance(row.get("samples"), list):
            yield from ((place, _parse_sample(each, path, place)) for place, each in enumerate(row["samples"], 1))
        else:
            yield number, row


def parse_talk(row: Mapping[str, Any], path: Path, number: int) -> RecordedTalk:
    """Return a row's conversation.

    Raises:
        DataError: If the row is wrong. The message states the file, the line and the correct form. Nothing is repaired.
    """
    row = _convert_to_json_values(row, path, number)
    keys = sorted(
        (name for name in CONVERSATION_KEYS if row.get(name) is not None),
        key=lambda name: not isinstance(row[name], list),
    )
    if (key := next(iter(keys), None)) is None:
        raise DataError(
            path, f"there is no conversation ({', '.join(CONVERSATION_KEYS)}); the keys are {', '.join(row)}", number
        )
    if not isinstance(row[key], list) or not row[key]:
        raise DataError(path, f"{key!r} must be a list of at least one message, got {row[key]!r:.60}", number)
    said = [
        line for place, each in enumerate(row[key], 1) for line in _parse_message(each, f"{key}[{place}]", path, number)
    ]
    is_sharegpt = key == "conversations"
    if instructs := is_sharegpt and isinstance(row.get("system"), str):
        said = [Line(role=SYSTEM, content=row["system"]), *said] if row["system"] else said
    lines = list(_pair_results(said, is_sharegpt, path, number))
    known = {None, *(call["id"] for line in lines for call in line.tool_calls)}
    if unknown := [line.tool_call_id for line in lines if line.tool_call_id not in known]:
        message = f"a tool result answers {unknown[0]!r}, which is not the id of any tool call"
        raise DataError(path, message, number)
    tools = row.get("tools") or []
    tools = parse_json(tools, path, number) if isinstance(tools, str) else tools
    if not isinstance(tools, list) or not all(isinstance(each, dict) for each in tools):
        raise DataError(path, f"'tools' must be a list of objects, got {tools!r:.60}", number)
    described = row["scenario"] if isinstance(row.get("scenario"), dict) else {}
    is_export = row.get("recipe") == TRANSCRIPT
    is_trial = _to_text(row.get("id")) != "" and type(row.get("trial")) is int
    ignored = {
        *_READ_KEYS,
        key,
        *(name for name in (*_INCLUDED_KEYS, "scenario") if isinstance(row.get(name), Mapping)),
    }
    ignored |= _GENERATION_KEYS if row.get("recipe") and "scenario" in ignored else frozenset()
    ignored |= {name for name, is_read in (("trial", is_trial), ("system", instructs)) if is_read}
    ignored |= _TRANSCRIPT_KEYS if is_export else frozenset()
    about = {name: value for name, value in row.items() if name not in ignored and not is_label(name)}
    columns = {**about, **described}
    person = next((described[name] for name in _PERSON_KEYS if described.get(name)), None)
    if person is not None and row.get("recipe") and not is_export:
        columns["person"] = person
    if is_trial:
        columns[TRIAL_OF] = str(row["id"])[-MAX_FACET_CHARACTERS:]
    released = " ".join(str(row[name]) for name in ("user_id", "task_id") if row.get(name) is not None)
    return RecordedTalk(
        name=str(row.get("name") or "") if is_export else _build_name(row) or released,
        person=_build_columns(row.get("person"), "description", columns),
        task=_build_columns(row.get("task"), "goal", columns),
        columns=columns,
        lines=tuple(_sort_results(lines)),
        tools=tuple(tools),
        ended_by=str(row.get("ended_by") or RECORDED),
    )


def _convert_to_json_values(row: Mapping[str, Any], path: Path, number: int) -> dict[str, Any]:
    """Return a row's values as JSON holds them, e.g. a date as text. Numbers that are not finite become null.

    Raises:
        DataError: If the row is not an object, or JSON cannot hold a value, such as the bytes of an image.
    """
    if not isinstance(row, Mapping):
        raise DataError(path, f"each row must be an object, got {row!r:.60}", number)
    values = {}
    for name, value in row.items():
        try:
            values[str(name)] = to_well_formed_value(to_jsonable_python(value, inf_nan_mode="null"))
        except ValueError as error:
            raise DataError(path, f"{name!r} holds a value that JSON cannot hold: {error}", number) from error
    return values


def _build_name(row: Mapping[str, Any]) -> str:
    """Return a row's id, with the number of the trial if it is not the first."""
    id_, trial = _to_text(row.get("id")), row.get("trial")
    return episode_id(id_, trial) if id_ and type(trial) is int else id_


def _to_text(value: Any) -> str:
    return "" if value is None else str(value)


def _pair_results(lines: Sequence[Line], joins: bool, path: Path, number: int) -> Iterator[Line]:
    """Yield lines. Calls without an id get one; results without an id get that of their call.

    In training sets neither has an id, and results follow their calls in the same order. In ShareGPT's form, one
    message may have all results as a JSON list and, if `joins` is true, the text of a message precedes its calls.
    """
    calls = list[str]()
    for is_result, block in groupby(enumerate(lines), key=lambda each: each[1].role == TOOL):
        if is_result:
            results = [line for _, line in block]
            calls = [id_ for id_ in calls if all(line.tool_call_id != id_ for line in results)]
            if len(results) == 1 < len(calls) and not results[0].tool_call_id:
                with suppress(DataError):
                    texts = parse_json(results[0].content, path, number)
                    if isinstance(texts, list) and len(texts) == len(calls):
                        results = [Line(role=TOOL, content=_format_result(text)) for text in texts]
            for line in results:
                if not (id_ := line.tool_call_id or (calls.pop(0) if calls else "")):
                    raise DataError(path, "a tool result has neither tool_call_id nor a call before it", number)
                yield line.model_copy(update={"tool_call_id": id_})
            continue
        calls, said = [], list[Line]()
        for place, line in block:
            made = tuple(
                FunctionCall(id=call["id"] or f"{place}-{of}", name=call["name"], arguments=call["arguments"])
                for of, call in enumerate(line.tool_calls)
            )
            calls += [call["id"] for call in made]
            follows = joins and made and said and said[-1].role == line.role and not said[-1].tool_calls
            content = said.pop().content if follows else line.content
            said.append(line.model_copy(update={"content": content, "tool_calls": made}))
        yield from said


def _format_result(value: Any) -> str:
    """Return a tool's result, which may be a JSON value, as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _sort_results(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield lines, with each block of tool results in the order of the calls that they answer.

    In files, ids pair results with calls; in training sets and for judges, the order does.
    """
    places, calls = dict[str | None, int](), count()
    for is_result, block in groupby(lines, key=lambda line: line.tool_call_id is not None):
        if is_result:
            yield from sorted(block, key=lambda line: places.get(line.tool_call_id, 0))
            continue
        for line in block:
            places |= {call["id"]: next(calls) for call in line.tool_calls}
            yield line


def _build_columns(given: Any, text: str, others: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that rubrics use as `person` or `task`.

    These are the value under this name in the row (an object, or a value called `text`) or, if there is none, all other
    columns.
    """
    if isinstance(given, Mapping):
        return dict(given)
    return dict(others) if given is None else {text: given}


def _parse_message(each: Any, place: str, path: Path, number: int) -> Sequence[Line]:
    """Return the line of a message, or the two lines of a round."""
    if isinstance(each, dict) and isinstance(each.get("user"), str) and "role" not in each:
        lines = build_round_lines(each)
        if len(lines) < 2 and each.get("assistant") is not None:
            raise DataError(path, f"{place} has no chosen reply of the assistant", number)
        return lines
    if not isinstance(each, dict):
        raise DataError(path, f"{place} must be an object with role and content, got {each!r:.60}", number)
    role = next((each[name] for name in ROLE_KEYS if each.get(name)), None)
    if not isinstance(role, str):
        raise DataError(path, f"{place} has no role; give one of {', '.join(ROLE_KEYS)}", number)
    calls = _parse_calls(each.get("tool_calls") or each.get("function_call") or [], place, path, number)
    key = next((name for name in CONTENT_KEYS if each.get(name) is not None), None)
    content = extract_text(each[key]) if key else "" if calls else None
    if content is None:
        parts = f"{key} {each[key]!r:.60} is not text" if key else f"has no text; give {' or '.join(CONTENT_KEYS)}"
        raise DataError(path, f"{place} {parts}", number)
    if role.lower() == "function_call":
        calls, content = _parse_calls(parse_json(content, path, number), place, path, number), ""
    call_id = str(each.get("tool_call_id") or "") or None
    reason = each.get("finish_reason")
    return [
        Line(
            role=normalize_role(role),
            content=content,
            finish_reason=reason if isinstance(reason, str) and reason in INCOMPLETE_REASONS else None,
            tool_calls=calls,
            tool_call_id=call_id,
        )
    ]


def extract_text(content: Any) -> str | None:
    """Return the text of a message's content, which may be a list of text parts; `None` for other content."""
    if not isinstance(content, str | list):
        return None
    parts = [
        part.get("text") if isinstance(part, dict) else part
        for part in ([content] if isinstance(content, str) else content)
        if not (isinstance(part, dict) and part.get("type") in ("reasoning", "thinking"))
    ]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if len(texts) == len(parts) else None


def _parse_calls(given: Any, place: str, path: Path, number: int) -> tuple[FunctionCall, ...]:
    """Return a message's tool calls, given in dialoom's, OpenAI's, or inspect_ai's form."""
    found = []
    for each in given if isinstance(given, list) else [given]:
        function = each.get("function") if isinstance(each, dict) else None
        inner = (
            function
            if isinstance(function, dict)
            else {**each, "name": function or each.get("name")}
            if isinstance(each, dict)
            else {}
        )
        name, arguments = inner.get("name"), inner.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, str | dict):
            raise DataError(path, f"{place} has a tool call without name or arguments: {each!r:.60}", number)
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        found.append(FunctionCall(id=str(each.get("id") or ""), name=name, arguments=text))
    return tuple(found)


_MODEL_OPERATIONS = ("chat", "generate_content", "text_completion")


def _read_span_rows(path: Path) -> Iterator[NumberedRow]:
    """Yield the longest call of each conversation, because its input contains all earlier messages.

    The file is read twice, and only the conversations' ids are kept in memory.
    """
    longest: dict[str, tuple[int, int, int]] = {}
    is_used = False
    for number, row in read_raw_rows(path):
        is_used |= isinstance(row, DataError) or _has_conversation(row)
        for place, span in enumerate(_extract_spans(row, path, number)):
            is_used = True
            with suppress(DataError):
                found = _parse_span(span, path, number)
                if (length := len(found["messages"])) >= longest.get(found["id"], (0,))[0]:
                    longest[found["id"]] = (length, number, place)
    if not is_used:
        names = ", ".join(_MODEL_OPERATIONS)
        yield 1, DataError(path, f"no span is a model call: none has the gen_ai.operation.name {names}")
    chosen = {(number, place) for _, number, place in longest.values()}
    for number, row in read_raw_rows(path):
        if isinstance(row, DataError) or _has_conversation(row):
            yield number, row
        for place, span in enumerate(_extract_spans(row, path, number)):
            try:
                found = _parse_span(span, path, number)
            except DataError as error:
                yield number, error
            else:
                if (number, place) in chosen:
                    yield number, found


def _extract_spans(row: Mapping[str, Any] | DataError, path: Path, number: int) -> Iterator[Mapping[str, Any]]:
    """Yield the attributes of each span of a model call in a row, as plain values. An error has the key `broken`."""
    if isinstance(row, DataError):
        return
    try:
        scopes = [scope for resource in row.get("resourceSpans", []) for scope in resource.get("scopeSpans", [])]
        for span in [each for scope in scopes for each in scope.get("spans", [])] if "resourceSpans" in row else [row]:
            given = span.get("attributes") or {}
            found = (
                given
                if isinstance(given, Mapping)
                else {each["key"]: _parse_otlp_value(each["value"]) for each in given}
            )
            trace = span.get("traceId") or span.get("trace_id") or (span.get("context") or {}).get("trace_id")
            if found.get("gen_ai.operation.name") in _MODEL_OPERATIONS:
                yield {**found, "gen_ai.conversation.id": found.get("gen_ai.conversation.id") or trace}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        yield {"broken": DataError(path, f"not a span of OpenTelemetry: {type(error).__name__}: {error}", number)}


def _parse_otlp_value(value: Any) -> Any:
    """Return a value in OTLP's JSON form as a plain value."""
    kind: str
    inner: Any
    kind, inner = next(iter(value.items()), ("stringValue", ""))
    if kind == "arrayValue":
        return [_parse_otlp_value(each) for each in inner.get("values", [])]
    if kind == "kvlistValue":
        return {each["key"]: _parse_otlp_value(each["value"]) for each in inner.get("values", [])}
    return int(inner) if kind == "intValue" else inner


def _parse_span(span: Mapping[str, Any], path: Path, number: int) -> dict[str, Any]:
    """Return a span's conversation as a row: the messages sent, and the reply.

    Raises:
        DataError: If the span has no messages or belongs to no conversation, or a part of a message is neither text nor
            a tool call.
    """
    if "broken" in span:
        raise span["broken"]

    if not (id_ := span["gen_ai.conversation.id"]):
        message = (
            "the span of a model call has neither gen_ai.conversation.id nor a trace id: its conversation is unknown"
        )
        raise DataError(path, message, number)

    def plain(name: str) -> list[Any]:
        value = span.get(f"gen_ai.{name}") or []
        found = parse_json(value, path, number) if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise DataError(path, f"gen_ai.{name} must be a list of objects, got {value!r:.60}", number)
        return found

    if not (messages := [*plain("input.messages"), *plain("output.messages")]):
        message = "the span of a model call has no gen_ai.input.messages; enable content capture"
        raise DataError(path, message, number)
    system = plain("system_instructions")
    messages = [*([{"role": "system", "parts": system}] if system else []), *messages]
    return {
        "id": str(id_),
        "model": span.get("gen_ai.request.model", ""),
        "messages": [message for each in messages for message in _convert_parts(each, path, number)],
        "tools": plain("tool.definitions"),
    }


def _convert_parts(message: Mapping[str, Any], path: Path, number: int) -> Iterator[Mapping[str, Any]]:
    """Yield a message in OpenTelemetry's form as chat messages. Each tool result becomes a separate message."""
    texts, calls = list[str](), list[Mapping[str, Any]]()
    given = message.get("parts") or []
    for part in given if isinstance(given, list) else [given]:
        match part.get("type") if isinstance(part, dict) else None:
            case "text":
                texts.append(str(part.get("content", "")))
            case "tool_call":
                calls.append({**part, "arguments": part.get("arguments") or {}})
            case "tool_call_response":
                found = _format_result(part.get("response", part.get("result", "")))
                yield {"role": "tool", "tool_call_id": part.get("id"), "content": found}
            case "reasoning" | "thinking":
                continue
            case _:
                raise DataError(path, f"a part of a message is neither text nor a tool call: {part!r:.60}", number)
    if texts or calls:
        said = {"role": message.get("role"), "content": "\n".join(texts), "tool_calls": calls}
        yield {**said, "finish_reason": message.get("finish_reason")}


def _read_inspect_rows(path: Path) -> Iterator[NumberedRow]:
    """Yield the samples of an inspect_ai log: a zip archive with a JSON file for each sample and epoch."""
    with suppress(ModuleNotFoundError):
        importlib.import_module("zipfile_zstd")  # teaches zipfile the compression of recent logs
    with open_input(path) as file:
        try:
            archive = zipfile.ZipFile(file)
            names = sorted(name for name in archive.namelist() if name.startswith("samples/"))
        except zipfile.BadZipFile as error:
            raise DataError(path, f"not an inspect_ai log: {error}") from error
        for number, name in enumerate(names, 1):
            yield number, _read_archived_sample(archive, name, path, number)


def _read_archived_sample(
    archive: zipfile.ZipFile, name: str, path: Path, number: int
) -> Mapping[str, Any] | DataError:
    try:
        if archive.getinfo(name).file_size > MAX_BYTES:
            return DataError(path, f"{name} is larger than {MAX_BYTES:,} bytes", number)
        return _parse_sample(parse_json(archive.read(name).decode(), path, number), path, number)
    except NotImplementedError:
        need = "pip install zipfile-zstd, or give the log in inspect_ai's JSON format"
        return DataError(path, f"{name} is compressed with Zstandard: {need}", number)
    except (ValueError, zipfile.BadZipFile) as error:
        return DataError(path, f"{name} cannot be read: {error}", number)
    except DataError as error:
        return error


def _parse_sample(sample: Any, path: Path, number: int) -> Mapping[str, Any] | DataError:
    """Return a sample of an inspect_ai log as a row."""
    if not isinstance(sample, dict) or not {"id", "epoch", "messages"} <= sample.keys():
        return DataError(path, "not a sample of inspect_ai, which has id, epoch and messages", number)
    return {
        **(sample.get("metadata") or {}),
        "id": f"{sample['id']} epoch {sample['epoch']}",
        "messages": sample["messages"],
        "target": sample.get("target"),
        **({"ended_by": "error"} if sample.get("error") else {}),
    }

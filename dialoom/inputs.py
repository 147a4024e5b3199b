"""Reading the files that users specify; only this module opens them. It is below all layers.

Such a file may be anything: a device that never ends, a pipe without a writer, text in another encoding, data nested a
hundred thousand levels deep. Therefore, only regular files are read, and their size, nesting and numbers are limited.
Every problem is raised as a `DataError` with the file and, if there is one, the line. Duplicate keys are refused,
because it is unknown which of the two values was meant.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import IO, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from dialoom.errors import Advice, DialoomError

MAX_BYTES = 256 * 2**20
"""Maximum size in bytes of a file that is read as a whole; JSON of this size takes some gigabytes of memory."""
MAX_YAML_BYTES = 2**20
"""Maximum size in bytes of YAML, TOML and settings files, which people write by hand."""
MAX_LINE_BYTES = 64 * 2**20
"""Maximum size in bytes of a line in a file that is read line by line; the number of lines is not limited."""

_MAX_DEPTH = 100
_MAX_DIGITS = 300
"""Maximum number of digits of an integer, as many as a floating-point number can have."""
_SQLITE_MAGIC = b"SQLite format 3\x00"
_STREAM_FOLDERS = (Path("/dev"), Path("/proc"))
_FILE_TYPES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:]+')


class DataError(DialoomError):
    """An error in a file: the place (file, line or key), the invalid value, and what would be valid."""

    def __init__(
        self, path: str | Path, message: str, line: int | None = None, *, advice: Advice | None = None
    ) -> None:
        place = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {message}", advice=advice)


class Frozen(BaseModel):
    """An immutable model."""

    model_config = ConfigDict(frozen=True)


class Record(Frozen):
    """An immutable model without unknown keys, such as a record of a file."""

    model_config = ConfigDict(extra="forbid")


Model = TypeVar("Model", bound=BaseModel)


def validate_model(model: type[Model], value: Any, path: str | Path, line: int | None = None, part: str = "") -> Model:
    """Return a value from a file as a pydantic model.

    Args:
        model: The type of the model.
        value: The value, as read from the file.
        path: The file.
        line: The value's line, for error messages.
        part: The part of the file that holds the value, such as `row 3`, for error messages.

    Raises:
        DataError: If the value is invalid; the message has the part, the key, the invalid value and what would be
            valid.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        place, first = _find_problem(error, value)
        message, invalid = first["msg"], first["input"]
        match first["type"]:
            case "missing":
                problem = f"{place!r} is missing"
            case "extra_forbidden" if "." not in place:
                problem = f"unknown key {place!r}; the keys are {', '.join(model.model_fields)}"
            case _:
                problem = (
                    f"{repr(place) if place else 'it'} is {invalid!r:.60}: {message.removeprefix('Value error, ')}"
                )
        raise DataError(path, f"{part}: {problem}" if part else problem, line) from error


def _find_problem(error: ValidationError, value: Any) -> tuple[str, ErrorDetails]:
    """Return the first problem of a value, and the position of the problem in the value.

    For a union, pydantic reports the problems of every type, and adds the type's name to the place. The type with the
    fewest problems is taken as the intended one.
    """
    problems = error.errors()
    first = problems[0]
    place: list[str] = []
    depth = -1
    while (depth := depth + 1) < len(first["loc"]):
        part = first["loc"][depth]
        if isinstance(value, list | tuple) and isinstance(part, int):
            place.append(str(part))
            value = value[part] if part < len(value) else None
        elif isinstance(value, Mapping) and (part in value or depth == len(first["loc"]) - 1):
            place.append(str(part))
            value = value.get(part)
        else:  # the name of a type within a union
            siblings = [each for each in problems if each["loc"][:depth] == first["loc"][:depth]]
            counts = Counter(each["loc"][depth] for each in siblings)
            likely_type = min(counts, key=counts.__getitem__)
            first = next(each for each in siblings if each["loc"][depth] == likely_type)
    return ".".join(place), first


def open_input(path: Path, *, streams: bool = False) -> IO[bytes]:
    """Open a regular file to read it.

    Args:
        path: The file.
        streams: Whether inherited streams are also allowed: `/dev/stdin`, or `<(command)` in a shell.

    Raises:
        DataError: If there is no such file, it cannot be opened, or it is not a regular file.
    """
    try:
        # Opening a pipe must not block until it has a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise DataError(path, "there is no such file") from error
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(repr(str(path)), "is not a path: it contains a null character") from error
    file_type = stat.S_IFMT(os.fstat(descriptor).st_mode)
    is_stream = (
        streams
        and file_type in (stat.S_IFIFO, stat.S_IFCHR)
        and any(map(path.absolute().is_relative_to, _STREAM_FOLDERS))
    )
    if file_type != stat.S_IFREG and not is_stream:
        os.close(descriptor)
        raise DataError(path, f"is {_FILE_TYPES.get(file_type, 'not a file')}; it must be a regular file")
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb")


def check_regular(path: Path) -> None:
    """Check that a file that another library will open is a regular file.

    Raises:
        DataError: In the same cases as `open_input`.
    """
    file_type = stat.S_IFMT(_stat(path).st_mode)
    if file_type != stat.S_IFREG:
        raise DataError(path, f"is {_FILE_TYPES.get(file_type, 'not a file')}; it must be a regular file")


def is_sqlite(path: Path) -> bool:
    """Return whether a path is a regular file that begins with SQLite's magic bytes."""
    try:
        with open_input(path) as file:
            return file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    except (DataError, OSError):
        return False


def read_bytes(path: Path, max_bytes: int = MAX_BYTES, *, streams: bool = False) -> bytes:
    """Return the content of a file.

    Args:
        path: The file.
        max_bytes: Maximum size in bytes.
        streams: As for `open_input`.

    Raises:
        DataError: If it cannot be read, is not a regular file, or is larger than `max_bytes`.
    """
    with open_input(path, streams=streams) as file:
        try:
            content = file.read(max_bytes + 1)
        except OSError as error:
            raise DataError(path, f"cannot be read: {error.strerror}") from error
    if len(content) > max_bytes:
        raise DataError(path, f"is larger than {max_bytes:,} bytes")
    return content


def read_text(path: Path, max_bytes: int = MAX_BYTES, *, streams: bool = False) -> str:
    """Return the text of a UTF-8 file, without a byte order mark.

    Raises:
        DataError: In the same cases as `read_bytes`, or if the file is not UTF-8.
    """
    content = read_bytes(path, max_bytes, streams=streams)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(path, f"not UTF-8: byte {content[error.start]:#04x}; save it as UTF-8", line) from error


def read_lines(path: Path, max_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """Yield every line of a file of any length, without its end, and its number (from 1).

    Only the newline character ends a line, because JSON text may contain the other line separators.

    Args:
        path: The file.
        max_bytes: Maximum size of a line in bytes.

    Raises:
        DataError: In the same cases as `open_input`, or if a line is longer than `max_bytes`.
    """
    with open_input(path) as file:
        for number in count(1):
            try:
                line = file.readline(max_bytes + 1)
            except OSError as error:
                raise DataError(path, f"cannot be read: {error.strerror}", number) from error
            if not line:
                return
            if len(line) > max_bytes:
                raise DataError(path, f"the line is longer than {max_bytes:,} bytes", number)
            yield number, line.removesuffix(b"\n").removesuffix(b"\r")


def read_json(path: Path) -> Any:
    """Return the value of a JSON file.

    Raises:
        DataError: In the same cases as `read_text` and `parse_json`.
    """
    return parse_json(read_text(path), path)


def parse_json(text: str, path: str | Path, line: int | None = None) -> Any:
    """Return the value of a JSON text.

    Args:
        text: The text.
        path: The file that contains it, for error messages.
        line: The line's number, if the text is one line of the file; otherwise errors give lines within the text.

    Raises:
        DataError: If it is not JSON, is nested more than 100 levels deep, or contains a duplicate key or an integer of
            more than 300 digits.
    """
    value, end = decode_json(text, path, line)
    if rest := text[end:].strip():
        rest_line = line or text.count("\n", 0, end) + 1
        raise DataError(path, f"not JSON: {rest[:30]!r} follows the value; there must be a single value", rest_line)
    return value


def decode_json(text: str, path: str | Path, line: int | None = None, start: int = 0) -> tuple[Any, int]:
    """Return the JSON value that begins at `start`, and the position of its end; see `parse_json`."""
    start += len(text[start:]) - len(text[start:].lstrip())
    try:
        value, end = _DECODER.raw_decode(text, start)
        _check_depth(value)
    except json.JSONDecodeError as error:
        found, reason = text[error.pos : error.pos + 30], error.msg.removesuffix(" at")
        message = f"not JSON: {reason} at column {error.colno} ({found!r})"
        raise DataError(path, message, line or error.lineno) from error
    except (_RefusedError, RecursionError) as error:
        message = str(error) if isinstance(error, _RefusedError) else _TOO_DEEP
        raise DataError(path, message, line or _find_refused_line(text, start)) from error
    return value, end


def read_yaml(path: Path) -> Any:
    """Return the value of a YAML file.

    Raises:
        DataError: In the same cases as `read_text` and `parse_yaml`.
    """
    return parse_yaml(read_text(path, MAX_YAML_BYTES), path)


def parse_yaml(text: str, path: str | Path, first_line: int = 1) -> Any:
    """Return the value of a YAML text: mappings, lists, strings, numbers, `true`, `false` and `null`.

    Anything else is a string, such as a date, a time of day (`7:30`), `007`, a telephone number (`+49170`), `yes` and
    `no`. Aliases and tags are refused.

    Args:
        text: The text.
        path: The file that contains it, for error messages.
        first_line: The line of the file on which the text begins.

    Raises:
        DataError: If it is not YAML, is nested more than 100 levels deep, or contains a duplicate key or an integer of
            more than 300 digits.
    """
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(filter(None, (error.context, error.problem)))
        kind = "" if isinstance(error, _RefusedNodeError) else "not YAML: "
        raise DataError(path, kind + reason, None if mark is None else first_line + mark.line) from error
    except yaml.YAMLError as error:
        raise DataError(path, f"not YAML: {' '.join(str(error).split())}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        DataError: In the same cases as `read_text`, or if the file is not TOML.
    """
    return parse_toml(read_text(path, MAX_YAML_BYTES), path)


def parse_toml(text: str, path: str | Path) -> dict[str, Any]:
    """Return the tables of a TOML text.

    Args:
        text: The text.
        path: The file that contains it, for error messages.

    Raises:
        DataError: If it is not TOML, is nested more than 100 levels deep, or contains an integer of more than 300
            digits.
    """
    try:
        values = tomllib.loads(text.replace("\r\n", "\n"))
        _check_depth(values)
    except tomllib.TOMLDecodeError as error:
        raise DataError(path, f"not TOML: {error}") from error
    except _RefusedError as error:
        raise DataError(path, str(error)) from error
    except RecursionError as error:
        raise DataError(path, _TOO_DEEP) from error
    except ValueError as error:  # from int(); tomllib does not report the position
        long_integer = re.search(rf"\d{{{_MAX_DIGITS + 1}}}", text)
        raise DataError(
            path, _TOO_LONG, text.count("\n", 0, long_integer.start()) + 1 if long_integer else None
        ) from error
    return values


class _RefusedError(ValueError):
    """Data that is well-formed but not accepted."""


_TOO_DEEP = f"nested more than {_MAX_DEPTH} deep"
_TOO_LONG = f"an integer has more than {_MAX_DIGITS} digits"


def _parse_integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise _RefusedError(_TOO_LONG)
    return int(digits)


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        duplicate = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise _RefusedError(f"the key {duplicate!r:.60} is given twice")
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_build_object, parse_int=_parse_integer)


def _check_depth(value: Any, remaining: int = _MAX_DEPTH) -> None:
    """Check that a value is not nested too deeply, and contains no integer with too many digits."""
    if isinstance(value, dict | list):
        if not remaining:
            raise _RefusedError(_TOO_DEEP)
        for part in value.values() if isinstance(value, dict) else value:
            if isinstance(part, dict | list):
                _check_depth(part, remaining - 1)
            elif isinstance(part, int) and part.bit_length() > 4 * _MAX_DIGITS:  # a hexadecimal number
                raise _RefusedError(_TOO_LONG)


def _find_refused_line(text: str, start: int) -> int | None:
    """Return the line of the first problem: a duplicate key, an integer that is too long, or excessive nesting."""
    open_: list[set[str] | None] = []
    previous = ""
    for token in _JSON_TOKEN.finditer(text, start):
        word = token[0]
        is_duplicate = False
        if word == ":" and open_ and (keys := open_[-1]) is not None:
            is_duplicate = previous in keys
            keys.add(previous)
        elif word in "{[":
            open_.append(set() if word == "{" else None)
        elif word in "}]" and open_:
            open_.pop()
        if is_duplicate or len(open_) > _MAX_DEPTH or (len(word) > _MAX_DIGITS and word.lstrip("-").isdigit()):
            return text.count("\n", 0, token.start()) + 1
        previous = word
    return None


class _RefusedNodeError(yaml.MarkedYAMLError):
    """A YAML node that is well-formed but not accepted."""

    def __init__(self, message: str, place: yaml.Mark) -> None:
        super().__init__(None, None, message, place)


class _Loader(yaml.SafeLoader):
    """A YAML loader of plain values: it refuses aliases, tags and duplicate keys."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None) is not None:
            raise _RefusedNodeError("aliases (*name) and tags (!name) are not accepted", event.start_mark)
        if self.depth > _MAX_DEPTH:
            raise _RefusedNodeError(_TOO_DEEP, event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True) if isinstance(key_node, yaml.ScalarNode) else key_node
            if key in seen:
                raise _RefusedNodeError(f"the key {key!r:.60} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        if len(node.value) > _MAX_DIGITS:
            raise _RefusedNodeError(_TOO_LONG, node.start_mark)
        return int(super().construct_yaml_int(node))


_NULL, _BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float"))
_Loader.add_constructor(_INT, _Loader.construct_integer)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag == _NULL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _firsts in (
    (_BOOL, r"(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    (_INT, r"-?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+)$", "-0123456789"),
    (_FLOAT, r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?$|[-+]?\.(?:inf|Inf|INF)$", "-+.0123456789"),
    (_FLOAT, r"\.(?:nan|NaN|NAN)$", "."),
):
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), [*_firsts])


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except FileNotFoundError as error:
        raise DataError(path, "there is no such file") from error
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from error

"""Scenarios: frozen units of work, each with an id derived from its content; and values that many of them share."""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationInfo,
)
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")

REFERENCE = "$shared"
_HELD = 64


class Shared(Generic[T]):
    """A field of scenarios whose value is one object for all of them: `turns: Shared[tuple[Line, ...]]`.

    A recipe makes it once, `turns = Shared(lines)`, and passes it to any number of scenarios. Each scenario's id and
    row in the plan contain only the value's hash, and the value is stored once. It must not be changed.

    Args:
        value: The value; it is not validated again.
    """

    __slots__ = ("_text", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self._text: tuple[str, str] | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Shared) and self.value == other.value)

    def __hash__(self) -> int:
        return hash(Shared)  # the value may be unhashable, and equal values need equal hashes

    def __repr__(self) -> str:
        return f"Shared({self.value!r})"

    def text(self, plain: Callable[[T], Any]) -> tuple[str, str]:
        """Return the first 32 hex digits of the SHA-256 of the value's JSON, and that JSON, which is made once.

        Args:
            plain: Converts the value to plain values.
        """
        if self._text is None:
            text = json.dumps(plain(self.value), ensure_ascii=False, separators=(",", ":"))
            self._text = hashlib.sha256(text.encode()).hexdigest()[:32], text
        return self._text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (kind,) = get_args(source) or (Any,)

        def validated(value: Any, check: Callable[[Any], T], info: ValidationInfo) -> Shared[T]:
            if isinstance(value, Shared):
                return value
            held = info.context
            if isinstance(held, SharedValues) and isinstance(value, dict) and value.keys() == {REFERENCE}:
                return held.get(kind, value[REFERENCE], check)
            return Shared(check(value))

        def plain(value: Shared[T], dumped: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
            if not isinstance(info.context, ByHash):
                return dumped(value.value)
            hash_, text = value.text(dumped)
            info.context.keep(hash_, text)
            return {REFERENCE: hash_}

        inner = handler.generate_schema(kind)
        return core_schema.with_info_wrap_validator_function(
            validated,
            inner,
            serialization=core_schema.wrap_serializer_function_ser_schema(plain, info_arg=True, schema=inner),
        )


class ByHash:
    """A serialization context in which shared values are dumped as references; without it they are dumped in full.

    Args:
        keep: Takes the hash and the JSON of each shared value.
    """

    def __init__(self, keep: Callable[[str, str], object] = lambda _hash, _text: None) -> None:
        self.keep = keep


class SharedValues:
    """A validation context for scenarios dumped by hash; recently read values are cached as the same object.

    Args:
        fetch: Returns the plain value of a hash.
    """

    def __init__(self, fetch: Callable[[str], Any]) -> None:
        self._fetch = fetch
        self._held: OrderedDict[tuple[Any, str], Shared[Any]] = OrderedDict()

    def get(self, kind: Any, hash_: str, check: Callable[[Any], Any]) -> Shared[Any]:
        """Return the shared value of a hash.

        Args:
            kind: Its type.
            hash_: The hash.
            check: Validates a plain value as that type.
        """
        name = (kind, hash_)
        if name not in self._held:
            self._held[name] = Shared(check(self._fetch(hash_)))
            if len(self._held) > _HELD:
                self._held.popitem(last=False)
        self._held.move_to_end(name)
        return self._held[name]


_LABEL = 40
"""The most characters of a label made from a scenario's fields."""


class Scenario(BaseModel):
    """One dialogue or one tree to play. Equal content gives equal ids on every machine."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    @property
    def label(self) -> str:
        """A short text that identifies it, e.g. `user2 SD-Alarm-task-1 base`; by default its first facets."""
        return " ".join(map(str, self.facets().values()))[:_LABEL] or type(self).__name__

    def facets(self) -> dict[str, Any]:
        """Return the short JSON values that reports group by: by default all fields that are text or numbers."""
        values = self.model_dump(mode="json")
        return {name: value for name, value in values.items() if isinstance(value, str | int | float)}

    def described(self) -> dict[str, Any]:
        """Return the description for exports and readers of one dialogue: the facets, and longer texts."""
        return self.facets()

    def portrait(self) -> Mapping[str, Any]:
        """Return a description of the person for readers of one dialogue, beyond `described`."""
        return {}

    def preferences(self) -> Mapping[str, str]:
        """Return the person's preferences that may occur in the conversation, by name; semicolons separate values."""
        return {}

    @property
    def loads(self) -> tuple[str, ...]:
        """Models that are loaded into this process, bypassing the gateway; their files may hold code."""
        return ()

    @cached_property
    def id(self) -> str:
        """The label, reduced to characters safe on a command line, and 10 hex digits of the content's SHA-256."""
        return self.id_of(self.model_dump(mode="json", context=ByHash()))

    def id_of(self, values: Mapping[str, Any]) -> str:
        """Return the id, from the scenario's fields as JSON values with shared ones by their hashes."""
        digest = hashlib.sha256(json.dumps(values, ensure_ascii=False).encode()).hexdigest()[:10]
        return f"{re.sub(r'[^0-9A-Za-z]+', '-', self.label).strip('-')}-{digest}"

"""What many scenarios have in common, such as hundreds of fixed turns: held once, stored once, told by its hash."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar, get_args

from pydantic import GetCoreSchemaHandler, SerializationInfo, SerializerFunctionWrapHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")

REFERENCE = "$shared"
_HELD = 64


class Shared(Generic[T]):
    """A field of scenarios whose value is one object for all that have it: `turns: Shared[tuple[Line, ...]]`.

    A recipe makes it once, `turns = Shared(lines)`, and gives it to any number of scenarios. Each of them counts with a
    hash of it in its id and in its row of the plan, and the value is stored once. Nobody may change it.

    Args:
        value: The value; it is not checked again.
    """

    __slots__ = ("_text", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self._text: tuple[str, str] | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Shared) and self.value == other.value)

    def __hash__(self) -> int:
        return hash(Shared)  # of what can change nothing is known but that it is shared

    def __repr__(self) -> str:
        return f"Shared({self.value!r})"

    def text(self, plain: Callable[[T], Any]) -> tuple[str, str]:
        """The value's JSON, made once, and before it its hash: the first 32 hex digits of SHA-256.

        Args:
            plain: Makes plain values of it.
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
    """The context in which a scenario is dumped with references to what it shares; otherwise it holds the values.

    Args:
        keep: Takes the hash and the JSON of each of them.
    """

    def __init__(self, keep: Callable[[str, str], object] = lambda _hash, _text: None) -> None:
        self.keep = keep


class SharedValues:
    """The context in which a scenario that was dumped by hash is read; a value that was read lately is the same object.

    Args:
        fetch: Gives the plain value of a hash.
    """

    def __init__(self, fetch: Callable[[str], Any]) -> None:
        self._fetch = fetch
        self._held: OrderedDict[tuple[Any, str], Shared[Any]] = OrderedDict()

    def get(self, kind: Any, hash_: str, check: Callable[[Any], Any]) -> Shared[Any]:
        """The shared value of a hash.

        Args:
            kind: Its type.
            hash_: The hash.
            check: Makes the value of that type out of a plain one.
        """
        name = (kind, hash_)
        if name not in self._held:
            self._held[name] = Shared(check(self._fetch(hash_)))
            if len(self._held) > _HELD:
                self._held.popitem(last=False)
        self._held.move_to_end(name)
        return self._held[name]

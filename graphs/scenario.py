"""Scenarios: frozen units of work with ids that are derived from their content.

It also defines the type of values that many scenarios share.
"""

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

REFERENCE_KEY = "$shared"
_MAX_CACHED_VALUES = 64


class Shared(Generic[T]):
    """A field whose value is the same object in many scenarios, e.g. `turns: Shared[tuple[Line, ...]]`.

    A recipe creates it once, `turns = Shared(lines)`, and passes it to any number of scenarios. Each scenario's id and
    row in the plan contain only the value's hash, and the value is stored once. The value must not be changed.

    Args:
        value: The value, which is not validated again.
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
        """Return the value's hash (32 hex digits of the SHA-256 of its JSON) and its JSON. Both are computed only once.

        Args:
            plain: A function that converts the value to plain values.
        """
        if self._text is None:
            text = json.dumps(plain(self.value), ensure_ascii=False, separators=(",", ":"))
            self._text = hashlib.sha256(text.encode()).hexdigest()[:32], text
        return self._text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (kind,) = get_args(source) or (Any,)

        def validate(value: Any, check: Callable[[Any], T], info: ValidationInfo) -> Shared[T]:
            if isinstance(value, Shared):
                return value
            shared = info.context
            if isinstance(shared, SharedValueCache) and isinstance(value, dict) and value.keys() == {REFERENCE_KEY}:
                return shared.get(kind, value[REFERENCE_KEY], check)
            return Shared(check(value))

        def serialize(value: Shared[T], dump: SerializerFunctionWrapHandler, info: SerializationInfo) -> Any:
            if not isinstance(info.context, ByHash):
                return dump(value.value)
            hash_, text = value.text(dump)
            info.context.keep(hash_, text)
            return {REFERENCE_KEY: hash_}

        inner = handler.generate_schema(kind)
        return core_schema.with_info_wrap_validator_function(
            validate,
            inner,
            serialization=core_schema.wrap_serializer_function_ser_schema(serialize, info_arg=True, schema=inner),
        )


class ByHash:
    """A serialization context in which shared values are dumped as hashes. Without it, they are dumped in full.

    Args:
        keep: A function that is called with the hash and the JSON of each shared value.
    """

    def __init__(self, keep: Callable[[str, str], object] = lambda _hash, _text: None) -> None:
        self.keep = keep


class SharedValueCache:
    """A validation context for scenarios dumped by hash. It caches recently read values, so that scenarios share them.

    Args:
        fetch: A function that returns the plain value of a hash.
    """

    def __init__(self, fetch: Callable[[str], Any]) -> None:
        self._fetch = fetch
        self._cache: OrderedDict[tuple[Any, str], Shared[Any]] = OrderedDict()

    def get(self, kind: Any, hash_: str, check: Callable[[Any], Any]) -> Shared[Any]:
        """Return the shared value of a hash.

        Args:
            kind: The type of the value.
            hash_: The hash.
            check: A function that validates a plain value as this type.
        """
        if (key := (kind, hash_)) not in self._cache:
            self._cache[key] = Shared(check(self._fetch(hash_)))
            if len(self._cache) > _MAX_CACHED_VALUES:
                self._cache.popitem(last=False)
        self._cache.move_to_end(key)
        return self._cache[key]


MAX_LABEL_CHARACTERS = 40
"""Maximum number of characters of a label made from a scenario's fields."""


class Scenario(BaseModel):
    """A dialogue or tree to play. Scenarios with equal content have the same id on every machine.

    Example:
        >>> class Errand(dialoom.Scenario):
        ...     goal: str
        >>> Errand(goal="return a kettle").id
        'return-a-kettle-f9d1c84108'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    @property
    def label(self) -> str:
        """A short text that identifies the scenario, e.g. `user2 SD-Alarm-task-1 base`; by default its first facets."""
        return " ".join(map(str, self.facets().values()))[:MAX_LABEL_CHARACTERS] or type(self).__name__

    def facets(self) -> dict[str, Any]:
        """Return the short JSON values by which reports group scenarios.

        By default, these are all fields that are texts or numbers.
        """
        values = self.model_dump(mode="json")
        return {name: value for name, value in values.items() if isinstance(value, str | int | float)}

    def described(self) -> dict[str, Any]:
        """Return a description for exports and for readers of a dialogue: the facets and longer texts."""
        return self.facets()

    def portrait(self) -> Mapping[str, Any]:
        """Return a description of the person, shown to readers of a dialogue in addition to `described`."""
        return {}

    def preferences(self) -> Mapping[str, str]:
        """Return the person's preferences that may occur in the conversation, by name.

        If a preference has several values, semicolons separate them.
        """
        return {}

    @property
    def loads(self) -> tuple[str, ...]:
        """The names of models that are loaded into the process instead of being called through the gateway.

        Their files may contain code.
        """
        return ()

    @cached_property
    def id(self) -> str:
        """The label, reduced to characters that are safe on a command line, and 10 hex digits of the content's hash.

        If no character of the label is left, `scenario` replaces it, since an id must not look like an option.
        """
        return self.id_of(self.model_dump(mode="json", context=ByHash()))

    def id_of(self, values: Mapping[str, Any]) -> str:
        """Return the id for the scenario's fields, given as JSON values in which hashes replace shared values."""
        digest = hashlib.sha256(json.dumps(values, ensure_ascii=False).encode()).hexdigest()[:10]
        return f"{re.sub(r'[^0-9A-Za-z]+', '-', self.label).strip('-') or 'scenario'}-{digest}"

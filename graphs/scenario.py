"""Scenarios: frozen units of work, each with an id derived from its content."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict

from .shared import ByHash

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
        content = json.dumps(self.model_dump(mode="json", context=ByHash()), ensure_ascii=False)
        digest = hashlib.sha256(content.encode()).hexdigest()[:10]
        return f"{re.sub(r'[^0-9A-Za-z]+', '-', self.label).strip('-')}-{digest}"

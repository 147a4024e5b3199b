"""A scenario: one unit of work, frozen, with an id that follows from its content."""

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
"""Characters of a label that is made of a scenario's fields."""


class Scenario(BaseModel):
    """One dialogue or one tree to be made. Equal content gives the equal id, anywhere."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    @property
    def label(self) -> str:
        """A short text that people recognise it by, e.g. `user2 SD-Alarm-task-1 base`; by default its first facets."""
        return " ".join(map(str, self.facets().values()))[:_LABEL] or type(self).__name__

    def facets(self) -> dict[str, Any]:
        """Return what reports group by, a few short JSON values: by default all fields that are text or numbers."""
        values = self.model_dump(mode="json")
        return {name: value for name, value in values.items() if isinstance(value, str | int | float)}

    def described(self) -> dict[str, Any]:
        """What exports and readers of one dialogue are shown of it: the facets, and longer texts."""
        return self.facets()

    def portrait(self) -> Mapping[str, Any]:
        """Who the person is, for readers of one dialogue, as far as `described` does not say it."""
        return {}

    def preferences(self) -> Mapping[str, str]:
        """The person's preferences that may come up in what is said, by name; semicolons stand between values."""
        return {}

    @property
    def loads(self) -> tuple[str, ...]:
        """Names of models that playing it loads into this process, past the gateway; as their files may hold code."""
        return ()

    @cached_property
    def id(self) -> str:
        """The label made fit for a command line, and 10 hex digits of the content's SHA-256."""
        content = json.dumps(self.model_dump(mode="json", context=ByHash()), ensure_ascii=False)
        digest = hashlib.sha256(content.encode()).hexdigest()[:10]
        return f"{re.sub(r'[^0-9A-Za-z]+', '-', self.label).strip('-')}-{digest}"

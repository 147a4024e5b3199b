"""Many requests of one node at once, each with one call and so with a place that no other reply can shift."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from dialoom.roles import UnparsedReplyError

from .stage import Scene

Key = TypeVar("Key", bound=Hashable)

_AT_ONCE = 16
"""Calls under way in a node: a scenario may want thousands."""


async def ask_each(
    scene: Scene,
    prompt: str | Callable[[Key], str],
    inputs: Mapping[Key, Mapping[str, Any]],
    role: Callable[[Key], str] | None = None,
    *,
    common: bool = False,
) -> dict[Key, Any]:
    """The replies to several requests, by their keys; `None` where one could not be read.

    Each makes one call, so that the order in which replies come decides nothing.

    Args:
        scene: The node's.
        prompt: The prompt of all of them, or of each.
        inputs: What each is about.
        role: Who is asked, if it is not the prompt's own role.
        common: Whether the calls belong to no scenario: each is made once, however many scenarios want it.
    """
    ask = scene.ask_common if common else scene.ask

    async def asked(key: Key) -> Any:
        name = prompt if isinstance(prompt, str) else prompt(key)
        try:
            if role is None:
                return await ask(name, **inputs[key])
            return await scene.ask_role(role(key), name, **inputs[key])
        except UnparsedReplyError:
            return None

    keys: Sequence[Key] = list(inputs)
    found: dict[Key, Any] = {}
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        found |= zip(some, await asyncio.gather(*map(asked, some)), strict=True)
    return found

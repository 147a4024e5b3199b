"""Concurrent requests of one node: each makes exactly one call, so no reply can shift another call's place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from dialoom.roles import UnparsedReplyError

from .stage import Scene

Key = TypeVar("Key", bound=Hashable)

_AT_ONCE = 16
"""The most calls that a node has under way at once; a scenario may want thousands."""


async def ask_each(
    scene: Scene,
    prompt: str | Callable[[Key], str],
    inputs: Mapping[Key, Mapping[str, Any]],
    role: Callable[[Key], str] | None = None,
    *,
    common: bool = False,
) -> dict[Key, Any]:
    """Return the replies to several requests by key, `None` where a reply could not be parsed.

    Each request makes one call, so the order in which replies arrive affects nothing.

    Args:
        scene: The node's scene.
        prompt: The prompt of all requests, or a function that returns the prompt of a key.
        inputs: The prompt's inputs, by key.
        role: Returns the role to ask for a key; by default the prompt's own role.
        common: Whether the calls belong to no scenario: each is made once, however many scenarios request it.
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

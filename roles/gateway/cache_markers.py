"""Marks that tell a provider how much of a request its prompt cache should keep, for those that want to be told."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from dialoom.prompts import ChatMessage

from .tool_wire import is_nothing, is_of_tools, wire_messages

_HOSTS = frozenset({"bedrock", "bedrock_converse", "vertex_ai", "vertex_ai_beta", "openrouter", "azure_ai"})


@functools.cache
def wants_markers(litellm: ModuleType, model: str) -> bool:
    """Whether the model's provider caches only what is marked: Anthropic, at its own address or at another's.

    The others cache prefixes by themselves, or not at all.
    """
    name, provider, *_ = litellm.get_llm_provider(model)
    if provider == "anthropic":
        return True
    return provider in _HOSTS and "claude" in name and bool(litellm.utils.supports_prompt_caching(model))


def marked(messages: tuple[ChatMessage, ...], model: str = "", is_growing: bool = False) -> list[dict[str, Any]]:
    """The messages in parts, with neighbours of the same role joined, and the ends of the stable prefix marked.

    There are two: the instructions, which a whole scenario shares, and all but the last message, which this role's next
    request will begin with. Calls and what tools said are not marked, but what stands before them.

    Args:
        messages: The messages.
        model: Who is asked.
        is_growing: Whether the next request will begin with all of this one, as that of an agent with tools does.
    """
    system = max((index for index, message in enumerate(messages) if message["role"] == "system"), default=-1)
    whole = messages if is_growing else messages[:-1]
    last = max((index for index, message in enumerate(whole) if not is_of_tools(message)), default=-1)
    ends = {index for index in (system, last) if index >= 0}
    joined: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        if is_of_tools(message):
            joined += wire_messages([message], model)
            continue
        if is_nothing(message):
            continue
        part: dict[str, Any] = {"type": "text", "text": message["content"]}
        if index in ends and message["content"].strip():  # an empty part may not be marked
            part["cache_control"] = {"type": "ephemeral"}
        if joined and joined[-1]["role"] == message["role"] and "tool_calls" not in joined[-1]:
            joined[-1]["content"].append({**part, "text": "\n\n" + part["text"]})
        else:
            joined.append({"role": message["role"], "content": [part]})
    return joined

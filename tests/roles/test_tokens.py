"""Counting tokens: the published encoding, without a network or a variable."""

from __future__ import annotations

import os

import pytest

from dialoom.personas.preferences import DEFAULT_POOL, read_chats
from dialoom.roles.parameters import COUNTER, tokens


def test_counts_are_litellms_own_of_the_same_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of prose, code, numbers, spaces and other scripts; and the environment stays as it was."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/nowhere")
    before = dict(os.environ)
    from litellm.litellm_core_utils.default_encoding import encoding

    chats = read_chats(DEFAULT_POOL)
    texts = [line.content for chat in chats[:4] for line in chat]
    for text in (*texts, "", "  \n\n x = 12345.678\t# <|endoftext|> isn't", "Straße, 東京, шесть 🙂"):
        assert tokens(text) == len(encoding.encode(text, disallowed_special=()))
    assert encoding.name == COUNTER
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", before["TIKTOKEN_CACHE_DIR"])  # LiteLLM's import sets it
    assert dict(os.environ) == before

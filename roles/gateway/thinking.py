"""What a model thinks aloud before it answers belongs to the ledger, never to the dialogue."""

from __future__ import annotations

import re

_TAG = "(?:think|thinking|thought|reasoning)"
_BLOCK = re.compile(rf"<({_TAG})>(.*?)(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_END = re.compile(rf"</{_TAG}\s*>", re.IGNORECASE)


def without_thinking(text: str) -> tuple[str, str | None]:
    """A reply's text, and the reasoning that stood in it.

    A block that is never closed goes on to the end: the reply was cut off while the model thought. One that is closed
    and was never opened began with the reply: some servers put the opening tag into the request.
    """
    if "<" not in text:
        return text, None
    thoughts = [match[2].strip() for match in _BLOCK.finditer(text)]
    rest = _BLOCK.sub("", text)
    *unopened, said = _END.split(rest)
    thoughts = [*(part.strip() for part in unopened), *thoughts]
    if rest == text and not unopened:
        return text, None
    return said.strip(), "\n\n".join(thought for thought in thoughts if thought) or None

"""Editing of a prompt in the user's editor: its messages are written as text, and the edited text is parsed."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from dialoom.inputs import read_text
from dialoom.prompts import ChatMessage
from dialoom.prompts.messages import get_extra_fields
from dialoom.runs.stepping import SteppingError

_HEAD = re.compile(r"^=== (system|user|assistant|tool)(?: (\{.*\}))?[ \t]*$", re.MULTILINE)
"""The header line of a message: its role, and its other fields as JSON (tool calls, or the id of the answered call)."""
_MESSAGE = TypeAdapter(ChatMessage)
_LIKE_HEAD = re.compile(r"^(\\*=== )", re.MULTILINE)
_ESCAPED = r"\\\1"
_HELP = """\
# Edit the prompt, save it, and leave the editor. If nothing is changed, nothing is played.
# A line such as '=== user' begins each message. Text above the first such line is ignored.
"""


def edited(messages: Sequence[ChatMessage]) -> list[ChatMessage] | None:
    """Return the messages after editing in $VISUAL or $EDITOR; `None` if they are unchanged.

    Raises:
        SteppingError: If there is no editor, it fails, or the edited text does not contain messages.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise SteppingError("no editor is set: set the variable EDITOR, e.g. EDITOR=nano")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prompt.txt"
        before = as_text(messages)
        path.write_text(_HELP + before, encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)
        except (OSError, ValueError) as error:
            raise SteppingError(f"the editor {editor!r} cannot be started: {error}") from error
        if done.returncode:
            raise SteppingError(f"the editor {editor!r} ended with exit code {done.returncode}, so nothing was changed")
        after = read_text(path)
        if "\r" not in before:  # some editors write the line breaks of Windows
            after = after.replace("\r\n", "\n")
    changed = as_messages(after)
    return None if changed == as_messages(before) else changed


def as_text(messages: Sequence[ChatMessage]) -> str:
    """Return messages as text; lines of a message that look like a message header are escaped with a backslash."""
    return "\n".join(f"=== {_head(one)}\n{_LIKE_HEAD.sub(_ESCAPED, one['content'])}\n" for one in messages)


def _head(message: ChatMessage) -> str:
    rest = get_extra_fields(message)
    return f"{message['role']} {json.dumps(rest, ensure_ascii=False)}" if rest else message["role"]


def as_messages(text: str) -> list[ChatMessage]:
    """Parse the messages of a text.

    Raises:
        SteppingError: If the text contains no messages, or an empty message.
    """
    pieces = _HEAD.split(text)[1:]
    if not pieces:
        raise SteppingError("there is no message; begin each message with a line such as '=== user'")
    found: list[ChatMessage] = []
    for role, rest, content in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        words = re.sub(r"^\\(\\*=== )", r"\1", content.strip("\n"), flags=re.MULTILINE)
        if not words.strip() and rest is None:
            raise SteppingError(f"message {len(found) + 1} ({role}) is empty")
        try:
            found.append(_MESSAGE.validate_python({"role": role, "content": words, **json.loads(rest or "{}")}))
        except ValueError as error:
            raise SteppingError(f"message {len(found) + 1} ({role}) has calls that cannot be read: {rest}") from error
    return found

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

_HEADER = re.compile(r"^=== (system|user|assistant|tool)(?: (\{.*\}))?[ \t]*$", re.MULTILINE)
"""The header line of a message: its role, and its other fields as JSON (tool calls, or the id of the answered call)."""
_MESSAGE = TypeAdapter(ChatMessage)
_HEADER_LIKE = re.compile(r"^(\\*=== )", re.MULTILINE)
_ESCAPED_HEADER = r"\\\1"
_HELP = """\
# Edit the prompt, save it, and leave the editor. If nothing is changed, nothing is played.
# A line such as '=== user' begins each message. Text above the first such line is ignored.
"""


def edit_messages(messages: Sequence[ChatMessage]) -> list[ChatMessage] | None:
    """Return the messages after editing in $VISUAL or $EDITOR; `None` if they are unchanged.

    Raises:
        SteppingError: If there is no editor, it fails, or the edited text does not contain messages.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise SteppingError("no editor is set: set the variable EDITOR, e.g. EDITOR=nano")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prompt.txt"
        before = format_messages(messages)
        path.write_text(_HELP + before, encoding="utf-8")
        try:
            process = subprocess.run([*shlex.split(editor), str(path)], check=False)
        except (OSError, ValueError) as error:
            raise SteppingError(f"the editor {editor!r} cannot be started: {error}") from error
        if process.returncode:
            raise SteppingError(
                f"the editor {editor!r} ended with exit code {process.returncode}, so nothing was changed"
            )
        after = read_text(path)
        if "\r" not in before:  # some editors write the line breaks of Windows
            after = after.replace("\r\n", "\n")
    changed = parse_messages(after)
    return None if changed == parse_messages(before) else changed


def format_messages(messages: Sequence[ChatMessage]) -> str:
    """Return messages as text; lines of a message that look like a message header are escaped with a backslash."""
    return "\n".join(
        f"=== {_format_header(message)}\n{_HEADER_LIKE.sub(_ESCAPED_HEADER, message['content'])}\n"
        for message in messages
    )


def _format_header(message: ChatMessage) -> str:
    fields = get_extra_fields(message)
    return f"{message['role']} {json.dumps(fields, ensure_ascii=False)}" if fields else message["role"]


def parse_messages(text: str) -> list[ChatMessage]:
    """Parse the messages of a text.

    Raises:
        SteppingError: If the text contains no messages, or an empty message.
    """
    pieces = _HEADER.split(text)[1:]
    if not pieces:
        raise SteppingError("there is no message; begin each message with a line such as '=== user'")
    messages: list[ChatMessage] = []
    for role, fields, content in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        body = re.sub(r"^\\(\\*=== )", r"\1", content.strip("\n"), flags=re.MULTILINE)
        if not body.strip() and fields is None:
            raise SteppingError(f"message {len(messages) + 1} ({role}) is empty")
        try:
            messages.append(_MESSAGE.validate_python({"role": role, "content": body, **json.loads(fields or "{}")}))
        except ValueError as error:
            raise SteppingError(
                f"message {len(messages) + 1} ({role}) has calls that cannot be read: {fields}"
            ) from error
    return messages

"""Keys out of a file, for those who keep them in one: lines of `NAME=VALUE`, as in a `.env` file."""

from __future__ import annotations

import io
import os
from collections.abc import Collection
from pathlib import Path

from dotenv.parser import Binding, parse_stream

from dialoom.inputs import MOST_YAML_BYTES, read_text
from dialoom.roles.errors import BindingError

from .secrets import guard


def load_env_file(path: Path) -> list[str]:
    """Put the file's variables into the environment; those that are there already stay as they are.

    Every value is a secret from then on, whatever its name: no message of ours shows it.

    Args:
        path: Lines of `NAME=VALUE`, empty lines and comments (`#`); values may be quoted, lines begin with `export`.

    Returns:
        The names that the file gives, in its order.

    Raises:
        DataError: If the file cannot be read.
        BindingError: If a line is of another form, or a name stands there twice. No message holds a value.
    """
    text = read_text(path, MOST_YAML_BYTES, streams=True)
    given: dict[str, str] = {}
    for binding in parse_stream(io.StringIO(text)):
        if not _says_nothing(binding):
            name, value = _checked(binding, path, given)
            given[name] = value
    for name, value in given.items():
        guard(name, value)
        os.environ.setdefault(name, value)
    return list(given)


def _says_nothing(binding: Binding) -> bool:
    return binding.key is None and not binding.error


def _checked(binding: Binding, path: Path, before: Collection[str]) -> tuple[str, str]:
    # A statement begins at its first letter; the blank lines before it are counted to it.
    statement = binding.original.string
    line = binding.original.line + statement[: len(statement) - len(statement.lstrip())].count("\n")
    place = f"the key file {str(path)!r}, line {line}"
    if binding.error or not binding.key:
        raise BindingError(f"{place}: not of the form NAME=VALUE")
    if not binding.key.isidentifier():
        # It may be a key that was pasted alone: only its place is told.
        raise BindingError(f"{place}: what stands before '=' is no name of an environment variable")
    if not binding.value:
        raise BindingError(
            f"{place}: {binding.key} has no value; NAME=VALUE is needed"
            if "=" in statement
            else f"{place}: not of the form NAME=VALUE"
        )
    if binding.key in before:
        raise BindingError(f"{place}: {binding.key} is given twice; leave one out")
    return binding.key, binding.value

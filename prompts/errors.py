"""Errors of prompts, caused by a template or by an override."""

from pathlib import Path

from dialoom.errors import DialoomError


class PromptError(DialoomError):
    """A template that cannot be used; the message names its file and the correct form."""

    def __init__(self, place: str | Path | None, message: str) -> None:
        super().__init__(message if place is None else f"{place}: {message}")

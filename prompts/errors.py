"""What can go wrong with a prompt; always the fault of a template or of whoever overrides it."""

from pathlib import Path

from dialoom.errors import DialoomError


class PromptError(DialoomError):
    """A template that cannot be used, with the file it stands in and what would be right."""

    def __init__(self, place: str | Path | None, message: str) -> None:
        super().__init__(message if place is None else f"{place}: {message}")

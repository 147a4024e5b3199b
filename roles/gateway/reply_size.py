"""How long a reply's texts may be: an endless one must not fill a run's file."""

from __future__ import annotations

from dialoom.roles.errors import PermanentProviderError

MOST_LETTERS = 1_000_000
"""The longest reply, in characters: several times what any model writes at once."""


def ensure_short(model: str, *texts: str | None) -> None:
    """Refuse a reply that is too long.

    Raises:
        PermanentProviderError: Naming the model.
    """
    if (letters := sum(len(text) for text in texts if text)) > MOST_LETTERS:
        raise PermanentProviderError(f"{model}: the reply has {letters:,} letters; {MOST_LETTERS:,} are the most")

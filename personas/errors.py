"""What can go wrong with people's data; always the fault of a file."""

from pathlib import Path

from dialoom.errors import Advice, DialoomError


class DataError(DialoomError):
    """A file that cannot be used: where (file, line or key), the bad value, and what would be right."""

    def __init__(
        self, path: str | Path, message: str, line: int | None = None, *, advice: Advice | None = None
    ) -> None:
        place = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {message}", advice=advice)

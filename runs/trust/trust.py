"""Whether what a file names may be used here: because it was given now, or by the same user before, or by word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from dialoom.errors import Advice

from .errors import TrustError
from .named import Named
from .record import remembered


class Trust:
    """What of the things that a file names may be used in one opening of it.

    Args:
        everything: Use all of them, whoever made the file.
        tell: Takes a line on what is used on the file's word, and one on code that has changed.
    """

    def __init__(self, everything: bool = False, tell: Callable[[str], None] = lambda _line: None) -> None:
        self._everything = everything
        self._tell = tell
        self._used: dict[str, None] = {}

    def give(self, named: Iterable[Named]) -> None:
        """These were given by the user, in this process and for this file."""
        self._used.update(dict.fromkeys(each.mark for each in named))

    @property
    def used(self) -> list[str]:
        """The marks of all that was given or allowed up to now."""
        return list(self._used)

    def check(self, holder: Path | str, id_: str | None, named: Iterable[Named], code: Mapping[str, str]) -> None:
        """Make sure that these may be used, before they are.

        Args:
            holder: The file that names them, for messages.
            id_: The run's or the case's, by which the user's own are known.
            named: What would run or be called.
            code: The hashes of the code as it was when the file was made, by how it is named there.

        Raises:
            TrustError: If one may not.
        """
        new = [each for each in dict.fromkeys(named) if each.mark not in self._used]
        if not new:
            return
        known = remembered(id_)
        strange = [each for each in new if each.mark not in known]
        if strange and not self._everything:
            raise TrustError(
                f"{holder} names {_listed(strange)}. You have given none of it here yourself, so it is not used"
                if len(strange) > 1
                else f"{holder} names {strange[0].text}. You have not given that here yourself, so it is not used",
                advice=Advice("trust", "if you would use it as your own, give trust=True", {"path": holder}),
            )
        for each in strange:
            self._tell(f"{holder}: trusted with {each.text}")
        changed = [each.code for each in new if each.spec in code and each.hash() not in (None, code[each.spec])]
        for path in dict.fromkeys(changed):
            self._tell(f"{holder}: {path} has changed since the run was made")
        self.give(new)


def _listed(named: list[Named]) -> str:
    return "; ".join(each.text for each in named)

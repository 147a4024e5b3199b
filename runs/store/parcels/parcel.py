"""A scenario with all that hangs on it, as rows of the file that it was packed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]

LENT = -1
"""In the column `attempts` of a worker's file: the call is another file's, which has booked it. It took nothing here,
and is not handed back."""


@dataclass(slots=True)
class Parcel:
    """Rows by table. Their ids are those of the file that they come from; whoever unpacks them gives them others.

    Attributes:
        position: The scenario's place in the plan; `None` for a common call.
        deal: The number under which the scenario was dealt out, by which what comes back is taken once.
        thread: The thread of its checkpoints.
        rows: The rows by table. Of `threads` there is one for each namespace.
        texts: The texts that they refer to, by id.
        lent: Calls that were lent and what has become of them: key, replays, branch.
    """

    position: int | None
    deal: int = 0
    thread: str = ""
    rows: dict[str, list[Row]] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    lent: list[tuple[bytes, int, str | None]] = field(default_factory=list)

    def of(self, table: str) -> list[Row]:
        """The rows of a table."""
        return self.rows.get(table, [])

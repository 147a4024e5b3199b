"""The tables of docs/sessions.md: what is restored for each kind of stateful player, and what is refused; by cog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dialoom.roles.restoring import PLAYER_KINDS, REFUSALS, SAME_STATE, USES, Refusal


def kinds() -> str:
    """Return the table of kinds of players and what becomes of their conversations."""
    rows = []
    for kind in PLAYER_KINDS:
        cells = [kind.exceptions.get(use, SAME_STATE) for use in USES]
        results = [f"refused: {cell.reason}" if isinstance(cell, Refusal) else cell for cell in cells]
        rows.append([kind.name, kind.stored, *results])
    return _table(["player", "state after each reply", *USES], rows)


def refusals() -> str:
    """Return the table of combinations that are refused."""
    return _table(["combination", "when", "reason"], [[each.combination, each.when, each.reason] for each in REFUSALS])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

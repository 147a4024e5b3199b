"""Sessions: what a player learns about the conversation that it takes part in, besides its messages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Session:
    """The conversation that a call belongs to, for players with a memory of their own.

    The ids are hashes. They differ between runs, trials and branches, and reveal nothing about the person. They are not
    part of ledger keys, cache keys or exports.

    Attributes:
        conversation: The conversation's id: a hash of the run, the scenario, the trial and the branch.
        person: The person's id: a hash of the run, the person and the trial.
        number: The number of this conversation among the person's, from 1, in a run that plays them in sequence.
        trial: The number of the trial, from 1.
        turn: The number of this call's reply among the player's in the conversation, from 1.
    """

    conversation: str
    person: str
    number: int = 1
    trial: int = 1
    turn: int = 1

    @property
    def is_first(self) -> bool:
        """Return whether the player has not replied in this conversation yet."""
        return self.turn == 1


def session_id(kind: str, *parts: object) -> str:
    """Return an id for sessions: the kind (`conversation` or `person`) and 20 hex digits of a hash of the parts."""
    return f"{kind}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:20]}"

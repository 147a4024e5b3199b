"""A ledger that is not kept: the server's checkpoints are, but there is no run's file."""

from __future__ import annotations

from dialoom.roles import CallPlace, Completion
from dialoom.roles.gateway import Attempt, CallRecord, Request


class MemoryLedger:
    """A ledger for as long as the server lives: a fork that asks the same at the same place gets the same reply."""

    def __init__(self) -> None:
        self._replies: dict[str, Completion] = {}
        self._under_way: dict[int, str] = {}
        self._begun = 0

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:  # noqa: ARG002
        """The reply to a call of this identity, or the number of a new one."""
        if (known := await self.find(key, place)) is not None:
            return known
        self._begun += 1
        self._under_way[self._begun] = key
        return self._begun

    async def find(self, key: str, place: CallPlace) -> Completion | None:  # noqa: ARG002
        """The reply to a call of this identity."""
        return self._replies.get(key)

    async def failed(self, id_: int, attempt: Attempt) -> None:
        """Nobody reads of failed attempts here: the run's error says how the last one ended."""

    async def record(self, id_: int, record: CallRecord) -> None:
        """Keep the reply, if there is one."""
        key = self._under_way.pop(id_)
        if record.completion is not None:
            self._replies[key] = record.completion

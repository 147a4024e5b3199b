"""A ledger in memory, for tests of the gateway alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dialoom.roles import CallPlace, Completion
from dialoom.roles.gateway import Attempt, CallRecord, Request
from dialoom.roles.gateway.calls import PlayerState


@dataclass
class MemoryLedger:
    """What the gateway wrote down.

    Attributes:
        begun: The calls that were begun, by their numbers.
        records: What came of them.
        attempts: The failed attempts, with their calls' numbers.
        replays: How often a reply was used again.
    """

    begun: list[tuple[str, CallPlace, Request]] = field(default_factory=list)
    records: dict[int, CallRecord] = field(default_factory=dict)
    attempts: list[tuple[int, Attempt]] = field(default_factory=list)
    replays: int = 0

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:
        if (known := await self.find(key, place)) is not None:
            return known
        self.begun.append((key, place, request))
        return len(self.begun) - 1

    async def find(self, key: str, place: CallPlace) -> Completion | None:
        for number, (begun, _, _) in enumerate(self.begun):
            if begun == key and number in self.records and (completion := self.records[number].completion):
                self.replays += 1
                return completion
        return None

    async def player_state(self, place: CallPlace, player: bytes, marks: Sequence[bytes]) -> PlayerState | None:
        states = [record.completion.state for record in self.records.values() if record.completion is not None]
        known = {state.mark: state for state in states if state is not None and state.player == player}
        return next((known[mark] for mark in marks if mark in known), None)

    async def is_open(self, key: str, place: CallPlace) -> bool:
        return any(begun == key for begun, _, _ in self.begun) and await self.find(key, place) is None

    async def failed(self, id_: int, attempt: Attempt) -> None:
        self.attempts.append((id_, attempt))

    async def record(self, id_: int, record: CallRecord) -> None:
        self.records[id_] = record


def a_request(model: str = "openai/gpt-4o-mini", text: str = "Hello.", seed: int = 1, role: str = "user") -> Request:
    """A request of one message."""
    return Request(role, f"test/{role}", "0" * 64, model, 0.7, seed, ({"role": "user", "content": text},))


def a_place(seed: int = 1, step: int = 1, scenario: str = "s1") -> CallPlace:
    """A place in a run."""
    return CallPlace(scenario, "speak", step, 0, seed)

"""A ledger in memory that records what it receives, and requests and places of calls, for tests of the gateway."""

from __future__ import annotations

from dialoom.roles import CallPlace, Completion
from dialoom.roles.gateway import Attempt, CallRecord, Request, calls


class MemoryLedger(calls.MemoryLedger):
    """A ledger in memory that records what it receives.

    Attributes:
        begun: The calls that were begun, by number.
        records: The results of the calls.
        attempts: The failed attempts, each with its call's number.
        replays: Number of times that a recorded reply was reused.
    """

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[tuple[str, CallPlace, Request]] = []
        self.records: dict[int, CallRecord] = {}
        self.attempts: list[tuple[int, Attempt]] = []
        self.replays = 0

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:
        """Begin a call, and record its arguments."""
        begun = await super().begin(key, place, request)
        if isinstance(begun, int):
            self.begun.append((key, place, request))
        return begun

    async def find(self, key: str, place: CallPlace) -> Completion | None:
        """Return a recorded reply, and count its use."""
        found = await super().find(key, place)
        self.replays += found is not None
        return found

    async def record_failed_attempt(self, id_: int, attempt: Attempt) -> None:
        """Record a failed attempt."""
        self.attempts.append((id_, attempt))

    async def record(self, id_: int, record: CallRecord) -> None:
        """Record a result."""
        await super().record(id_, record)
        self.records[id_] = record


def make_request(model: str = "openai/gpt-4o-mini", text: str = "Hello.", seed: int = 1, role: str = "user") -> Request:
    """Return a request of one message."""
    return Request(role, f"test/{role}", model, 0.7, seed, ({"role": "user", "content": text},))


def make_place(seed: int = 1, step: int = 1, scenario: str = "s1") -> CallPlace:
    """Return a place in a run."""
    return CallPlace(scenario, "speak", step, 0, seed)

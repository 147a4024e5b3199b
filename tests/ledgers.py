"""A ledger that notes what it is told; requests and places of calls, for tests of the gateway alone."""

from __future__ import annotations

from dialoom.roles import CallPlace, Completion
from dialoom.roles.gateway import Attempt, CallRecord, Request, calls


class MemoryLedger(calls.MemoryLedger):
    """A ledger in memory that keeps everything that it is told.

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
        """Begin a call, and note it."""
        begun = await super().begin(key, place, request)
        if isinstance(begun, int):
            self.begun.append((key, place, request))
        return begun

    async def find(self, key: str, place: CallPlace) -> Completion | None:
        """Find a reply, and count its use."""
        found = await super().find(key, place)
        self.replays += found is not None
        return found

    async def failed(self, id_: int, attempt: Attempt) -> None:
        """Note a failed attempt."""
        self.attempts.append((id_, attempt))

    async def record(self, id_: int, record: CallRecord) -> None:
        """Record a result, and note it."""
        await super().record(id_, record)
        self.records[id_] = record


def a_request(model: str = "openai/gpt-4o-mini", text: str = "Hello.", seed: int = 1, role: str = "user") -> Request:
    """A request of one message."""
    return Request(role, f"test/{role}", model, 0.7, seed, ({"role": "user", "content": text},))


def a_place(seed: int = 1, step: int = 1, scenario: str = "s1") -> CallPlace:
    """A place in a run."""
    return CallPlace(scenario, "speak", step, 0, seed)

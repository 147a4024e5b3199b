"""Read-only inspection of a conversation step by step, even while it is played: nothing is written or locked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dialoom.runs.store import RunFile
from dialoom.runs.store.branches import MAIN

from .context import ScenarioContext, open_to_look, steps
from .gateway import SteppingError
from .view import SessionView


class NotBegunError(SteppingError):
    """The scenario has no checkpoint yet, not even its initial state."""


class Looking(SessionView):
    """A read-only view at a checkpoint, like a `Session`; it moves no branch, as others may use it.

    Opened by `Looking.open`; `at` gives further ones over the same file.
    """

    @classmethod
    @asynccontextmanager
    async def open(
        cls, run: RunFile, scenario: str | int, *, branch: str = MAIN, checkpoint: str | int | None = None
    ) -> AsyncIterator[Looking]:
        """Open a view of a scenario.

        Args:
            run: The run, open for reading; it stays open.
            scenario: Its id, a prefix of its id, or its position in the plan (from 1).
            branch: The branch to inspect.
            checkpoint: A checkpoint's number or id; by default the branch's head.

        Raises:
            StoreError: If there is no such scenario.
            NotBegunError: If none of it was played yet.
            SteppingError: If there is no such branch or checkpoint.
            TrustError: If it is played by code, or at an address, that only the run's author has named.
        """
        async with open_to_look(run, run.resolve(str(scenario))) as context:
            looking = cls._of(context, branch, checkpoint)
            await looking.here()
            yield looking

    async def at(self, branch: str, checkpoint: str | int | None = None) -> Looking:
        """Return a view of another place of the same scenario; see `open`."""
        looking = Looking._of(self.context, branch, checkpoint)
        await looking.here()
        return looking

    def numbers(self) -> list[int]:
        """Return the numbers of this branch's checkpoints from its beginning to its end."""
        return [point.number for point in self.context.line(self._end()) if point.source != "fork"]

    def number_before(self, step: int) -> int:
        """Return the number of this branch's checkpoint from which a step was played.

        Args:
            step: The step as in calls; the first is 0.

        Raises:
            SteppingError: If this branch has no such step.
        """
        line = self.context.line(self._end())
        found = [point.number for end, point in enumerate(line, start=1) if steps(line[:end]) == step]
        if not found:
            raise SteppingError(f"{self.branch} has no step {step}; it has {steps(line)}")
        return found[-1]

    @classmethod
    def _of(cls, context: ScenarioContext, name: str, checkpoint: str | int | None) -> Looking:
        branch = context.branch(name)
        head = branch.head or context.latest(branch.thread)
        if head is None:
            raise NotBegunError(f"{context.work.scenario.id} has not begun yet")
        if checkpoint is not None:
            branch, point = context.found(branch, checkpoint)
            head = point.id
        return cls(context, branch, head)

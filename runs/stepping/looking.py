"""Looking at a conversation step by step, whoever plays it meanwhile: nothing is written, nothing is held."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dialoom.runs.store import RunFile
from dialoom.runs.store.branches import MAIN

from .context import ScenarioContext, open_to_look, steps
from .gateway import SteppingError
from .view import SessionView


class NotBegunError(SteppingError):
    """There is nothing to look at yet: not even what the conversation begins with."""


class Looking(SessionView):
    """Stands at a checkpoint and looks, as a `Session` does; it moves nothing, as others may stand there too.

    Made by `Looking.open`; `at` gives further ones over the same file.
    """

    @classmethod
    @asynccontextmanager
    async def open(
        cls, run: RunFile, scenario: str | int, *, branch: str = MAIN, checkpoint: str | int | None = None
    ) -> AsyncIterator[Looking]:
        """Look at a scenario.

        Args:
            run: The run, open for reading; it stays open.
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            branch: The branch to look at.
            checkpoint: A checkpoint's number or id; by default where the branch stands.

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
        """Another place of the same scenario; see `open`."""
        looking = Looking._of(self.context, branch, checkpoint)
        await looking.here()
        return looking

    def numbers(self) -> list[int]:
        """The checkpoints of this branch from its beginning to its end, by their numbers."""
        return [point.number for point in self.context.line(self._end()) if point.source != "fork"]

    def number_before(self, step: int) -> int:
        """The checkpoint of this branch from which a step was played: where its calls are asked next.

        Args:
            step: The step, as calls have it; the first is 0.

        Raises:
            SteppingError: If this branch has not come so far.
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

"""Actions on a conversation. Each runs in a thread and locks the run's file only while it is carried out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialoom import Run
from dialoom.prompts import ChatMessage
from dialoom.runs.configuration.trust import player_references
from dialoom.runs.errors import RunError
from dialoom.runs.stepping import Stepper, Stop
from dialoom.runs.stepping.values import parse_value
from dialoom.runs.store.connections import is_written_by_another

Action = Callable[[Stepper, Callable[[Stop], None]], Awaitable[object]]
"""A function that carries out an action and reports each stop on the way; it may return another stepper to continue."""


@dataclass(frozen=True, slots=True)
class Position:
    """A position: a branch and a checkpoint's number; `None` as number means the branch's current checkpoint."""

    branch: str = "main"
    number: int | None = None


def find_read_only_reason(path: Path) -> str:
    """Return the reason why a file can only be read; empty if it can be written."""
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return "This file is read-only, so you can view it but not change anything."
    if is_written_by_another(path):
        return "Another process is using this run, so you can view it but not change anything until it has finished."
    return ""


@dataclass(slots=True)
class RunningAction:
    """An action that is being carried out.

    Attributes:
        passed_stops: The number of passed stops.
    """

    run: Run
    scenario: str
    position: Position
    action: Action
    passed_stops: int = 0
    _task: asyncio.Task[Position] | None = None
    _is_cancelled: bool = False

    async def execute(self) -> Position:
        """Carry out the action; return the position afterwards.

        Raises:
            DialoomError: If the action cannot be carried out, or another process writes the file.
            asyncio.CancelledError: If the action was cancelled.
        """
        return await asyncio.to_thread(lambda: asyncio.run(self._run_task()))

    def cancel(self) -> None:
        """Cancel the action; answered calls are kept."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def _run_task(self) -> Position:
        self._task = asyncio.ensure_future(self._perform())
        if self._is_cancelled:
            self._task.cancel()
        return await self._task

    async def _perform(self) -> Position:
        async with self.run.step(self.scenario, branch=self.position.branch) as stepper:
            if self.position.number is not None and (await stepper.here()).number != self.position.number:
                await stepper.goto(self.position.number)
            result = await self.action(stepper, self._count_stop)
            last = result if isinstance(result, Stepper) else stepper
            return Position(last.branch, (await last.here()).number)

    def _count_stop(self, _stop: Stop) -> None:
        self.passed_stops += 1


def begin() -> Action:
    """Open the conversation, which writes its initial state to the file."""
    return lambda stepper, _on_stop: stepper.here()


def step_forward() -> Action:
    """Go one step forward: to the next recorded checkpoint or, if there is none, by playing a step."""
    return lambda stepper, _on_stop: stepper.step()


def play_until(*conditions: str) -> Action:
    """Play until a condition is met, or to the end."""
    return lambda stepper, on_stop: stepper.run(
        [stepper.condition(condition) for condition in conditions if condition.strip()], on_stop
    )


def say(who: str, reply: str) -> Action:
    """Use a given text as a role's reply in the next step."""
    return lambda stepper, _on_stop: stepper.say(who, reply)


def edit_request(who: str, messages: Sequence[ChatMessage]) -> Action:
    """Play the next step with an edited request."""
    return lambda stepper, _on_stop: stepper.edit_request(who, messages)


def edit(path: str, value: str) -> Action:
    """Set a value in the state; it is parsed as JSON if possible, and otherwise used as text."""
    return lambda stepper, _on_stop: stepper.edit(path.strip(), parse_value(value))


def replace_model(role: str, model: str) -> Action:
    """Let another model play a role in the steps after this position.

    Raises:
        RunError: If the model is code, which cannot be selected in a browser.
    """
    if list(player_references(model)):
        raise RunError(
            f"model {model!r:.80} is code on this machine, which cannot be selected in a browser; use the terminal"
        )
    return lambda stepper, _on_stop: stepper.replace_model(role, model)


def resample() -> Action:
    """Request new replies in the steps after this position."""
    return lambda stepper, _on_stop: stepper.resample()


def fork(name: str) -> Action:
    """Fork a branch at this position, and switch to it."""
    return lambda stepper, _on_stop: stepper.fork(name)


def promote() -> Action:
    """Make the end of this branch the scenario's outcome."""
    return lambda stepper, _on_stop: stepper.promote()

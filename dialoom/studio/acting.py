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
from dialoom.runs.stepping.values import parsed_value
from dialoom.runs.store.connections import is_written_by_another

Action = Callable[[Stepper, Callable[[Stop], None]], Awaitable[object]]
"""A function that carries out an action and reports each stop on the way; it may return another stepper to continue."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A position: a branch and a checkpoint's number; `None` as number means the branch's current checkpoint."""

    branch: str = "main"
    number: int | None = None


def reason_read_only(path: Path) -> str:
    """Return the reason why a file can only be read; empty if it can be written."""
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return "This file is read-only, so you can view it but not change anything."
    if is_written_by_another(path):
        return "Another process is using this run, so you can view it but not change anything until it has finished."
    return ""


@dataclass(slots=True)
class Work:
    """An action that is being carried out.

    Attributes:
        passed: The number of passed stops.
    """

    run: Run
    scenario: str
    place: Spot
    action: Action
    passed: int = 0
    _task: asyncio.Task[Spot] | None = None
    _is_stopped: bool = False

    async def done(self) -> Spot:
        """Carry out the action; return the position afterwards.

        Raises:
            DialoomError: If the action cannot be carried out, or another process writes the file.
            asyncio.CancelledError: If the action was stopped.
        """
        return await asyncio.to_thread(lambda: asyncio.run(self._carried_out()))

    def stop(self) -> None:
        """Cancel the action; answered calls are kept."""
        self._is_stopped = True
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def _carried_out(self) -> Spot:
        self._task = asyncio.ensure_future(self._act())
        if self._is_stopped:
            self._task.cancel()
        return await self._task

    async def _act(self) -> Spot:
        async with self.run.step(self.scenario, branch=self.place.branch) as stepper:
            if self.place.number is not None and (await stepper.here()).number != self.place.number:
                await stepper.goto(self.place.number)
            result = await self.action(stepper, self._pass)
            now = result if isinstance(result, Stepper) else stepper
            return Spot(now.branch, (await now.here()).number)

    def _pass(self, _stop: Stop) -> None:
        self.passed += 1


def begin() -> Action:
    """Open the conversation, which writes its initial state to the file."""
    return lambda stepper, _tell: stepper.here()


def go_on() -> Action:
    """Go one step forward: to the next recorded checkpoint or, if there is none, by playing a step."""
    return lambda stepper, _tell: stepper.step()


def play_on(*conditions: str) -> Action:
    """Play until a condition is met, or to the end."""
    return lambda stepper, tell: stepper.run([stepper.condition(each) for each in conditions if each.strip()], tell)


def say(who: str, words: str) -> Action:
    """Use a given text as a role's reply in the next step."""
    return lambda stepper, _tell: stepper.say(who, words)


def ask_instead(who: str, messages: Sequence[ChatMessage]) -> Action:
    """Play the next step with an edited request."""
    return lambda stepper, _tell: stepper.ask_instead(who, messages)


def edit(path: str, value: str) -> Action:
    """Set a value in the state; it is parsed as JSON if possible, and otherwise used as text."""
    return lambda stepper, _tell: stepper.edit(path.strip(), parsed_value(value))


def exchange(role: str, model: str) -> Action:
    """Let another model play a role in the steps after this position.

    Raises:
        RunError: If the model is code, which cannot be selected in a browser.
    """
    if list(player_references(model)):
        raise RunError(
            f"model {model!r:.80} is code on this machine, which cannot be selected in a browser; use the terminal"
        )
    return lambda stepper, _tell: stepper.exchange(role, model)


def resample() -> Action:
    """Request new replies in the steps after this position."""
    return lambda stepper, _tell: stepper.resample()


def fork(name: str) -> Action:
    """Fork a branch at this position, and switch to it."""
    return lambda stepper, _tell: stepper.fork(name)


def promote() -> Action:
    """Make the end of this branch the scenario's outcome."""
    return lambda stepper, _tell: stepper.promote()

"""Simulated users against an assistant from Python: from rows to a judged run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from dialoom.graphs import Check, Judge
from dialoom.graphs.simulation import END_MARKER, simulation
from dialoom.roles.binding import OBJECT, is_named
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile
from dialoom.settings import ModelLike, PathLike, Players

from .blocking import blocking
from .operations import aplay, aresume
from .run import Run
from .settings import CallSettings


async def asimulate(
    people: Any,
    tasks: Any = None,
    *,
    assistant: ModelLike,
    path: PathLike,
    user: ModelLike | None = None,
    judge: Players | None = None,
    judges: Sequence[Judge] = (),
    checks: Sequence[Check | Callable[..., Any]] = (),
    brief: str | None = None,
    system: str = "",
    max_turns: int = 10,
    end_marker: str = END_MARKER,
    seed: int = 0,
    **calls: Unpack[CallSettings],
) -> Run:
    """Let simulated users talk to an assistant, score the conversations, and keep every step.

    Called again with the same arguments after an interruption, it continues the run.

    Example:
        >>> run = dialoom.simulate(
        ...     people=[{"name": "Ada", "style": "in a hurry"}],
        ...     tasks=["return a kettle"],
        ...     assistant=my_agent,
        ...     user="openai/gpt-4o-mini",
        ...     judges=[dialoom.Judge("resolved", rubric="The goal was reached: {{ task.goal }}")],
        ...     path="shop.db",
        ... )

    Args:
        people: As for `dialoom.graphs.simulation.simulation`, like `tasks`, `judges`, `checks`, `brief`, `system`,
            `max_turns` and `end_marker`.
        tasks: See there.
        assistant: Who is tested: a LiteLLM name, an async function from chat messages to text, a graph, ...
        path: The run's file.
        user: Who plays the user; by default an offline model.
        judge: Who judges; by default an offline model. Several, in a list, judge one after the other.
        judges: See there.
        checks: See there.
        brief: See there.
        system: See there.
        max_turns: See there.
        end_marker: See there.
        seed: The seed of every random draw.
        **calls: How calls are made; see `CallSettings`.

    Returns:
        The run, as from `play`.

    Raises:
        RecipeError: If the rows or judges are wrong.
        RunError: If the file holds another run: other rows, another seed, or a function of another name. A function
            that was changed and kept its name is not noticed.
    """
    recipe = simulation(
        people,
        tasks,
        judges=judges,
        checks=checks,
        brief=brief,
        system=system,
        max_turns=max_turns,
        end_marker=end_marker,
    )
    given = {"user": user, "assistant": assistant, "judge": judge if judges else None}
    models: dict[str, Players] = {role: player for role, player in given.items() if player is not None}
    players = {role: each[0] if isinstance(each, list | tuple) else each for role, each in models.items()}
    if Path(path).exists():
        _check_same(Path(path), recipe.content, seed, players)
        return await aresume(path, recipe=recipe, models=players, **calls)
    return await aplay(recipe, path=path, models=models, options={"content": recipe.content}, seed=seed, **calls)


def _check_same(path: Path, content: str, seed: int, players: Mapping[str, ModelLike]) -> None:
    """Refuse a run file of other rows, another seed, or functions of other names than those of this call."""
    with RunFile(path) as run:
        config = run.config
    if config.options.get("content") != content:
        raise RunError(
            f"path {path} holds another run: other rows, prompts, turns, judges or checks; give another path",
            setting="path",
        )
    if config.seed != seed:
        raise RunError(f"seed {seed}: {path} holds a run with seed {config.seed}; give another path", setting="seed")
    for role, player in players.items():
        if not is_named(player, config.models[role].model):
            known = config.models[role].model.removeprefix(OBJECT)
            raise RunError(
                f"models: {path} holds a run whose {role} is {known!r}, another function; give another path",
                setting="models",
            )


simulate = blocking("simulate", asimulate)

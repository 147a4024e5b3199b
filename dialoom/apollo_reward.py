"""APOLLO's reward for trainers: the unweighted accuracy of a model's calls (section 5 of the paper).

The module needs only the standard library and works as `dialoom.apollo_reward` and as a single file. TRL is given the
function `reward`; verl is given the path of this file and the name `compute_score`. Calls are matched as in dialoom's
own evaluation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["compute_score", "reward", "tool_definitions", "tool_functions"]
_PACKAGE = "dialoom_apollo"


def _import_module(module: str) -> ModuleType:
    """Import a module from the matcher's folder by its path, because its parent packages import large dependencies."""
    if _PACKAGE not in sys.modules:
        folder = ModuleType(_PACKAGE)
        folder.__path__ = [str(Path(__file__).parent / "personas" / "apollo")]
        sys.modules[_PACKAGE] = folder
    return import_module(f"{_PACKAGE}.{module}")


if TYPE_CHECKING:
    from dialoom.personas.apollo import scores as _scores
else:
    _scores = _import_module("scores")


def reward(completions: Sequence[Any], gold_calls: Sequence[str], **kwargs: Any) -> list[float]:  # noqa: ARG001
    """Return, for TRL, 1.0 for each completion whose calls match the gold calls, in order and with arguments, else 0.0.

    Args:
        completions: The completions: each a string, or a list of messages with `tool_calls` or with calls in their
            text.
        gold_calls: The column of that name: for each completion, the expected calls as JSON. If no calls are expected,
            the correct completion says that everything is done.
        **kwargs: The other columns, which are ignored.

    Raises:
        ValueError: If the gold calls cannot be read. The content of a completion never raises an error.
    """
    read_completion, read_gold = _scores.parse_completion, _scores.parse_gold
    return [
        _scores.score_completion(read_completion(completion), read_gold(calls))[0]
        for completion, calls in zip(completions, gold_calls, strict=True)
    ]


def compute_score(
    data_source: str,  # noqa: ARG001
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,  # noqa: ARG001
    **kwargs: Any,  # noqa: ARG001
) -> dict[str, float]:
    """Return, for verl, a dictionary of the score (which is the accuracy), the accuracy and the F1.

    Args:
        data_source: Ignored.
        solution_str: The whole decoded rollout. Reasoning and tool results in it are ignored.
        ground_truth: The expected calls, as JSON.
        extra_info: Ignored.
        **kwargs: Ignored.

    Raises:
        ValueError: In the same cases as `reward`.
    """
    accuracy, f1 = _scores.score_completion(_scores.parse_rollout(solution_str), _scores.parse_gold(ground_truth))
    return {"score": accuracy, "acc": accuracy, "f1": f1}


def tool_definitions(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return tools as OpenAI function definitions: the tools with the given names, or all."""
    tools = _import_module("calls").TOOLS
    return [tools[name].definition() for name in (tools if names is None else names)]


def tool_functions(names: Iterable[str] | None = None, seed: int = 0) -> list[Callable[..., str]]:
    """Return tools as typed and documented functions; each returns the tool's result as JSON text.

    A wrong call raises no exception; its result describes the error and how to correct the call.

    Args:
        names: The names of the tools; by default all.
        seed: The seed of the world that the tools read: `world_seed` in a row's `extra_info`.

    Raises:
        ValueError: If there is no such tool.
    """
    functions: list[Callable[..., str]] = _import_module("executor").tool_functions(names, seed)
    return functions

"""The tools as typed and documented Python functions, for trainers and agents that derive definitions from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter as Argument
from inspect import Signature
from typing import Any, Literal

from .executor import execute
from .tools import TOOLS, Kind, Parameter, Tool
from .world import World


def tool_functions(names: Iterable[str] | None = None, seed: int = 0) -> list[Callable[..., str]]:
    """Return functions that return the tools' results as JSON text, including errors of calls.

    Args:
        names: The tools; by default all of them.
        seed: The world's seed, which rows contain.

    Raises:
        ValueError: If a tool is unknown.
    """
    world, wanted = World(seed), list(TOOLS if names is None else names)
    if unknown := [name for name in wanted if name not in TOOLS]:
        raise ValueError(f"there is no tool {unknown[0]!r}; the tools are {', '.join(TOOLS)}")
    return [_function(world, TOOLS[name]) for name in wanted]


def _function(world: World, tool: Tool) -> Callable[..., str]:
    def function(**arguments: Any) -> str:
        return json.dumps(execute(world, {"name": tool.name, "arguments": arguments}), ensure_ascii=False)

    taken = [_argument(parameter) for parameter in tool.parameters.values()]
    says = "\n".join(f"    {name}: {parameter.says}" for name, parameter in tool.parameters.items())
    function.__name__ = function.__qualname__ = tool.name
    function.__doc__ = f"{tool.says}\n\nArgs:\n{says}\n\nReturns:\n    What the tool says, as JSON.\n"
    function.__annotations__ = {**{each.name: each.annotation for each in taken}, "return": str}
    function.__signature__ = Signature(taken, return_annotation=str)  # type: ignore[attr-defined]
    return function


def _argument(parameter: Parameter) -> Argument:
    default = Argument.empty if parameter.default is None else parameter.default
    of: Any = Literal[parameter.of] if parameter.of else _TYPES[parameter.kind]
    return Argument(parameter.name, Argument.KEYWORD_ONLY, default=default, annotation=of)


_TYPES: Mapping[Kind, type] = {
    "text": str,
    "id": str,
    "date": str,
    "time": str,
    "boolean": bool,
    "integer": int,
    "number": float,
}

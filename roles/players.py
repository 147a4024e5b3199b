"""The user's own players: async functions, LangChain models, LangGraph graphs, graph factories, and loading by name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from dialoom.settings import CompiledGraph, GraphMaker, LangChainModel, OwnPlayer

from .errors import BindingError

_STATE = ("checkpointer", "store")
"""The attributes of a compiled graph in which it keeps state between calls."""


class PlayerError(Exception):
    """A player or its reply is unusable; the message continues a sentence that begins with the player's name."""


def check_player(name: str, player: object, is_stateful: bool = False) -> None:
    """Check that an object can play a role.

    A function that makes graphs is called once without tools, to inspect the graph that it returns.

    Args:
        name: The name used in messages.
        player: The object.
        is_stateful: Whether it is declared to keep state between calls.

    Raises:
        BindingError: If the object is of an unsupported kind, or is not what it is declared to be.
    """
    try:
        if isinstance(player, CompiledGraph):
            _check_state(player, is_stateful)
        elif makes_graph(player):
            _probe(cast(GraphMaker, player), is_stateful)
        elif inspect.isclass(player) and not is_stateful:
            raise PlayerError(
                f"is a class: give an object of it, or declare it stateful (Agent({player.__name__}, stateful=True)), "
                "so that each conversation gets an object of its own"
            )
        elif not isinstance(player, LangChainModel) and not _is_called_with_messages(player):
            raise PlayerError(
                f"cannot play a role: {player!r:.60} must be a function or object that is called with `messages`, a "
                "compiled graph, a function of `tools` that returns one, or a LangChain chat model"
            )
    except PlayerError as error:
        raise BindingError(f"models: {name} {error}", setting="models") from error


def made_graph(maker: GraphMaker, tools: list[Any], is_stateful: bool = False) -> CompiledGraph:
    """Return the graph that a function makes for some tools.

    Raises:
        PlayerError: If it returns something else, or a graph that is not as stateful as declared.
    """
    graph: object = maker(tools)
    if not isinstance(graph, CompiledGraph):
        raise PlayerError(f"returned a {type(graph).__name__}; a function of `tools` must return a compiled graph")
    _check_state(graph, is_stateful)
    return graph


def _probe(maker: GraphMaker, is_stateful: bool) -> None:
    try:
        made_graph(maker, [], is_stateful)
    except PlayerError:
        raise
    except Exception:
        return  # it may need the recipe's tools; the graph it makes of them is checked at each call


def _check_state(graph: CompiledGraph, is_stateful: bool) -> None:
    """Raise `PlayerError` for a graph with a checkpointer or a store that is not declared, or cannot be restored."""
    own = [kind for kind in _STATE if getattr(graph, kind, None) not in (None, False)]
    if own and not is_stateful:
        raise PlayerError(
            f"is compiled with a {own[0]} ({type(getattr(graph, own[0])).__name__}), so it keeps state between calls: "
            "declare it stateful (setting `stateful`, or Agent(graph, stateful=True)), or compile it without"
        )
    if is_stateful and not own:
        raise PlayerError("is declared stateful, and is compiled with neither a checkpointer nor a store")
    for name, each in _subgraphs(graph):
        for kind in _STATE:
            if getattr(each, kind, None) not in (None, False):
                raise PlayerError(
                    f"has a subgraph {name!r} that is compiled with a {kind} of its own, whose state cannot be "
                    f"restored; compile the subgraph without a {kind}"
                )


def _subgraphs(graph: object) -> Iterator[tuple[str, object]]:
    listed: Any = getattr(graph, "get_subgraphs", None)
    if listed is not None:
        yield from listed(recurse=True)


def takes_tools(player: OwnPlayer) -> bool:
    """Return whether a player accepts the tools offered by a request.

    These are graphs and functions that make graphs, functions with a parameter `tools`, and chat models whose class
    implements `bind_tools`.
    """
    if isinstance(player, CompiledGraph) or makes_graph(player):
        return True
    if isinstance(player, LangChainModel):
        from langchain_core.language_models import BaseChatModel  # imported already by whoever made the model

        binds = getattr(type(player), "bind_tools", None)
        return binds is not None and binds is not BaseChatModel.bind_tools
    return "tools" in parameters_of(player)


def has_snapshots(player: object) -> bool:
    """Return whether an object, or the objects of a class, can return a snapshot of their state and restore it."""
    return callable(getattr(player, "snapshot", None)) and callable(getattr(player, "restore", None))


def _is_called_with_messages(player: object) -> bool:
    """Return whether an object, or the objects of a class, can be called."""
    return "__call__" in vars(player) if inspect.isclass(player) else callable(player)


def is_async(player: object) -> bool:
    """Return whether an object is an async function, or is called like one."""
    return inspect.iscoroutinefunction(player) or inspect.iscoroutinefunction(getattr(player, "__call__", None))  # noqa: B004


def makes_graph(player: object) -> bool:
    """Return whether an object is a plain function whose first parameter is `tools`: one that makes a graph."""
    is_plain = (
        callable(player)
        and not inspect.isclass(player)
        and not isinstance(player, LangChainModel)
        and not is_async(player)
    )
    return is_plain and parameters_of(player)[:1] == ["tools"]


def parameters_of(function: object) -> list[str]:
    """Return the names of a function's parameters; an empty list if they cannot be inspected."""
    called = function.__call__ if inspect.isclass(function) else function
    try:
        return list(inspect.signature(cast("Callable[..., Any]", called)).parameters)
    except (TypeError, ValueError):
        return []


def name_of(player: object) -> str:
    """Return a player's own name: that of the function, the graph or the chat model's model, else its type's."""
    names = (getattr(player, name, None) for name in ("__name__", "name", "model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name), type(player).__name__)


PYTHON, GRAPH = "python:", "graph:"
"""Prefixes of the names of players in modules and files."""


def named_player(model: str, is_stateful: bool = False) -> OwnPlayer | None:
    """Return the player that a model name refers to; `None` if the name has no such prefix.

    Args:
        model: The name.
        is_stateful: Whether the player is declared to keep state between calls.

    Raises:
        BindingError: If the module, file or name is unknown, or the object found cannot play a role.
    """
    for prefix, load in ((PYTHON, _in_module), (GRAPH, _in_file)):
        spec = model.removeprefix(prefix)
        if spec and spec != model:
            player = load(spec, model)
            check_player(model, player, is_stateful)
            return cast(OwnPlayer, player)
    return None


def is_restorable(model: str, objects: Mapping[str, OwnPlayer]) -> bool:
    """Return whether the state of a stateful player can be restored in another process.

    Args:
        model: The player's name.
        objects: Players that were given as objects, by their names.
    """
    player: Any = objects.get(model) or named_player(model, is_stateful=True)
    is_graph = isinstance(player, CompiledGraph) or makes_graph(player)
    return is_graph or has_snapshots(player) or callable(getattr(player, "begin", None))


def load_file(path: Path, wanted_by: str) -> ModuleType:
    """Import a Python file that belongs to no package.

    Args:
        path: The file.
        wanted_by: The model name that refers to it, for messages.

    Raises:
        BindingError: If the file does not exist or cannot be imported.
    """
    if not path.is_file():
        raise BindingError(f"'{wanted_by}': there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(f"dialoom_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BindingError(f"'{wanted_by}': {path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _in_module(spec: str, wanted_by: str) -> object:
    module_name, _, name = spec.rpartition(":")
    if not module_name or not name:
        raise BindingError(f"'{wanted_by}' is not of the form python:package.module:name")
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise BindingError(f"'{wanted_by}': module {module_name!r} cannot be imported: {error}") from error
    return _attribute(module, name, wanted_by)


def _in_file(spec: str, wanted_by: str) -> object:
    path, _, name = spec.rpartition(":")
    if not path or not name:
        raise BindingError(f"'{wanted_by}' is not of the form graph:path/to/file.py:name")
    return _attribute(load_file(Path(path), wanted_by), name, wanted_by)


def _attribute(module: ModuleType, name: str, wanted_by: str) -> object:
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise BindingError(f"'{wanted_by}': {module.__name__} has no {name!r}") from error

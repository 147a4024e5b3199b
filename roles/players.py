"""The user's own players (functions, LangChain models, LangGraph graphs, functions that make graphs) and sessions."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, cast, get_args, get_origin

from pydantic import BaseModel

from dialoom.settings import CompiledGraph, GraphFactory, LangChainModel, PlayerObject

from .errors import BindingError
from .restoring import (
    GRAPH_WITHOUT_STATE,
    NAMESPACE_WITHOUT_PERSON,
    PLAYER_WITHOUT_SESSION,
    STATEFUL_SUBGRAPH,
    UNDECLARED_GRAPH,
    UNDECLARED_OBJECT,
    UNSUPPORTED_STATE_VALUES,
)


@dataclass(frozen=True, slots=True)
class Session:
    """The conversation that a call belongs to, for players that keep a memory of their own.

    The ids are hashes. They differ between runs, trials, user models and branches, and reveal nothing about the person.
    They are not part of ledger keys, cache keys or exports.

    Example:
        >>> async def counting(messages, session: dialoom.Session):
        ...     return f"This is my reply number {session.turn}."
        >>> run = dialoom.play("personalens", path="counted.db", models={"assistant": counting}, options={"limit": 1})

    Attributes:
        conversation: The conversation's id: a hash of the run, the scenario, the trial and the branch.
        person: The person's id: a hash of the run, the person, the trial and the user model.
        number: The position of this conversation among the person's conversations, from 1, in a run that plays them in
            sequence.
        trial: The number of the trial, from 1.
        turn: The position of this call's reply among the player's replies in the conversation, from 1.
    """

    conversation: str
    person: str
    number: int = 1
    trial: int = 1
    turn: int = 1

    @property
    def is_first(self) -> bool:
        """Return whether the player has not replied in this conversation yet."""
        return self.turn == 1


def make_session_id(kind: str, *parts: object) -> str:
    """Return an id for sessions: the kind (`conversation` or `person`) and 20 hex digits of a hash of the parts."""
    return f"{kind}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:20]}"


@cache
def has_person_id(namespace: tuple[str, ...]) -> bool:
    """Return whether a namespace of a store contains the id of a person. The result is cached: there may be many."""
    return any(map(_PERSON_ID.fullmatch, namespace))


_PERSON_ID = re.compile(r"person-[0-9a-f]{20}")
_STATE_ATTRIBUTES = ("checkpointer", "store")
"""The attributes of a compiled graph that hold its state between calls."""


class PlayerError(Exception):
    """A player or its reply is unusable; the message continues a sentence that begins with the player's name."""


class RefusedPlayerError(PlayerError):
    """A player is refused at a call, because its problem shows only then; the run stops with its work pending."""


def safe_text(value: object, convert: Callable[[object], str] = repr) -> str:
    """Return the text of a user's object for a message; the type's name if its own code raises an error."""
    try:
        return convert(value)
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"


def check_player(name: str, player: object, is_stateful: bool = False) -> None:
    """Check that an object can play a role.

    A function that makes graphs is called once without tools, to inspect the graph that it returns.

    Args:
        name: The name used in messages.
        player: The object.
        is_stateful: Whether it is declared as keeping state between calls.

    Raises:
        BindingError: If the object is of an unsupported kind, or does not match its declaration.
    """
    try:
        if isinstance(player, CompiledGraph):
            _check_graph_state(player, is_stateful)
        elif is_graph_maker(player):
            try:
                make_graph(cast(GraphFactory, player), [], is_stateful)
            except PlayerError:
                raise
            except Exception:
                return  # the function may need the recipe's tools, so its graph is checked at each call
        elif isinstance(first := get_first_runnable(player), CompiledGraph) and not is_stateful:
            _check_graph_state(first, is_stateful)
        elif inspect.isclass(player) and not is_stateful:
            raise PlayerError(
                f"is a class: give an object of it, or declare it stateful (Agent({player.__name__}, stateful=True)), "
                "so that each conversation gets an object of its own"
            )
        elif not isinstance(player, LangChainModel) and not (
            any("__call__" in vars(each) for each in player.__mro__) if inspect.isclass(player) else callable(player)
        ):
            raise PlayerError(
                f"cannot play a role: {safe_text(player):.60} must be a callable that takes `messages`, a compiled "
                "graph, a function of `tools` that returns a compiled graph, or a LangChain chat model"
            )
        elif is_stateful and not _separates_conversations(player):
            raise PlayerError(PLAYER_WITHOUT_SESSION.format())
        elif not is_stateful and (has_snapshots(player) or has_begin(player)):
            methods = "snapshot() and restore()" if has_snapshots(player) else "begin()"
            raise PlayerError(UNDECLARED_OBJECT.format(methods=methods))
        elif problem := _find_signature_problem(player):
            raise PlayerError(f"cannot be called with the messages alone: {problem}")
    except PlayerError as error:
        raise BindingError(f"models: {name} {error}", setting="models") from error


def _find_signature_problem(player: object) -> str:
    """Return why a function cannot be called with messages and those of `tools` and `session` that it declares."""
    if inspect.isclass(player) or isinstance(player, LangChainModel):
        return ""
    names = get_parameter_names(player)
    keywords = {name: None for name in ("tools", "session") if name in names}
    try:
        inspect.signature(cast("Callable[..., Any]", player)).bind([], **keywords)
    except ValueError:  # a function of C without a signature
        return ""
    except TypeError as error:
        return str(error)
    return ""


def make_graph(maker: GraphFactory, tools: list[Any], is_stateful: bool = False) -> CompiledGraph:
    """Return the graph that a function makes for some tools.

    Raises:
        PlayerError: If it returns something else, or a graph that does not match the declaration as stateful or not.
    """
    graph: object = maker(tools)
    if not isinstance(graph, CompiledGraph):
        raise PlayerError(f"returned a {type(graph).__name__}; a function of `tools` must return a compiled graph")
    _check_graph_state(graph, is_stateful)
    return graph


def _check_graph_state(graph: CompiledGraph, is_stateful: bool) -> None:
    """Raise `PlayerError` if a graph's checkpointer or store is not declared or cannot be restored."""
    kinds = [kind for kind in _STATE_ATTRIBUTES if getattr(graph, kind, None) not in (None, False)]
    if kinds and not is_stateful:
        raise PlayerError(UNDECLARED_GRAPH.format(kind=kinds[0], type=type(getattr(graph, kinds[0])).__name__))
    if is_stateful and not kinds:
        raise PlayerError(GRAPH_WITHOUT_STATE.format())
    get_subgraphs: Any = getattr(graph, "get_subgraphs", None)
    for name, subgraph in () if get_subgraphs is None else get_subgraphs(recurse=True):
        for kind in _STATE_ATTRIBUTES:
            if getattr(subgraph, kind, None) not in (None, False):
                raise PlayerError(STATEFUL_SUBGRAPH.format(name=name, kind=kind))
    from langgraph.store.memory import InMemoryStore  # deferred: slow to import

    # Stores that are not in memory are read at the first call, because they may be asynchronous or need a connection.
    store = getattr(graph, "store", None)
    for namespace in store.list_namespaces(limit=_MAX_NAMESPACES) if isinstance(store, InMemoryStore) else ():
        if not has_person_id(namespace):
            raise PlayerError(NAMESPACE_WITHOUT_PERSON.format(namespace=namespace))
    if is_in_memory(getattr(graph, "checkpointer", None)):
        _check_channel_types(graph)


def is_in_memory(checkpointer: object) -> bool:
    """Return whether a checkpointer keeps its checkpoints in this process only."""
    from langgraph.checkpoint.memory import InMemorySaver  # deferred: slow to import

    return isinstance(checkpointer, InMemorySaver)


def _check_channel_types(graph: object) -> None:
    """Raise `PlayerError` if a graph declares values in its state that cannot be restored from a run's file."""
    channels: Mapping[str, Any] = getattr(graph, "channels", {})
    for name, channel in channels.items():
        if name.startswith("__") or type(channel).__name__ in _TRANSIENT_CHANNELS:
            continue
        for each in _iter_classes(channel.ValueType):
            is_own = not each.__module__.startswith("langchain_core.")
            if is_own and (is_dataclass(each) or issubclass(each, BaseModel)):
                raise PlayerError(
                    UNSUPPORTED_STATE_VALUES.format(declared=f" ({name!r} is declared with {each.__name__})")
                )


_TRANSIENT_CHANNELS = ("EphemeralValue", "UntrackedValue")
"""The types of graph channels whose values are not part of the state after a reply."""


def _iter_classes(declared: Any) -> Iterator[type]:
    """Return the classes that a type is made of: `Note` and `list` in `list[Note] | None`."""
    if isinstance(declared, type) and not get_args(declared):
        yield declared
    elif get_origin(declared) is Annotated:
        yield from _iter_classes(declared.__origin__)
    else:
        for each in get_args(declared):
            yield from _iter_classes(each)


_MAX_NAMESPACES = 1_000_000


def takes_tools(player: PlayerObject) -> bool:
    """Return whether a player accepts the tools offered by a request.

    Graphs and functions that make graphs accept tools, as do functions with a parameter `tools`, and chat models whose
    class implements `bind_tools`.
    """
    if isinstance(player, CompiledGraph) or is_graph_maker(player):
        return True
    if isinstance(player, LangChainModel):
        from langchain_core.language_models import BaseChatModel  # already imported by the caller who created the model

        binds = getattr(type(player), "bind_tools", None)
        return binds is not None and binds is not BaseChatModel.bind_tools
    return "tools" in get_parameter_names(player)


def get_first_runnable(runnable: object) -> object:
    """Return the object that a runnable calls first: a chain's first step, or the object in a retry or a binding."""
    inner = None if inspect.isclass(runnable) else getattr(runnable, "first", getattr(runnable, "bound", None))
    return get_first_runnable(inner) if isinstance(inner, LangChainModel) else runnable


def has_snapshots(player: object) -> bool:
    """Return whether an object, or the objects of a class, can return a snapshot of their state and restore it."""
    return callable(getattr(player, "snapshot", None)) and callable(getattr(player, "restore", None))


def _separates_conversations(player: object) -> bool:
    """Return whether a stateful player gets each call's session, or has a separate state per conversation."""
    has_session = (
        inspect.isclass(player) or isinstance(player, LangChainModel) or "session" in get_parameter_names(player)
    )
    return has_session or has_snapshots(player) or has_begin(player)


def has_begin(player: object) -> bool:
    """Return whether an object, or the objects of a class, can be told the earlier messages of a conversation."""
    return callable(getattr(player, "begin", None))


def is_async(player: object) -> bool:
    """Return whether an object is an async function, or is called like one."""
    return inspect.iscoroutinefunction(player) or inspect.iscoroutinefunction(getattr(player, "__call__", None))  # noqa: B004


def is_graph_maker(player: object) -> bool:
    """Return whether an object is a function that makes a graph: a plain function whose first parameter is `tools`."""
    is_excluded = inspect.isclass(player) or isinstance(player, LangChainModel) or is_async(player)
    return callable(player) and not is_excluded and get_parameter_names(player)[:1] == ["tools"]


def get_parameter_names(function: object) -> list[str]:
    """Return the names of a function's parameters; an empty list if they cannot be inspected."""
    callee = function.__call__ if inspect.isclass(function) else function
    try:
        return list(inspect.signature(cast("Callable[..., Any]", callee)).parameters)
    except (TypeError, ValueError):
        return []


def get_player_name(player: object) -> str:
    """Return a player's own name: the name of the function, graph or model, or else the name of the object's type."""
    names = (getattr(player, name, None) for name in ("__name__", "name", "model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name), type(player).__name__)


PYTHON_PREFIX, GRAPH_PREFIX = "python:", "graph:"
"""Prefixes of the names of players in modules and files."""


def load_player(model: str, is_stateful: bool = False) -> PlayerObject | None:
    """Return the player that a model name refers to; `None` if the name has neither prefix of a user's own player.

    Args:
        model: The name.
        is_stateful: Whether the player is declared to keep state between calls.

    Raises:
        BindingError: If the module, file or name is unknown, or the object found cannot play a role.
    """
    for prefix, load in ((PYTHON_PREFIX, _load_from_module), (GRAPH_PREFIX, _load_from_file)):
        spec = model.removeprefix(prefix)
        if spec and spec != model:
            player = load(spec, model)
            check_player(model, player, is_stateful)
            return cast(PlayerObject, player)
    return None


def keeps_state(model: str, is_declared: bool) -> bool:
    """Return whether a model or player that replaces another one in the step debugger is called as a stateful one.

    A user's own player is called as the role is declared, unless it can be called only in the other way, like a graph
    with a checkpointer. A model gets whole conversations, because no server stores a conversation under the ids of this
    run.

    Args:
        model: Its name.
        is_declared: Whether the role's player is declared as keeping state.

    Raises:
        BindingError: If the module, file or name is unknown, or the object found cannot play a role.
    """
    try:
        return load_player(model, is_declared) is not None and is_declared
    except BindingError as error:
        try:
            load_player(model, not is_declared)
        except BindingError:
            raise error from None
        return not is_declared


def is_restorable(model: str, objects: Mapping[str, PlayerObject]) -> bool:
    """Return whether the state of a stateful player can be restored in another process.

    Args:
        model: The player's name.
        objects: Players that were given as objects, by their names.
    """
    player: Any = objects.get(model) or load_player(model, is_stateful=True)
    is_graph = isinstance(player, CompiledGraph) or is_graph_maker(player)
    return is_graph or has_snapshots(player) or has_begin(player)


def can_forget_person(model: str, objects: Mapping[str, PlayerObject]) -> bool:
    """Return whether a stateful player may lose, with its process, what it knows of a person's earlier conversations.

    Graphs and players with snapshots are restored; a model's server is another process.

    Args:
        model: The player's name.
        objects: Players that were given as objects, by their names.
    """
    player = _load_stateful_player(model, objects)
    is_restored = player is None or isinstance(player, CompiledGraph) or has_snapshots(player)
    return not is_restored and can_remember_person(model, objects)


def has_sqlite_checkpointer(model: str, objects: Mapping[str, PlayerObject]) -> bool:
    """Return whether a stateful player is a graph whose checkpointer keeps its state in a SQLite file.

    Args:
        model: The player's name.
        objects: Players that were given as objects, by their names.
    """
    classes = type(getattr(_load_stateful_player(model, objects), "checkpointer", None)).__mro__
    return any(each.__module__.startswith("langgraph.checkpoint.sqlite") for each in classes)


def can_remember_person(model: str, objects: Mapping[str, PlayerObject]) -> bool:
    """Return whether a stateful player may know something of a person's earlier conversations.

    A graph that is compiled with a checkpointer and without a store does not, because each conversation is a thread of
    its own, nor does a class without snapshots, because each conversation gets an object of its own.

    Args:
        model: The player's name.
        objects: Players that were given as objects, by their names.
    """
    player = _load_stateful_player(model, objects)
    if isinstance(player, CompiledGraph):
        return getattr(player, "store", None) is not None
    return not inspect.isclass(player) or has_snapshots(player)


def _load_stateful_player(model: str, objects: Mapping[str, PlayerObject]) -> Any:
    """Return a stateful player; for a function that makes graphs, the graph that it makes without tools."""
    player: Any = objects.get(model) or load_player(model, is_stateful=True)
    if is_graph_maker(player):
        with suppress(Exception):  # it may need the recipe's tools
            return player([])
    return player


def load_file(path: Path, reference: str) -> ModuleType:
    """Import a Python file that belongs to no package.

    Args:
        path: The file.
        reference: The model name that refers to it, for messages.

    Raises:
        BindingError: If the file does not exist or cannot be imported.
    """
    if not path.is_file():
        raise BindingError(f"'{reference}': there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(f"dialoom_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BindingError(f"'{reference}': {path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _load_from_module(spec: str, reference: str) -> object:
    module_name, _, name = spec.rpartition(":")
    if not module_name or not name:
        raise BindingError(f"'{reference}' is not of the form python:package.module:name")
    if (folder := os.getcwd()) not in sys.path:  # noqa: PTH109
        sys.path.append(folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]
        hint = f"; it is neither in the working folder {folder} nor on Python's path" if is_missing else ""
        if module_name.endswith(".py"):
            dotted = module_name.removesuffix(".py").replace("/", ".")
            hint = f"; give the module's name instead of its file: python:{dotted}:{name}"
        raise BindingError(f"'{reference}': module {module_name!r} cannot be imported: {error}{hint}") from error
    return _get_attribute(module, name, reference)


def _load_from_file(spec: str, reference: str) -> object:
    path, _, name = spec.rpartition(":")
    if not path or not name:
        raise BindingError(f"'{reference}' is not of the form graph:path/to/file.py:name")
    return _get_attribute(load_file(Path(path), reference), name, reference)


def _get_attribute(module: ModuleType, name: str, reference: str) -> object:
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise BindingError(f"'{reference}': {module.__name__} has no {name!r}") from error

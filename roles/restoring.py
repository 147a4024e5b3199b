"""The kinds of stateful players, how their state is restored, and which combinations are refused (sessions.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Refusal:
    """A combination that is refused.

    Attributes:
        combination: The combination, as the documentation describes it.
        when: The time at which it is refused.
        reason: The reason.
        message: The error message, with placeholders in braces.
    """

    combination: str
    when: str
    reason: str
    message: str

    def format(self, **names: object) -> str:
        """Format the message with values for its placeholders."""
        return self.message.format(**names)


_BEFORE_START = "before anything is played"
_UNRESTORABLE_PLAYER = "a player that cannot be restored"

UNRESTORABLE_WITH_WORKERS = Refusal(
    f"{_UNRESTORABLE_PLAYER}, in a run with workers",
    _BEFORE_START,
    "no other process has its state",
    "{setting}: {role} is played by {model}, whose state no other process can restore; play in one process, or give it "
    "snapshot() and restore(), or begin()",
)
SQLITE_CHECKPOINTER_ON_CLUSTER = Refusal(
    "a graph whose checkpointer keeps its state in a SQLite file, in a run with workers of a Ray cluster",
    _BEFORE_START,
    "other machines do not have its file",
    "ray: {role} is played by {model}, whose checkpointer keeps its state in a file of this machine; play with workers "
    "of this machine (setting `workers`), or compile it with the checkpointer of a database server",
)
UNRESTORABLE_IN_BRANCH = Refusal(
    f"{_UNRESTORABLE_PLAYER}, in a fork, a rewind or `resample` after its first reply",
    "before a branch is made",
    "its state at that message is gone",
    "{branch} cannot continue from here on another branch: {role} is played by {model}, whose state after its last "
    "message is gone; give it snapshot() and restore(), or begin()",
)
UNRESTORABLE_IN_DEBUGGER = Refusal(
    f"{_UNRESTORABLE_PLAYER}, when the step debugger continues a conversation that another process began",
    "at its next call",
    "its state is gone; resuming the run plays the conversation again",
    "cannot go on: it has no snapshot(), restore() or begin(), and the state after the last message is gone",
)
STATEFUL_IN_REPLAY = Refusal(
    "a stateful player that gives new replies when a case from a person's second or later conversation is replayed",
    _BEFORE_START,
    "a case does not contain the player's state after the earlier conversations",
    "live: {role!r} keeps state, this is the person's conversation {number}, and the case does not contain the state "
    "after the earlier ones",
)
UNSUPPORTED_STATE_VALUES = Refusal(
    "a graph with `InMemorySaver` whose state has values other than LangChain messages and plain values",
    "before anything is played if its state declares dataclasses or pydantic models, otherwise after the first reply "
    "with such values, because a state of another type does not declare its values",
    "they could not be restored",
    "has values in its state that cannot be restored{declared}: with InMemorySaver, only LangChain messages and plain "
    "values can; compile it with a persistent checkpointer",
)
NON_JSON_STORE_ITEMS = Refusal(
    "a graph with a store that contains values that are not JSON",
    "at the first call that finds or leaves such values, because a graph's code does not declare them",
    "they could not be restored",
    "has values in its store that are not JSON, and so cannot be restored: {error}",
)
NON_JSON_SNAPSHOT = Refusal(
    "an object whose `snapshot()` returns neither a JSON value nor bytes",
    "at its first reply, because no snapshot is taken before",
    "it could not be restored",
    "must return a JSON value or bytes from snapshot(): {error}",
)
NAMESPACE_WITHOUT_PERSON = Refusal(
    "a store whose namespaces contain no person's id",
    "before anything is played if an `InMemoryStore` has such items, otherwise at the first call that finds or leaves "
    "some, because other stores may not be readable before, and a graph's code does not declare its namespaces",
    "one person's items could not be distinguished from another's",
    "has items in the namespace {namespace!r} of its store, which belongs to no person and so cannot be restored; put "
    "the person's id into it: config['configurable']['user_id']",
)
PLAYER_WITHOUT_SESSION = Refusal(
    "a function or object that is declared stateful but has neither `session`, nor snapshots, nor `begin`",
    _BEFORE_START,
    "it could not distinguish conversations",
    "is declared stateful and cannot tell one conversation from another: give it a parameter `session`, or declare a "
    "class, of which each conversation gets an object of its own",
)
STATEFUL_SUBGRAPH = Refusal(
    "a graph with a subgraph that has a checkpointer or store of its own",
    _BEFORE_START,
    "its state could not be restored",
    "has a subgraph {name!r} that is compiled with a {kind} of its own, whose state cannot be restored; compile the "
    "subgraph without a {kind}",
)
UNDECLARED_GRAPH = Refusal(
    "a graph that has a checkpointer or a store but is not declared stateful",
    _BEFORE_START,
    "it would keep state that nothing restores",
    "is compiled with a {kind} ({type}), so it keeps state between calls: declare it stateful (the setting `stateful` "
    "with the role, or Agent(graph, stateful=True)), or compile it without one",
)
UNDECLARED_OBJECT = Refusal(
    "an object with `snapshot()` and `restore(snapshot)`, or with `begin`, that is not declared stateful",
    _BEFORE_START,
    "it would carry its state from one conversation into another",
    "has {methods}, so it keeps state between calls: declare it stateful (the setting `stateful` with the role, or "
    "Agent(player, stateful=True)), or remove them",
)
GRAPH_WITHOUT_STATE = Refusal(
    "a graph that is declared stateful but has neither a checkpointer nor a store",
    _BEFORE_START,
    "it would get only the new messages, and would not remember the earlier ones",
    "is declared stateful, but is compiled with neither a checkpointer nor a store",
)
STATEFUL_OFFLINE_MODEL = Refusal(
    "an offline or an embedding model that is declared stateful",
    _BEFORE_START,
    "it keeps no state",
    "stateful: {model} keeps no state between calls",
)
HISTORY_IN_PROMPT = Refusal(
    "a stateful player of a role whose prompt contains the conversation as text",
    _BEFORE_START,
    "new messages could not be distinguished from earlier ones",
    "stateful: {role} cannot be stateful, because its prompt {prompt!r} holds the conversation as text",
)
CALL_WITHOUT_CONVERSATION = Refusal(
    "a stateful player in a call that scenarios share",
    "at the call, because nodes decide at run time which calls are shared",
    "it belongs to no conversation",
    "keeps state, and this call belongs to no conversation, such as one that scenarios share; begin a new run in which "
    "it is not declared stateful",
)
MCP_TOOLS_WITH_WORKERS = Refusal(
    "tools of MCP servers, in a run with workers",
    _BEFORE_START,
    "a call must not be made twice",
    "{setting}: tools of MCP servers are called from one process only, so that no call is made twice; leave out "
    "{setting}",
)

REFUSALS = (
    UNRESTORABLE_WITH_WORKERS,
    SQLITE_CHECKPOINTER_ON_CLUSTER,
    UNRESTORABLE_IN_BRANCH,
    UNRESTORABLE_IN_DEBUGGER,
    STATEFUL_IN_REPLAY,
    UNSUPPORTED_STATE_VALUES,
    NON_JSON_STORE_ITEMS,
    NON_JSON_SNAPSHOT,
    NAMESPACE_WITHOUT_PERSON,
    PLAYER_WITHOUT_SESSION,
    STATEFUL_SUBGRAPH,
    UNDECLARED_GRAPH,
    UNDECLARED_OBJECT,
    GRAPH_WITHOUT_STATE,
    STATEFUL_OFFLINE_MODEL,
    HISTORY_IN_PROMPT,
    CALL_WITHOUT_CONVERSATION,
    MCP_TOOLS_WITH_WORKERS,
)
"""All refusals, in the order of the documentation."""

RESUME, FORK, REWIND, RESAMPLE = "resume after `kill -9`", "fork", "rewind", "`resample`"
WORKERS, CLUSTER, TRIALS = "workers", "workers of a Ray cluster", "trials"
USES = (RESUME, FORK, REWIND, RESAMPLE, WORKERS, CLUSTER, TRIALS)
"""The situations in which the documentation describes what happens to a stateful player."""

SAME_STATE = "same"
PLAYED_AGAIN = "played again from its beginning"


@dataclass(frozen=True, slots=True)
class PlayerKind:
    """A kind of stateful player.

    Attributes:
        name: The kind.
        stored: The state that is stored after each reply.
        exceptions: The result of each use in which the player does not continue with the same state.
    """

    name: str
    stored: str
    exceptions: Mapping[str, str | Refusal] = field(default_factory=dict)


_CHECKPOINT = "the id of its checkpoint, from which its thread is forked"

PLAYER_KINDS = (
    PlayerKind("graph with a checkpointer in a SQLite file", _CHECKPOINT, {CLUSTER: SQLITE_CHECKPOINTER_ON_CLUSTER}),
    PlayerKind("graph with another persistent checkpointer", _CHECKPOINT),
    PlayerKind("graph with `InMemorySaver`", "the checkpoint itself"),
    PlayerKind("graph with a store", "the items in namespaces that contain `user_id`"),
    PlayerKind("object or class with `snapshot()` and `restore(snapshot)`", "the snapshot (JSON or bytes)"),
    PlayerKind("object or class with `begin(session, messages)`", "none: `begin` gets the earlier messages"),
    PlayerKind(
        "any other function or object, or a model's server",
        "none",
        {RESUME: PLAYED_AGAIN}
        | dict.fromkeys((FORK, REWIND, RESAMPLE), UNRESTORABLE_IN_BRANCH)
        | dict.fromkeys((WORKERS, CLUSTER), UNRESTORABLE_WITH_WORKERS),
    ),
)


def dump_state(state: Any) -> str:
    """Return a state as JSON from which it is restored unchanged, except that tuples become lists.

    Raises:
        TypeError, ValueError, RecursionError: If it is not a JSON value, or a key of a mapping is not a string.
    """
    _check_keys(state)
    return json.dumps(state, ensure_ascii=False, allow_nan=False)


def _check_keys(value: Any) -> None:
    """Raise `TypeError` if a key of a mapping is not a string, because JSON would change it to one."""
    if isinstance(value, dict):
        if invalid := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"the key {invalid[0]!r:.60} is not a string, and would be restored as one")
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for part in value:
        _check_keys(part)

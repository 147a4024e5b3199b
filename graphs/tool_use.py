"""The nodes of a dialogue whose assistant has tools: they reset the environment, ask the assistant, and run tools."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar, Protocol

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from dialoom.prompts import Utterance
from dialoom.roles import UnparsedReplyError

from .built_in_environments import NEEDS_MCP, load_remote_tools
from .conversation import DialogueState, acted, calls_of, tool_said
from .environment import EnvironmentFactory, Tool, ToolError, Workbench
from .outcome import ENVIRONMENT, Episode
from .stage import Scene, Update
from .tables.statistics import MIN_UNITS
from .tables.table import Table

TOOLS_NODE, BEGIN_NODE = "tools", "begin"
"""The names of two nodes: the one that runs the tool calls, and the one that creates the environment's first state."""

MAX_TOOL_TURNS = "max_tool_turns"
"""The recorded reason when a dialogue ends because the assistant keeps calling tools without answering."""

Node = Callable[[Any, Scene], Awaitable[Update]]


class ToolRecipe(Protocol):
    """The part of a `DialogueRecipe` that these nodes use."""

    max_tool_turns: int
    turns: ClassVar[Any]

    @property
    def tools(self) -> Sequence[Tool]:
        """The assistant's tools, without those of the environment."""

    @property
    def mcp(self) -> Sequence[str]:
        """The MCP servers, by command or URL."""

    def prompt_of(self, scenario: Any, role: str) -> str:
        """Return the id of a role's prompt."""

    def request(self, state: Any, scene: Scene, role: str) -> tuple[str, dict[str, Any]]:
        """Return the id of the prompt for a role's next message, and the prompt's inputs."""

    def reply_update(self, state: Any, scene: Scene, role: str, reply: str) -> Update:
        """Return the state update that adds a role's reply."""


class ToolState(DialogueState, total=False):
    """The state of a dialogue whose assistant has tools.

    Attributes:
        environment: The environment's snapshot.
        changes: The number of steps of the assistant that changed the environment.
        has_tools: Whether the assistant is offered the tools.
    """

    environment: Any
    changes: Annotated[int, operator.add]
    has_tools: bool


def list_mcp_servers(recipe: Any, options: Any) -> tuple[str, ...]:
    """Return the MCP servers that a recipe and its option `mcp` name; none if the recipe is not a dialogue."""
    declared = getattr(recipe, "mcp", None)
    return () if declared is None else tuple(dict.fromkeys([*declared, *(getattr(options, "mcp", None) or ())]))


def uses_tools(recipe: ToolRecipe, options: Any) -> bool:
    """Return whether a recipe's assistant has tools."""
    return bool(recipe.tools or list_mcp_servers(recipe, options)) or find_environment_factory(recipe) is not None


def find_environment_factory(recipe: ToolRecipe) -> EnvironmentFactory | None:
    """Return the factory of a recipe's environment.

    If the recipe's class defines the factory as a function, the plain function is returned, not a bound method.
    """
    instance_factory: EnvironmentFactory | None = vars(recipe).get("environment")
    class_factory: EnvironmentFactory | None = getattr(type(recipe), "environment", None)
    return class_factory if instance_factory is None else instance_factory


async def build_workbench(recipe: ToolRecipe, role: str, scene: Scene, servers: Sequence[str]) -> Workbench:
    """Return the workbench of one step. It holds a new environment and the tools, including those of MCP servers.

    Raises:
        ToolError, PermanentProviderError: In the same cases as `Workbench`, or if a server cannot be used.
    """
    prompt = recipe.prompt_of(scene.scenario, role)
    bench = Workbench(
        recipe.tools,
        find_environment_factory(recipe),
        await load_remote_tools(servers),
        partial(scene.run_remote, prompt),
    )
    _check_names(recipe, bench.tools.names, is_complete=bool(bench.tools.remote) or not servers)
    return bench.bind()


def check_tools(recipe: ToolRecipe, servers: Sequence[str]) -> None:
    """Check the tools before a run starts.

    Tools of MCP servers are not checked: they are only known once the run has started.

    Raises:
        ToolError: If a tool cannot be offered or has the name of a role, if a tool that ends the dialogue is missing,
            or if there are MCP servers and the library for them is not installed.
        PermanentProviderError: If the environment raises an exception.
    """
    if servers and find_spec("mcp") is None:
        raise ToolError(f"mcp: {NEEDS_MCP}", setting="mcp")
    _check_names(recipe, Workbench(recipe.tools, find_environment_factory(recipe)).tools.names, is_complete=not servers)


def _check_names(recipe: ToolRecipe, names: Sequence[str], is_complete: bool = True) -> None:
    if role_names := [name for name in names if name in recipe.turns.roles]:
        raise ToolError(f"tools: {role_names[0]!r} is the name of a role; rename the tool", setting="tools")
    if (missing := [name for name in recipe.turns.ending_tools if name not in names]) and is_complete:
        known = ", ".join(names) or "none"
        raise ToolError(
            f"ends name the tool {missing[0]!r}, which is not offered; the tools are {known}", setting="ends"
        )


def make_begin_node(recipe: ToolRecipe, role: str, servers: Sequence[str]) -> Node:
    """Return the first node. It resets the environment and finds out whether the assistant's model accepts tools."""

    async def run(state: ToolState, scene: Scene) -> Update:  # noqa: ARG001
        has_tools = await scene.takes_tools(recipe.prompt_of(scene.scenario, role))
        first = (await build_workbench(recipe, role, scene, servers if has_tools else ())).reset(scene.scenario)
        return {"has_tools": has_tools, **({} if find_environment_factory(recipe) is None else {ENVIRONMENT: first})}

    run.__name__ = BEGIN_NODE
    return run


def make_assistant_node(recipe: ToolRecipe, role: str, servers: Sequence[str], speak: Node) -> Node:
    """Return the assistant's node. It requests a message, which may hold tool calls.

    If a graph plays the assistant, that graph may already have run the calls.

    Args:
        recipe: The recipe.
        role: The role.
        servers: The MCP servers, by command or URL.
        speak: The node of an assistant without tools.

    Raises (when it runs):
        UnparsedReplyError: If the reply holds neither text nor calls.
    """

    async def run(state: ToolState, scene: Scene) -> Update:
        if not state["has_tools"]:
            return await speak(state, scene)
        bench = await build_workbench(recipe, role, scene, servers)
        bench.restore(state.get(ENVIRONMENT))
        prompt, inputs = recipe.request(state, scene, role)
        messages = state["messages"]
        reply = await scene.act(prompt, bench.tools.definitions, bench, **inputs)
        if not reply.content and not reply.tool_calls:
            raise UnparsedReplyError(prompt, "", "it holds neither text nor tool calls")
        if not reply.tool_calls:
            return recipe.reply_update(state, scene, role, reply.content)
        new_messages = acted(reply, len(messages), role)
        if not reply.outputs:
            return {"messages": new_messages}
        if not reply.content:
            new_messages.pop()
        reason = _find_ending(recipe, [call["name"] for call in reply.tool_calls])
        reason = reason or recipe.turns.reason(scene.scenario, role, [*messages, *new_messages], "")
        # This is the snapshot stored with the reply, because a replayed reply does not run its tools again.
        snapshot = (reply.carried or {}).get(ENVIRONMENT)
        return {
            "messages": new_messages,
            "ended_by": state["ended_by"] or reason,
            **_build_environment_update(recipe, state, snapshot),
        }

    run.__name__ = role
    return run


def make_tools_node(recipe: ToolRecipe, role: str, servers: Sequence[str]) -> Node:
    """Return the node that runs the calls of the last message, in order."""

    async def run(state: ToolState, scene: Scene) -> Update:
        bench = await build_workbench(recipe, role, scene, servers)
        bench.restore(state.get(ENVIRONMENT))
        messages = state["messages"]
        calls = calls_of(messages[-1])
        results = [tool_said(call, await bench(call), len(messages) + number) for number, call in enumerate(calls)]
        reason = _find_ending(recipe, [call["name"] for call in calls])
        if not reason and _count_tool_turns(messages, role) >= recipe.max_tool_turns:
            reason = MAX_TOOL_TURNS
        return {
            "messages": results,
            "ended_by": state["ended_by"] or reason,
            **_build_environment_update(recipe, state, bench.state()),
        }

    run.__name__ = TOOLS_NODE
    return run


def _build_environment_update(recipe: ToolRecipe, state: ToolState, snapshot: Any) -> Update:
    """Return the state update for the environment's channels; empty if nothing has changed."""
    if find_environment_factory(recipe) is None or snapshot == state.get(ENVIRONMENT):
        return {}
    return {ENVIRONMENT: snapshot, "changes": 1}


def _find_ending(recipe: ToolRecipe, called: Sequence[str]) -> str:
    """Return the ending to record if one of the called tools ends the dialogue; otherwise an empty text."""
    return next((f"tool {name}" for name in called if name in recipe.turns.ending_tools), "")


def _count_tool_turns(messages: Sequence[BaseMessage], role: str) -> int:
    """Return the number of consecutive messages with tool calls since another role last spoke."""
    count = 0
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            if message.name != role:
                break
            count += bool(calls_of(message))
    return count


def has_pending_calls(messages: Sequence[BaseMessage]) -> bool:
    """Return whether the last message holds calls that have not been run yet."""
    return bool(messages) and isinstance(messages[-1], AIMessage) and bool(calls_of(messages[-1]))


def count_turns(messages: Sequence[BaseMessage], role: str) -> int:
    """Return the number of turns that a role has begun. A message after a tool's result continues the same turn."""
    return sum(
        message.name == role and not (index and isinstance(messages[index - 1], ToolMessage))
        for index, message in enumerate(messages)
    )


def remove_tool_messages(history: Sequence[Utterance]) -> list[Utterance]:
    """Return a conversation without tool calls and results, as roles without tools receive it."""
    return [
        {"speaker": each["speaker"], "content": each["content"]}
        for each in history
        if "tool_call_id" not in each and (each["content"] or not each.get("tool_calls"))
    ]


def collect_details(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state's values about the environment and the tools, as entries of the outcome's details."""
    if "has_tools" not in state:
        return {}
    environment = {} if ENVIRONMENT not in state else {ENVIRONMENT: state[ENVIRONMENT]}
    return {**environment, "has_tools": bool(state.get("has_tools"))}


def collect_counts(recipe: ToolRecipe, state: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of tool calls, and the number of steps that changed the environment."""
    if "has_tools" not in state:
        return {}
    call_counts = {"tool_calls": sum(len(calls_of(message)) for message in state.get("messages", []))}
    return (
        call_counts if find_environment_factory(recipe) is None else {**call_counts, "changes": state.get("changes", 0)}
    )


@dataclass(slots=True)
class ToolUseTally:
    """Counts of tool use in one run, collected while the run's scenarios are read.

    Attributes:
        label: The run's label.
        dialogues: The number of dialogues, by the reason why they ended.
        idle: The number of dialogues without a tool call, by the reason why they ended.
        unchanged: The number of dialogues whose environment never changed, by the reason why they ended.
        without_tools: The number of dialogues whose assistant was offered no tools.
        expects_tools: Whether any dialogue's assistant was meant to have tools.
    """

    label: str
    dialogues: Counter[str] = field(default_factory=Counter)
    idle: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    without_tools: int = 0
    expects_tools: bool = False

    def warning(self) -> str:
        """Return a warning about an assistant that was offered no tools, or called none at all; otherwise empty."""
        count = self.dialogues.total()
        if self.without_tools:
            return (
                f"the assistant was offered no tools in {self.without_tools:,} of {count:,} dialogues, because "
                "its player is "
                "not known to accept tools"
            )
        if self.expects_tools and count >= MIN_UNITS and self.idle.total() == count:
            return f"the assistant was offered tools and called none in any of {count:,} dialogues"
        return ""

    def observe(self, episodes: Iterable[Episode]) -> Iterator[Episode]:
        """Yield the episodes unchanged, and count each one."""
        for episode in episodes:
            outcome = episode.outcome
            self.dialogues[outcome.ended_by] += 1
            self.idle[outcome.ended_by] += not outcome.counts.get("tool_calls")
            self.unchanged[outcome.ended_by] += not outcome.counts.get("changes")
            self.without_tools += outcome.details.get("has_tools") is False
            self.expects_tools |= "has_tools" in outcome.details
            yield episode


def add_tool_use(tables: list[Table], tallies: Sequence[ToolUseTally]) -> list[Table]:
    """Add a table of endings and tool use to the tables, and a warning about assistants that were offered no tools."""
    if not any(each.expects_tools for each in tallies):
        return tables
    has_several_runs = len(tallies) > 1
    columns = [*(["run"] if has_several_runs else []), "ended by", "dialogues", "no tool call", "state unchanged"]
    table = Table("actions", "Endings and tool use of the assistant", columns)
    for each in tallies:
        for reason, count in sorted(each.dialogues.items()):
            label = [each.label] if has_several_runs else []
            table.rows.append([*label, reason, count, each.idle[reason], each.unchanged[reason]])
    table.notes.append(
        "No tool call: dialogues without any tool call. State unchanged: dialogues whose environment did not change. A "
        "user who ends such a dialogue has believed a false claim of the assistant, or has given up."
    )
    warnings = [
        f"{f'{each.label}: ' if has_several_runs else ''}{text}" for each in tallies if (text := each.warning())
    ]
    tables = [*tables, table] if table.rows else tables
    for each_table in tables:
        each_table.warnings += warnings
    return tables

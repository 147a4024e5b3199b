"""Dialogues between roles that speak in turn.

A recipe's state, graph, outcome and gate facts are derived from a few values.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

from langchain_core.messages import BaseMessage

from dialoom.prompts import Prompt, Utterance, shared_text
from dialoom.roles import UnparsedReplyError

from . import tool_use
from .capabilities import WithFacets, WithGate, WithJudging, WithProgress, WithPrompts, WithReport, WithRoles
from .conversation import DialogueState, lines, said, speaker_of, utterances
from .environment import EnvironmentFactory, Tool
from .gate.talk import Facts
from .judge import Graph, add_judges
from .outcome import SYSTEM, USER, Episode, Judgement, Outcome
from .recipe import Recipe, RecipeError
from .scenario import Scenario
from .stage import Scene, Stage, Update, node
from .tables.table import Table
from .tool_use import count_turns, remove_tool_messages

END_MARKER, MAX_TURNS = "end_marker", "max_turns"
"""The reasons why a dialogue ends: a role wrote the end marker, or all turns are used up."""

ASSISTANT = "assistant"
_DEFAULT_TEMPERATURE = 0.7
"""The default sampling temperature of roles other than the assistant and the judges."""

_PROMPT_ID = re.compile(r"[\w-]+(/[\w-]+)+")


@dataclass(frozen=True, slots=True)
class ExtraRole:
    """A role that speaks outside the order of turns, after a message that triggers it.

    Attributes:
        role: The role.
        after: A role; this role speaks after each of its messages. Empty for none.
        keyword: A word that makes this role speak when it occurs in anybody's message; empty for none.
    """

    role: str
    after: str = ""
    keyword: str = ""

    def is_called(self, message: BaseMessage) -> bool:
        """Return whether a message makes the role speak next."""
        if message.name == self.role:
            return False
        return message.name == self.after or (bool(self.keyword) and has_word(str(message.content), self.keyword))


@dataclass(frozen=True, slots=True)
class Turns:
    """The order of the speakers, and the conditions on which the conversation ends.

    Example:
        >>> turns = dialoom.Turns(("user", "assistant"), max_turns=8, end_marker="DONE")

    Attributes:
        order: The roles in the order in which they speak. A turn consists of one message of each role.
        max_turns: Maximum number of turns, or the name of the scenario's field that holds it.
        end_marker: A word with which the role `ended_by` ends the conversation. It is removed from the message. Empty
            for none.
        ended_by: The role that may end the conversation; by default the first.
        until: A function that can end the conversation after any message: `until(scenario, messages)` returns the
            reason, or an empty text if the conversation goes on.
        unit: What a turn is called where turns are counted.
        limit_reason: The reason recorded when `max_turns` is reached.
        end_reason: The reason recorded when the end marker is written.
        last_word: The role that still replies after a message with the end marker; empty for none.
        other_markers: Further words with which the role `ended_by` ends the conversation, each with the recorded
            reason.
        extras: Roles that speak outside the order.
        ending_tools: The assistant's tools that end the conversation when they are called.
    """

    order: tuple[str, ...] = ("user", "assistant")
    max_turns: int | str = 10
    end_marker: str = ""
    ended_by: str = ""
    until: Callable[[Any, list[BaseMessage]], str] | None = None
    unit: str = "turn"
    limit_reason: str = MAX_TURNS
    end_reason: str = END_MARKER
    last_word: str = ""
    other_markers: Mapping[str, str] = field(default_factory=dict)
    extras: tuple[ExtraRole, ...] = ()
    ending_tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.order:
            raise RecipeError("order must name at least one role, got ()", setting="order")
        if isinstance(self.max_turns, int) and self.max_turns < 1:
            raise RecipeError(f"max_turns must be at least 1, got {self.max_turns}", setting="max_turns")

    def limit(self, scenario: Any) -> int:
        """Return the maximum number of turns of a scenario."""
        return self.max_turns if isinstance(self.max_turns, int) else int(getattr(scenario, self.max_turns))

    @property
    def ender(self) -> str:
        """The role that may end the conversation by a marker."""
        return self.ended_by or self.order[0]

    @property
    def markers(self) -> Mapping[str, str]:
        """The words that end the conversation, each with the recorded reason."""
        return {**({self.end_marker: self.end_reason} if self.end_marker else {}), **self.other_markers}

    @property
    def roles(self) -> tuple[str, ...]:
        """All roles that speak."""
        return (*self.order, *(extra.role for extra in self.extras))

    def following(self, messages: Sequence[BaseMessage]) -> str:
        """Return the role that speaks after the last message.

        Roles in `extras` come first, if they were triggered since a role of the order last spoke. Each of them speaks
        once. Then the next role of the order speaks.
        """
        index = max(index for index, message in enumerate(messages) if message.name in self.order)
        recent = messages[index:]
        names = {message.name for message in recent}
        following = self.order[(self.order.index(str(recent[0].name)) + 1) % len(self.order)]
        called = (each.role for each in self.extras if each.role not in names and any(map(each.is_called, recent)))
        return next(called, following)

    def split(self, text: str) -> tuple[str, str]:
        """Return a message without end markers, and the marker that it contained.

        If it contained several, return the one that is first in `markers`.
        """
        first_marker = ""
        for marker in self.markers:
            text, is_marked = remove_marker(text, marker)
            first_marker = first_marker or (marker if is_marked else "")
        return text.strip(), first_marker

    def reason(self, scenario: Any, role: str, messages: list[BaseMessage], marker: str) -> str:
        """Return the reason why the conversation is over after a message, or an empty text if it goes on.

        Args:
            scenario: The scenario.
            role: The role that has just spoken.
            messages: The conversation, including that message.
            marker: The end marker that the message contained; empty for none.
        """
        if marker and role == self.ender:
            return self.markers[marker]
        if self.until is not None and (reason := self.until(scenario, messages)):
            if not isinstance(reason, str):
                raise TypeError(f"until must return the reason as a text, or an empty text, got {reason!r:.60}")
            return reason
        is_last = role == self.order[-1] and count_turns(messages, role) >= self.limit(scenario)
        return self.limit_reason if is_last else ""


class DialogueRecipe(Recipe, WithRoles, WithPrompts, WithJudging, WithFacets, WithReport, WithGate, WithProgress):
    """A recipe whose roles speak in turn. Reports, exports, labels, data frames and judging again need no further code.

    A subclass has a name, prompts, turns and scenarios, and optionally judges and checks. `prompts` maps each role to
    the text of its system prompt, a Jinja2 template over the scenario's fields, or to the id of a prompt file. A recipe
    whose roles speak in a different order overrides `graph` and keeps all other methods.

    Example:
        >>> class Errand(dialoom.Scenario):
        ...     goal: str
        >>> class Support(dialoom.DialogueRecipe):
        ...     name = "support"
        ...     scenario_type = Errand
        ...     prompts = {"user": "You call a shop. <task>{{ goal }}</task> Write DONE when satisfied.",
        ...                "assistant": "You are the support agent of a shop."}
        ...     turns = dialoom.Turns(max_turns=8, end_marker="DONE")
        ...     judges = [dialoom.Judge("resolved", rubric="The goal was reached: {{ goal }}")]
        ...     def scenarios(self, options, draw, note):
        ...         yield Errand(goal="return a kettle")
        >>> dialoom.play(Support, path="support.db").status().done
        1

    Attributes:
        turns: The order of the speakers, and the conditions on which the conversation ends.
        tools: Tools that the assistant is offered besides those of its environment: functions and LangChain tools. A
            tool may be executed again after a crash, so it must have no external effects.
        environment: A class or function that creates the environment on which the assistant's tools act; see
            `Environment`.
        mcp: MCP servers whose tools the assistant is offered, each given as a command or a URL. If the options have a
            field `mcp` (a tuple of strings), its servers are added.
        max_tool_turns: Maximum number of messages with tool calls in one turn of the assistant. The dialogue ends when
            this number is reached.
    """

    turns: ClassVar[Turns] = Turns()
    tools: Sequence[Tool] = ()
    environment: ClassVar[EnvironmentFactory | None] = None
    mcp: Sequence[str] = ()
    max_tool_turns: int = 10
    _declares_roles: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Derive the roles and the evaluated role from prompts and judges, if a class does not declare them."""
        super().__init_subclass__()
        own = vars(cls)
        cls._declares_roles = cls._declares_roles or "roles" in own
        if not cls._declares_roles and isinstance(getattr(cls, "prompts", None), Mapping):
            judging = {judge.role: 0.0 for judge in cls.judges}
            cls.roles = {role: 0.0 if role == ASSISTANT else _DEFAULT_TEMPERATURE for role in cls.prompts} | judging
        if "evaluated" not in own and ASSISTANT in getattr(cls, "roles", ()):
            cls.evaluated = ASSISTANT

    def roles_used(self, options: Any) -> Mapping[str, float]:
        """Return the roles that speak and, if the run judges, the roles that judge."""
        judging = {judge.role for judge in self.judges} - set(self.turns.roles)
        judges = {judge.role for judge in self.judges_used(options)}
        return {role: value for role, value in self.roles.items() if role not in judging or role in judges}

    def prompt_list(self, sets: Sequence[str] = ()) -> list[str | Prompt]:
        """Return the prompts of the roles and of the judges."""
        texts = self.prompt_texts(sets)
        if not isinstance(texts, Mapping):
            return super().prompt_list(sets)
        prompts = [
            text if _PROMPT_ID.fullmatch(text) else self._compose_prompt(role, text, sets)
            for role, text in texts.items()
        ]
        return [*prompts, *(judge.prompt_of(self.name, sets) for judge in self.judges)]

    def prompt_texts(self, sets: Sequence[str]) -> Sequence[str] | Mapping[str, str]:
        """Return `prompts`. A recipe that composes its prompts from the texts of the selected sets overrides this."""
        return self.prompts

    def _compose_prompt(self, role: str, text: str, sets: Sequence[str]) -> Prompt:
        """Return a role's prompt, made from the text of its system message."""
        body = text if text.lstrip().startswith("===") else f"=== system ===\n{text.strip()}\n"
        if "=== history ===" not in body:
            body += (shared_text("opening", sets) if role == self.turns.order[0] else "") + "=== history ===\n"
        return Prompt.compose(self.prompt_of(None, role), role, body)

    def prompt_of(self, scenario: Any, role: str) -> str:
        """Return the id of a role's prompt."""
        if isinstance(self.prompts, Mapping):
            text = self.prompts[role]
            return text if _PROMPT_ID.fullmatch(text) else f"{self.name}/{role}"
        return next(id_ for id_ in self.prompts if id_.rpartition("/")[2] == role)

    def inputs(self, scenario: Any, role: str) -> Mapping[str, Any]:
        """Return the inputs of a role's prompt besides the history: by default every field of the scenario."""
        return {name: getattr(scenario, name) for name in type(scenario).model_fields}

    def check_inputs(self, library: Mapping[str, Prompt], servers: Sequence[str] = ()) -> None:
        """Check, before a run starts, that scenarios have every input that the roles' prompts declare.

        Recipes that override `inputs` or `prompt_of` are not checked, because their inputs are not known here. The
        tools are created once to find tools that cannot be offered.

        Args:
            library: The recipe's prompts by id.
            servers: The MCP servers of the run.

        Raises:
            RecipeError: If an input is missing. The message names the prompt and the input.
            ToolError: If a tool cannot be offered.
        """
        tool_use.check_tools(self, servers)
        recipe_type, scenario_type = type(self), self.scenario_type
        if recipe_type.inputs is not DialogueRecipe.inputs or recipe_type.prompt_of is not DialogueRecipe.prompt_of:
            return
        for prompt in [library[self.prompt_of(None, role)] for role in self.turns.roles]:
            if unknown := [
                name for name in prompt.front.inputs if name not in ("history", *scenario_type.model_fields)
            ]:
                raise RecipeError(
                    f"prompt {prompt.id!r} declares the input {_describe_unknown_field(unknown[0], scenario_type)}"
                )

    def graph(self, options: Any) -> Graph:
        """Return the graph: the roles speak in turn, then the judges score."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and not needed to read a run

        self._check_turns()
        tool_role = ASSISTANT if tool_use.uses_tools(self, options) else ""
        servers = tool_use.list_mcp_servers(self, options)
        order = self.turns.order
        if tool_role and tool_role not in order:
            raise RecipeError(
                f"tools are offered to the role {tool_role!r}, which is not in the order of turns", setting="tools"
            )
        builder = StateGraph(tool_use.ToolState if tool_role else DialogueState, context_schema=Stage)
        for role in self.turns.roles:
            speak = self.speaker(role)
            builder.add_node(
                role, node(tool_use.make_assistant_node(self, role, servers, speak) if role == tool_role else speak)
            )
        next_nodes = add_judges(builder, self, self.judges_used(options)) or [END]
        for role in self.turns.roles:
            last_word = self.turns.last_word if role == self.turns.ender else ""
            next_speakers = (
                (order[(order.index(role) + 1) % len(order)],) if not self.turns.extras else self.turns.roles
            )
            route = _make_router(role, self.turns, next_nodes, last_word)
            tools = [tool_use.TOOLS_NODE] if role == tool_role else []
            builder.add_conditional_edges(
                role, route, list(dict.fromkeys([*next_speakers, *filter(None, [last_word]), *tools, *next_nodes]))
            )
        if tool_role:
            builder.add_node(tool_use.BEGIN_NODE, node(tool_use.make_begin_node(self, tool_role, servers)))
            builder.add_node(tool_use.TOOLS_NODE, node(tool_use.make_tools_node(self, tool_role, servers)))
            builder.add_edge(tool_use.BEGIN_NODE, order[0])
            builder.add_conditional_edges(
                tool_use.TOOLS_NODE, _make_tools_router(tool_role, next_nodes), [tool_role, *next_nodes]
            )
        builder.add_edge(START, tool_use.BEGIN_NODE if tool_role else order[0])
        return builder

    def _check_turns(self) -> None:
        """Check `max_turns`, that each role of `turns` has a prompt, and that each judge has a known target."""
        known = [name.rpartition("/")[2] for name in self.prompts]
        if unknown := [role for role in self.turns.roles if role not in known]:
            raise RecipeError(
                f"turns name the role {unknown[0]!r}, which has no prompt; the roles with prompts are "
                f"{', '.join(known)}"
            )
        for judge in self.judges:
            if judge.target not in (ASSISTANT, *known):  # the default target need not be a role
                raise RecipeError(
                    f"judge {judge.metric!r} has the target {judge.target!r}, which is not a role; the roles are "
                    f"{', '.join(known)}"
                )
        limit, kind = self.turns.max_turns, self.scenario_type
        if isinstance(limit, str) and not hasattr(kind, limit) and limit not in kind.model_fields:
            raise RecipeError(f"max_turns names the field {_describe_unknown_field(limit, kind)}")

    def report_tables(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Table]:
        """Return the tables.

        If the assistant has tools, add a table of their use, and a warning if it was offered none.
        """
        tallies = [tool_use.ToolUseTally(label) for label, _ in runs]
        counted_runs = [(label, each.observe(episodes)) for each, (label, episodes) in zip(tallies, runs, strict=True)]
        return tool_use.add_tool_use(super().report_tables(counted_runs), tallies)

    def initial(self, scenario: Any) -> dict[str, Any]:
        """Return the state before the first message."""
        return {"messages": [], "judgements": [], "ended_by": ""}

    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the conversation, the reason why it ended, its number of turns, and the judgements in order."""
        messages = state.get("messages", [])
        return Outcome(
            messages=lines(messages),
            ended_by="error" if failed else state.get("ended_by", ""),
            counts={
                f"{self.turns.unit}s": count_turns(messages, self.turns.order[-1]),
                **tool_use.collect_counts(self, state),
            },
            details=tool_use.collect_details(state),
            judgements=tuple(Judgement.model_validate(value) for value in state.get("judgements", [])),
        )

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of turns that have begun, for the step debugger."""
        return {self.turns.unit: count_turns(state.get("messages", ()), self.turns.order[0])}

    def facts(self, scenario: Any) -> Facts:
        """Return the facts about a conversation for the gate's rules."""
        return Facts(
            languages=self.languages,
            end_markers=tuple(self.turns.markers),
            user_ends=self.turns.end_reason if self.turns.end_marker and self.turns.ender == USER else None,
            limit=self.turns.limit_reason,
        )

    def spoken(self, reply: str) -> str:
        """Return a reply without its end marker."""
        return self.turns.split(reply)[0]

    def build_history(self, role: str, messages: Sequence[BaseMessage]) -> list[Utterance]:
        """Return the conversation for a role's prompt, with tool calls and results only if this role makes calls."""
        history = utterances(messages)
        makes_calls = any(each["speaker"] == role and each.get("tool_calls") for each in history)
        return history if makes_calls or role == ASSISTANT else remove_tool_messages(history)

    def speaker(self, role: str) -> Callable[[Any, Scene], Awaitable[Update]]:
        """Return a role's node function, which asks the role for its next message and adds the message to the state.

        Raises (when it runs):
            UnparsedReplyError: If the reply is empty after its end marker is removed.
        """

        async def speak(state: DialogueState, scene: Scene) -> Update:
            prompt, inputs = self.request(state, scene, role)
            if role == USER:
                reply = await scene.ask_user(prompt, lines(state["messages"]), self.spoken, **inputs)
            else:
                reply = str(await scene.ask(prompt, **inputs))
            return self.reply_update(state, scene, role, reply)

        speak.__name__ = role
        return speak

    def request(self, state: DialogueState, scene: Scene, role: str) -> tuple[str, dict[str, Any]]:
        """Return the prompt of a role's next message, and its inputs."""
        messages = state["messages"]
        prompt = self.prompt_of(scene.scenario, role)
        inputs = {
            "opening": is_empty_dialogue(messages),
            **self.inputs(scene.scenario, role),
            "history": self.build_history(role, messages),
        }
        return prompt, {name: inputs[name] for name in scene.inputs_of(prompt)}

    def reply_update(self, state: DialogueState, scene: Scene, role: str, reply: str) -> Update:
        """Return the state update that adds a role's reply.

        Raises:
            UnparsedReplyError: If the reply is empty after its end marker is removed.
        """
        messages = state["messages"]
        marker = self.turns.split(reply)[1] if role == self.turns.ender else ""
        is_opening = is_empty_dialogue(messages)
        ending = "" if is_opening else marker
        text = self.spoken(reply) if role in (USER, self.turns.ender) else reply
        if not text and not ending:
            prompt = self.prompt_of(scene.scenario, role)
            raise UnparsedReplyError(prompt, reply, "the reply is empty after its end marker is removed")
        new = [said(role, text, len(messages), scene.finish_reason)] if text else []
        reason = self.turns.reason(scene.scenario, role, [*messages, *new], ending)
        opening = {"marked_opening": True} if marker and is_opening else {}
        return {"messages": new, "ended_by": state["ended_by"] or reason, **opening}


def is_empty_dialogue(messages: Sequence[BaseMessage]) -> bool:
    """Return whether nobody has spoken yet: there are no messages except instructions to the assistant."""
    return all(speaker_of(message) == SYSTEM for message in messages)


def _describe_unknown_field(name: str, kind: type[Scenario]) -> str:
    return f"{name!r}, which {kind.__name__} does not have; it has {', '.join(kind.model_fields) or 'no fields'}"


def has_word(text: str, word: str) -> bool:
    """Return whether a text contains a word as a whole word and in the same case."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def remove_marker(text: str, marker: str) -> tuple[str, bool]:
    """Return a text without an end marker, and whether the marker was there.

    Spaces, emphasis, quotes and brackets around the marker are removed with it.

    Args:
        text: The message.
        marker: A word; empty for none.
    """
    if not marker:
        return text.strip(), False
    *parts, rest = _compile_marker(marker).split(text)
    # The parts are trimmed one by one, because a regular expression would take quadratic time in the number of spaces.
    kept = [part[: len(part) - len(_find_trailing_markup(part))] for part in parts]
    return " ".join([*kept, rest]).strip(), bool(parts)


_KEPT_BEFORE_MARKER = re.compile(r"[^\s*_\"'(\[]")
"""A pattern for a character that is not removed before a marker: any except spaces, `*`, `_`, quotes and opening
brackets.
"""


@cache
def _compile_marker(marker: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(marker)}\b[\s*_\"')\].!]*")


def _find_trailing_markup(part: str) -> str:
    """Return the trailing spaces, emphasis, quotes or brackets of a text that precedes a marker."""
    end = next((position for position in range(len(part), 0, -1) if _KEPT_BEFORE_MARKER.match(part[position - 1])), 0)
    return part[end:]


def _make_router(
    role: str, turns: Turns, after: list[str], last_word: str
) -> Callable[[DialogueState], Awaitable[list[str]]]:
    async def route(state: DialogueState) -> list[str]:
        if last_word and state["ended_by"] in turns.markers.values() and state["messages"][-1].name != last_word:
            return [last_word]
        if tool_use.has_pending_calls(state["messages"]):
            return [tool_use.TOOLS_NODE]
        return after if state["ended_by"] else [turns.following(state["messages"])]

    route.__name__ = f"after_{role}"  # the step debugger shows this name
    return route


def _make_tools_router(actor: str, after: list[str]) -> Callable[[DialogueState], Awaitable[list[str]]]:
    async def after_tools(state: DialogueState) -> list[str]:
        return after if state["ended_by"] else [actor]

    return after_tools

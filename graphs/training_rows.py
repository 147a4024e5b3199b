"""Export formats for trainers: `sharegpt` for every recipe, and `sft` for every recipe of dialogues."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import groupby
from typing import Any

from pydantic import Field

from dialoom.prompts import ChatMessage, FunctionCall, PromptLibrary, ToolDefinition

from . import DialogueRecipe, Episode, Exporter, ExportOptions, Line, Recipe, RecipeError, WithExports, WithRoles
from .conversation import TOOL, to_messages
from .dialogue import ASSISTANT
from .environment import Workbench, parse_arguments
from .outcome import SYSTEM
from .simulation import Simulation
from .tool_use import find_environment_factory
from .transcript import Transcript

NO_SYSTEM = "none"
SFT, SHAREGPT = "sft", "sharegpt"
_SHAREGPT_SPEAKERS = {SYSTEM: SYSTEM, "assistant": "gpt", TOOL: "observation"}
"""ShareGPT's names of roles. All other roles are `human`."""


class SystemOptions(ExportOptions):
    """The options of formats for trainers: the system message of each row."""

    system: str | None = Field(
        None,
        min_length=1,
        description="System message of each row: a text, or 'none' to omit it; by default the assistant's own, if any.",
    )

    def apply(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        """Return messages with the system message that the options state."""
        if self.system is None:
            return [*messages]
        rest = [message for message in messages if message["role"] != SYSTEM]
        return rest if self.system == NO_SYSTEM else [{"role": SYSTEM, "content": self.system}, *rest]


def build_exporters(recipe: Recipe) -> dict[str, Exporter]:
    """Return all formats of a recipe except `dialogues`, by name.

    The recipe's own formats replace general formats with the same name.
    """
    rows, recipe_formats = _RowConverter(recipe), WithExports.of(recipe).formats
    lacks = f"no message of the role {rows.role!r}"
    general_formats = {
        SHAREGPT: Exporter(
            "ShareGPT conversations, with tool calls as function_call and observation",
            "lines",
            rows.sharegpt,
            SystemOptions,
            lacks=lacks,
        )
    }
    if SFT in recipe_formats and not isinstance(
        recipe, DialogueRecipe
    ):  # the messages of other recipes may be abridged for readers
        general_formats[SHAREGPT] = replace(
            recipe_formats[SFT],
            description=f"the rows of {SFT} as ShareGPT conversations",
            items=partial(_convert_rows, recipe_formats[SFT]),
        )
    if isinstance(recipe, DialogueRecipe):
        general_formats[SFT] = Exporter(
            "TRL conversations (messages) as the assistant saw them, with its tools and their calls",
            "lines",
            rows.sft,
            SystemOptions,
            lacks=lacks,
        )
    return {
        **recipe_formats,
        **{name: exporter for name, exporter in general_formats.items() if name not in recipe_formats},
    }


class _RowConverter:
    """A converter of a recipe's conversations into rows."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe

    def sft(
        self, episode: Episode, scenario: Any, prompts: PromptLibrary, _: Any, *, options: SystemOptions
    ) -> Iterator[dict[str, Any]]:
        """Yield `{"messages": [...]}` in TRL's form. If the assistant has tools, they are added as JSON."""
        if messages := self._messages(episode, scenario, prompts):
            yield {"messages": _to_trl(options.apply(messages)), **self._tools(episode, scenario)}

    def sharegpt(
        self, episode: Episode, scenario: Any, prompts: PromptLibrary, _: Any, *, options: SystemOptions
    ) -> Iterator[dict[str, Any]]:
        """Yield `{"conversations": [...]}`. If the assistant has tools, they are added as JSON."""
        if messages := self._messages(episode, scenario, prompts):
            yield {"conversations": [*_to_sharegpt(options.apply(messages))], **self._tools(episode, scenario)}

    def _messages(self, episode: Episode, scenario: Any, prompts: PromptLibrary) -> list[ChatMessage]:
        """Return a finished conversation from the assistant's side, up to its last message.

        The result is empty if the assistant wrote no message.
        """
        lines = list(episode.outcome.messages) if episode.state == "done" else []
        while lines and lines[-1].role not in (self.role, TOOL):
            lines.pop()
        if not any(line.role == self.role for line in lines):
            return []
        recipe = self._recipe
        if not isinstance(recipe, DialogueRecipe):
            return [_to_chat_message(line, self.role) for line in lines]
        prompt = prompts[recipe.prompt_of(scenario, self.role)]
        if prompt.front.history == "text":
            return [_to_chat_message(line, self.role) for line in lines]
        history = recipe.build_history(self.role, to_messages(lines))
        inputs = {"opening": False, **recipe.inputs(scenario, self.role), "history": history}
        rendered = prompt.render({name: inputs[name] for name in prompt.front.inputs})
        return rendered[-len(history) :] if _is_recorded(episode, scenario) else rendered

    @cached_property
    def role(self) -> str:
        """The role to train: the role under evaluation, or else the assistant, or else the last speaker of a turn."""
        recipe = self._recipe
        if evaluated := WithRoles.of(recipe).evaluated:
            return evaluated
        if not isinstance(recipe, DialogueRecipe) or ASSISTANT in recipe.turns.roles:
            return ASSISTANT
        return recipe.turns.order[-1]

    def _tools(self, episode: Episode, scenario: Any) -> dict[str, str]:
        """Return the column of tools: those that an imported conversation states, or else the recipe's own."""
        stated = scenario.tools if isinstance(scenario, Transcript) else ()
        definitions = stated or (() if _is_recorded(episode, scenario) else self._recipe_tools)
        return {"tools": json.dumps(definitions, ensure_ascii=False)} if definitions else {}

    @cached_property
    def _recipe_tools(self) -> Sequence[ToolDefinition]:
        """The definitions of the recipe's own tools.

        Tools of MCP servers, and tools given as Python objects that are now missing, are unknown and left out.
        """
        recipe = self._recipe
        if not isinstance(recipe, DialogueRecipe) or (isinstance(recipe, Simulation) and recipe.lacks_tools):
            return ()
        return Workbench(recipe.tools, find_environment_factory(recipe)).tools.definitions


def _is_recorded(episode: Episode, scenario: Any) -> bool:
    """Return whether a conversation was recorded elsewhere, so that its assistant is not that of a study."""
    return isinstance(scenario, Transcript) and episode.outcome.messages == scenario.lines


def _convert_rows(sft: Exporter, *about: Any, **how: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a recipe's own format `sft`, with `conversations` instead of messages.

    Raises:
        RecipeError: If the rows are not in TRL's conversational form.
    """
    for exported in sft.items(*about, **how):
        row = dict(exported)
        messages = row.pop("messages", None) or [*row.pop("prompt", ()), *row.pop("completion", ())]
        if not messages or not all(isinstance(message, Mapping) for message in messages):
            raise RecipeError(
                f"{SHAREGPT} is made from {SFT}, whose rows have neither messages nor a prompt of messages"
            )
        yield {"conversations": [*_to_sharegpt(messages)], **row}


def _to_chat_message(line: Line, role: str) -> ChatMessage:
    """Return a line as a chat message.

    The trained role becomes the assistant; all other roles except tools become the user.
    """
    speaker = ASSISTANT if line.role == role else line.role if line.role in (SYSTEM, TOOL) else "user"
    message: ChatMessage = {"role": speaker, "content": line.content}
    if line.tool_calls:
        message["tool_calls"] = line.tool_calls
    if line.tool_call_id is not None:
        message["tool_call_id"] = line.tool_call_id
    return message


def _to_trl(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Return messages in TRL's form: arguments of calls are objects, and results include the tool's name."""
    names: dict[str, str] = {}  # by id; a later call may have the id of an earlier one
    converted: list[dict[str, Any]] = []
    for message in messages:
        new: dict[str, Any] = {"role": message["role"], "content": message["content"]}
        if calls := message.get("tool_calls"):
            names |= {call["id"]: call["name"] for call in calls}
            new["tool_calls"] = [{"type": "function", "function": _to_function(call)} for call in calls]
        if (name := names.get(message.get("tool_call_id", ""))) is not None:
            new["name"] = name
        converted.append(new)
    return converted


def _to_sharegpt(messages: Sequence[ChatMessage]) -> Iterator[dict[str, str]]:
    """Yield messages in ShareGPT's form. All calls of a message form one item, and all their results form another."""
    for role, group in groupby(messages, key=lambda message: message["role"]):
        speaker = _SHAREGPT_SPEAKERS.get(role, "human")
        if role == TOOL:
            yield {"from": speaker, "value": _dump_values([message["content"] for message in group])}
            continue
        for message in group:
            calls = message.get("tool_calls", ())
            if message["content"] or not calls:
                yield {"from": speaker, "value": message["content"]}
            if calls:
                yield {"from": "function_call", "value": _dump_values([_to_sharegpt_call(call) for call in calls])}


def _to_function(call: FunctionCall) -> dict[str, Any]:
    """Return a call's name and arguments. Arguments that are not a JSON object stay text."""
    arguments = parse_arguments(call)
    return {"name": call["name"], "arguments": arguments if isinstance(arguments, Mapping) else call["arguments"]}


def _to_sharegpt_call(call: Mapping[str, Any]) -> Any:
    """Return a call in ShareGPT's form: its name and arguments, as in TRL's form."""
    return call["function"] if "function" in call else _to_function({**call})  # type: ignore[typeddict-item]


def _dump_values(values: Sequence[Any]) -> str:
    """Return a single text unchanged, a single value of another type as JSON, and several values as a JSON list."""
    value = values[0] if len(values) == 1 else values
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

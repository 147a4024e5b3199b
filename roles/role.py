"""Roles, each of which renders a prompt, calls its model and parses the reply; and the cast (all roles of a run)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic import BaseModel

from dialoom.prompts import ChatMessage, FunctionCall, Prompt, PromptLibrary, ToolDefinition
from dialoom.roles.gateway.model_facts import supports_tools

from . import offline
from .binding import ATTENTIVE, OBJECT_PREFIX, OFFLINE_PREFIX, PLACEHOLDER, ModelBinding
from .errors import BindingError, UnparsedReplyError
from .gateway import Caller, CallPlace, Completion, Request
from .gateway.calls import TOOL_MODEL_PREFIX, TOOL_ROLE, RunTool, ToolExecution
from .replies import parse_reply, reply_type


class CallSite(Protocol):
    """The source of call places: each call gets its own place, in the order of the calls."""

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:
        """Return the place of the next call, which will send these messages."""

    def on_completion(self, completion: Completion) -> None:
        """Record the completion that the role has accepted."""


@dataclass(frozen=True, slots=True)
class AgentReply:
    """A model's reply to a request that offered tools: text, tool calls, both, or neither.

    Attributes:
        content: The text, stripped.
        tool_calls: The tool calls as the model made them: the tool may not exist, and the arguments may not be JSON.
        outputs: The tools' outputs, one per call, if the player has run them in a loop of its own.
        carried: Provider data that must be sent back with the tool calls; pass it to `said` together with them.
        finish_reason: Why the reply is incomplete (`length`, `refusal`, `content_filter`); `None` if it is complete.
    """

    content: str
    tool_calls: tuple[FunctionCall, ...] = ()
    outputs: tuple[str, ...] = ()
    carried: Mapping[str, Any] | None = None
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """A prompt played by a model.

    Attributes:
        prompt: The prompt.
        binding: The model and its sampling settings.
        reply_type: The type that a reply is parsed into; `None` for plain text.
        gateway: The gateway that calls are made through.
        name: The role's name; by default the role in the prompt.
    """

    prompt: Prompt
    binding: ModelBinding
    reply_type: type[BaseModel] | None
    gateway: Caller
    name: str = ""

    async def __call__(self, inputs: Mapping[str, Any], at: CallSite) -> Any:
        """Render the prompt, call the model and parse the reply; if it does not parse, ask again with the error shown.

        Args:
            inputs: The prompt's inputs.
            at: The call site.

        Returns:
            The reply's text, stripped, or an instance of `reply_type`.

        Raises:
            PromptError: If the prompt cannot be rendered.
            ProviderError: If the model cannot be reached or refuses the request.
            UnparsedReplyError: If neither reply parses as the type.
        """
        messages, conversation = self.prompt.render_with_history(inputs)
        place = at.place(messages)
        reply = await self._call(messages, conversation, place, inputs)
        try:
            return self._parse(reply, at)
        except ValueError as error:
            text, problem = reply.text.strip(), _error_text(error, reply)
            answer_messages: list[ChatMessage] = [{"role": "assistant", "content": text}] if text else []
            retry_messages: list[ChatMessage] = [
                *messages,
                *answer_messages,
                {"role": "user", "content": _RETRY_MESSAGE.format(problem=problem)},
            ]
        retry_conversation = [*conversation, *range(len(messages), len(retry_messages))]
        rendered = tuple(messages[index] for index in conversation)
        retry = await self._call(retry_messages, retry_conversation, place.next_ask(), inputs, rendered=rendered)
        try:
            return self._parse(retry, at)
        except ValueError as error:
            player, reason = self.binding.model.removeprefix(OBJECT_PREFIX), _error_text(error, retry)
            raise UnparsedReplyError(self.prompt.id, retry.text.strip(), reason, player) from error

    async def act(
        self, inputs: Mapping[str, Any], tools: Sequence[ToolDefinition], at: CallSite, run_tool: RunTool | None = None
    ) -> AgentReply:
        """Render the prompt and call the model with tools; any reply is accepted, so the model is called once.

        Args:
            inputs: The prompt's inputs.
            tools: The tools offered.
            at: The call site.
            run_tool: Runs a tool call, for players that have a loop of their own.

        Raises:
            PromptError: If the prompt cannot be rendered.
            ProviderError: If the model cannot be reached or refuses the request.
        """
        messages, conversation = self.prompt.render_with_history(inputs)
        completion = await self._call(messages, conversation, at.place(messages), inputs, tuple(tools), run_tool)
        at.on_completion(completion)
        return AgentReply(
            completion.text.strip(),
            completion.tool_calls,
            completion.outputs,
            completion.carried,
            completion.incomplete_reason,
        )

    async def run_tool(self, run: ToolExecution, place: CallPlace) -> str:
        """Return the result of calling a tool that acts outside the run. The call is recorded, and executed only once.

        Raises:
            ProviderError: If the result is unknown.
        """
        request = Request(
            role=TOOL_ROLE,
            prompt_id=self.prompt.id,
            model=f"{TOOL_MODEL_PREFIX}{run.name}",
            temperature=None,
            seed=place.seed,
            messages=({"role": "user", "content": run.text},),
            tool_execution=run,
        )
        return (await self.gateway.complete(request, place)).text

    async def takes_tools(self) -> bool:
        """Return whether the player is known to accept tools; understudies get tools as text."""
        binding = self.binding
        return binding.takes_tools or await asyncio.to_thread(supports_tools, binding.model)

    def _parse(self, completion: Completion, at: CallSite) -> Any:
        text = completion.text.strip()
        if not text:
            raise ValueError("the answer is empty" if completion.reasoning is None else "only thoughts, and no answer")
        parsed = text if self.reply_type is None else parse_reply(text, self.reply_type)
        at.on_completion(completion)
        return parsed

    async def _call(
        self,
        messages: list[ChatMessage],
        conversation: Sequence[int],
        place: CallPlace,
        inputs: Mapping[str, Any],
        tools: tuple[ToolDefinition, ...] = (),
        run_tool: RunTool | None = None,
        rendered: tuple[ChatMessage, ...] | None = None,
    ) -> Completion:
        reply_count = sum(messages[index]["role"] == "assistant" for index in conversation)
        request = Request(
            role=self.name or self.prompt.front.role,
            prompt_id=self.prompt.id,
            model=self.binding.model,
            temperature=self.binding.temperature,
            seed=place.seed,
            messages=tuple(messages),
            reply_type=self.reply_type,
            api_base=self.binding.api_base,
            structured=self.binding.structured,
            max_reply=limit + self.prompt.front.more if (limit := self.binding.max_reply) else None,
            params=self.binding.params,
            tools=tools,
            run_tool=run_tool,
            inputs=inputs,
            is_stateful=self.binding.stateful,
            session_form=self.binding.session,
            conversation=tuple(conversation),
            rendered=rendered,
            session=place.session and replace(place.session, turn=reply_count + 1),
        )
        return await self.gateway.complete(request, place)


def _error_text(error: ValueError, completion: Completion) -> str:
    """Return the error of an unparsable reply, as shown to the model and in the final error."""
    if completion.finish_reason == "length":
        return f"{error}, and it was cut off because it was too long"
    return str(error)


_RETRY_MESSAGE = (
    "That answer could not be used: {problem}. Give the answer again, in exactly the form that was asked for."
)


class NoUnderstudiesError(BindingError):
    """No understudy is registered for a role that is assigned to an offline model.

    Args:
        role: The role.
        model: The offline model.
    """

    def __init__(self, role: str, model: str) -> None:
        self.reason = f"no understudy plays the role {role!r}"
        super().__init__(
            f"models: role {role!r} is played by {model}, but {self.reason}: give it a model, or register an "
            "understudy; "
            f"{PLACEHOLDER} plays any role",
            setting="models",
        )


class Cast:
    """The roles of a run: a `Role` for each prompt, played by the model of the prompt's role.

    Args:
        library: The run's prompts.
        models: The model of each role.
        gateway: The gateway that calls are made through.
        reply_types: A recipe's own reply types, besides the general ones (see `reply_type`).

    Raises:
        BindingError: If a prompt's role has no model or its reply type is unknown.
    """

    def __init__(
        self,
        library: PromptLibrary,
        models: Mapping[str, ModelBinding],
        gateway: Caller,
        reply_types: Mapping[str, type[BaseModel]] | None = None,
    ) -> None:
        check_cast(library, models, reply_types)
        self._models = models
        self._roles = {
            prompt.id: Role(prompt, models[prompt.front.role], reply_type(prompt.front.reply, reply_types), gateway)
            for prompt in library.values()
        }

    def __getitem__(self, prompt_id: str) -> Role:
        """Return the role that plays a prompt.

        Raises:
            BindingError: If the run was created without such a prompt, or its role is not used with its options.
        """
        try:
            return self._roles[prompt_id]
        except KeyError:
            prompt_ids = _join_names(self._roles)
            raise BindingError(
                f"prompt {prompt_id!r} cannot be played: it is not one of the prompts with which the run was created, "
                f"or its role is not used with these options; the prompts are {prompt_ids}. If the recipe has gained "
                "the prompt since, create a new run"
            ) from None

    def with_model(self, role: str, binding: ModelBinding) -> Cast:
        """Return the same cast with another model for a role."""
        cast = copy(self)
        cast._models = {**self._models, role: binding}
        cast._roles = {
            id_: replace(each, binding=binding) if each.prompt.front.role == role else each
            for id_, each in self._roles.items()
        }
        return cast

    def recast(self, role: str, prompt_id: str) -> Role:
        """Return another role that plays a prompt in place of the prompt's own role.

        Raises:
            BindingError: If the role has no model, or the prompt cannot be played.
        """
        if role not in self._models:
            raise BindingError(
                f"role {role!r} should play {prompt_id!r} but has no model; the roles with models are "
                f"{_join_names(self._models)}"
            )
        return replace(self[prompt_id], binding=self._models[role], name=role)


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def select_offline_models(library: Mapping[str, Prompt]) -> dict[str, str]:
    """Return the offline model that plays each role of a run's prompts.

    Args:
        library: The prompts by id.

    Returns:
        `offline/attentive` for roles with an understudy of their own, `offline/placeholder` for all others.
    """
    models: dict[str, str] = {}
    for prompt in library.values():
        role = prompt.front.role
        is_played = offline.plays(prompt.id.partition("/")[0], role) and models.get(role) != PLACEHOLDER
        models[role] = ATTENTIVE if is_played else PLACEHOLDER
    return models


def check_understudies(library: PromptLibrary, models: Mapping[str, ModelBinding]) -> None:
    """Check that every role assigned to an offline model has an understudy.

    Raises:
        NoUnderstudiesError: If a role has no understudy; the message states the role and the valid choices.
    """
    for prompt in library.values():
        role = prompt.front.role
        model = models[role].model
        if (
            model.startswith(OFFLINE_PREFIX)
            and model != PLACEHOLDER
            and not offline.plays(prompt.id.partition("/")[0], role)
        ):
            raise NoUnderstudiesError(role, model)


def check_cast(
    library: PromptLibrary,
    models: Mapping[str, ModelBinding],
    reply_types: Mapping[str, type[BaseModel]] | None = None,
) -> None:
    """Check that every prompt's role has a model and that its reply type is known.

    Raises:
        BindingError: If a prompt's role has no model or its reply type is unknown.
    """
    for prompt in library.values():
        if prompt.front.role not in models:
            raise BindingError(f"prompt {prompt.id!r} belongs to the role {prompt.front.role!r}, which has no model")
        try:
            reply_type(prompt.front.reply, reply_types)
        except KeyError:
            names = ", ".join(["text", "verdict", "score-LOW-HIGH", *sorted(reply_types or {})])
            raise BindingError(
                f"prompt {prompt.id!r} has the reply type {prompt.front.reply!r}; there are {names}"
            ) from None

"""A role: a prompt played by a model. Renders, calls and parses; does not order events or store anything."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic import BaseModel

from dialoom.prompts import ChatMessage, FunctionCall, Prompt, ToolDefinition

from .binding import OBJECT, ModelBinding
from .errors import UnparsedReplyError
from .gateway import Caller, CallPlace, Completion, Request
from .gateway.calls import TOOL_CALL, RunTool, ToolRun
from .gateway.tool_support import knows_tools
from .replies import parse_reply
from .session import Session


class CallSite(Protocol):
    """The source of call places: each call gets a place of its own, in the order of the calls."""

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:
        """Return the place of the next call, which sends these messages."""
        ...

    def heard(self, completion: Completion) -> None:
        """Record the completion that the role has accepted."""
        ...


@dataclass(frozen=True, slots=True)
class AgentReply:
    """A model's reply to a request that offered tools: text, tool calls, both, or neither.

    Attributes:
        content: The text, stripped.
        tool_calls: The tool calls as the model made them: the tool may not exist, and the arguments may not be JSON.
        outputs: The tools' outputs, one per call, if the player has run them in a loop of its own.
        carried: Provider data that must be sent back with the calls: pass it to `said` together with them.
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
        name: The role's name; by default the one in the prompt.
    """

    prompt: Prompt
    binding: ModelBinding
    reply_type: type[BaseModel] | None
    gateway: Caller
    name: str = ""

    async def __call__(self, inputs: Mapping[str, Any], at: CallSite) -> Any:
        """Render, call and parse; request an unparsable reply once more with the error shown.

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
        messages, conversation = self.prompt.rendered(inputs)
        place = at.place(messages)
        first = await self._call(messages, conversation, place, inputs)
        try:
            return self._read(first, at)
        except ValueError as error:
            again = [*messages, *_asking_again(first.text.strip(), _error_text(error, first))]
        whole = [*conversation, *range(len(messages), len(again))]
        second = await self._call(again, whole, place.again(), inputs)
        try:
            return self._read(second, at)
        except ValueError as error:
            player, reason = self.binding.model.removeprefix(OBJECT), _error_text(error, second)
            raise UnparsedReplyError(self.prompt.id, second.text.strip(), reason, player) from error

    async def act(
        self, inputs: Mapping[str, Any], tools: Sequence[ToolDefinition], at: CallSite, run_tool: RunTool | None = None
    ) -> AgentReply:
        """Render and call with tools; any reply is accepted, so the model is called once.

        Args:
            inputs: The prompt's inputs.
            tools: The tools offered.
            at: The call site.
            run_tool: Runs a tool call, for players that have a loop of their own.

        Raises:
            PromptError: If the prompt cannot be rendered.
            ProviderError: If the model cannot be reached or refuses the request.
        """
        messages, conversation = self.prompt.rendered(inputs)
        completion = await self._call(messages, conversation, at.place(messages), inputs, tuple(tools), run_tool)
        at.heard(completion)
        return AgentReply(
            completion.text.strip(),
            completion.tool_calls,
            completion.outputs,
            completion.carried,
            completion.broken_off,
        )

    def _session(
        self, messages: Sequence[ChatMessage], conversation: Sequence[int], place: CallPlace
    ) -> Session | None:
        if place.session is None:
            return None
        earlier = sum(messages[index]["role"] == "assistant" for index in conversation)
        return replace(place.session, turn=earlier + 1)

    async def run_tool(self, run: ToolRun, place: CallPlace) -> str:
        """Return the result of a call of a tool that acts outside; it is recorded, and executed once.

        Raises:
            ProviderError: If the result is unknown.
        """
        request = Request(
            role=TOOL_CALL.rstrip(":"),
            prompt_id=self.prompt.id,
            prompt_hash=self.prompt.hash,
            model=f"{TOOL_CALL}{run.name}",
            temperature=None,
            seed=place.seed,
            messages=({"role": "user", "content": run.text},),
            tool_run=run,
        )
        return (await self.gateway.complete(request, place)).text

    async def takes_tools(self) -> bool:
        """Return whether the player is known to accept tools; understudies read them as text."""
        binding = self.binding
        return binding.takes_tools or await asyncio.to_thread(knows_tools, binding.model)

    def _read(self, completion: Completion, at: CallSite) -> Any:
        text = completion.text.strip()
        if not text:
            raise ValueError("the answer is empty" if completion.reasoning is None else "only thoughts, and no answer")
        read = text if self.reply_type is None else parse_reply(text, self.reply_type)
        at.heard(completion)
        return read

    async def _call(
        self,
        messages: list[ChatMessage],
        conversation: Sequence[int],
        place: CallPlace,
        inputs: Mapping[str, Any],
        tools: tuple[ToolDefinition, ...] = (),
        run_tool: RunTool | None = None,
    ) -> Completion:
        request = Request(
            role=self.name or self.prompt.front.role,
            prompt_id=self.prompt.id,
            prompt_hash=self.prompt.hash,
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
            session=self._session(messages, conversation, place),
        )
        return await self.gateway.complete(request, place)


def _error_text(error: ValueError, completion: Completion) -> str:
    """Return the error of an unparsable reply, as shown to the model and in the final error."""
    if completion.finish_reason == "length":
        return f"{error}, and it was cut off because it was too long"
    return str(error)


def _asking_again(text: str, problem: str) -> list[ChatMessage]:
    messages: list[ChatMessage] = [{"role": "assistant", "content": text}] if text else []
    again = f"That answer could not be used: {problem}. Give the answer again, in exactly the form that was asked for."
    return [*messages, {"role": "user", "content": again}]

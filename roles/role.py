"""A role: one part in a conversation. Rendering, calling and parsing; no order of events, no store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel

from dialoom.prompts import ChatMessage, FunctionCall, Prompt, ToolDefinition

from .binding import OBJECT, ModelBinding
from .errors import UnparsedReplyError
from .gateway import Caller, CallPlace, Completion, Request
from .gateway.calls import RunTool
from .gateway.tool_support import knows_tools
from .replies import parse_reply


class CallSite(Protocol):
    """Where calls are made from: each gets a place of its own, in the order in which they are made."""

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:
        """The place of the next call, which asks this."""
        ...

    def heard(self, completion: Completion) -> None:
        """Is told of the reply that the role made something of."""
        ...


@dataclass(frozen=True, slots=True)
class AgentReply:
    """What a model says that was offered tools: words, calls, both, or neither.

    Attributes:
        content: Its words, stripped.
        tool_calls: Its calls, as it made them: the tool may not exist, and the arguments be no JSON.
        outputs: What the tools said, call by call, if the player has a loop of its own and has run them already.
        carried: What the provider wants back with the calls: give it to `said` together with them.
        finish_reason: Why it broke off (`length`, `refusal`, `content_filter`); `None` if it did not.
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
        prompt: What is said to the model.
        binding: The model and its sampling.
        reply_type: What its text must become; `None` for plain text.
        gateway: The way to the model.
        name: What it is called; by default as the prompt says.
    """

    prompt: Prompt
    binding: ModelBinding
    reply_type: type[BaseModel] | None
    gateway: Caller
    name: str = ""

    async def __call__(self, inputs: Mapping[str, Any], at: CallSite) -> Any:
        """Render, call, parse; on an unparsable reply ask once again with the error shown.

        Args:
            inputs: The prompt's inputs.
            at: Where the call is made from.

        Returns:
            The reply's text, stripped, or an instance of `reply_type`.

        Raises:
            PromptError: If the prompt cannot be rendered.
            ProviderError: If the model cannot be had.
            UnparsedReplyError: If neither reply is of the type.
        """
        messages = self.prompt.render(inputs)
        place = at.place(messages)
        first = await self._call(messages, place, inputs)
        try:
            return self._read(first, at)
        except ValueError as error:
            again = [*messages, *_asking_again(first.text.strip(), _told(error, first))]
        second = await self._call(again, place.again(), inputs)
        try:
            return self._read(second, at)
        except ValueError as error:
            player, told = self.binding.model.removeprefix(OBJECT), _told(error, second)
            raise UnparsedReplyError(self.prompt.id, second.text.strip(), told, player) from error

    async def act(
        self, inputs: Mapping[str, Any], tools: Sequence[ToolDefinition], at: CallSite, run_tool: RunTool | None = None
    ) -> AgentReply:
        """Render and call with tools; whatever comes back is what the model does, and it is asked once.

        Args:
            inputs: The prompt's inputs.
            tools: What it may call.
            at: Where the call is made from.
            run_tool: Runs a call, for players that have a loop of their own.

        Raises:
            PromptError: If the prompt cannot be rendered.
            ProviderError: If the model cannot be had.
        """
        messages = self.prompt.render(inputs)
        completion = await self._call(messages, at.place(messages), inputs, tuple(tools), run_tool)
        at.heard(completion)
        return AgentReply(
            completion.text.strip(),
            completion.tool_calls,
            completion.outputs,
            completion.carried,
            completion.broken_off,
        )

    async def takes_tools(self) -> bool:
        """Return whether the player is known to take tools; understudies read them as text."""
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
        )
        return await self.gateway.complete(request, place)


def _told(error: ValueError, completion: Completion) -> str:
    """What was wrong with a reply, as its model is told, or whoever reads why there is none."""
    if completion.finish_reason == "length":
        return f"{error}, and it was cut off because it was too long"
    return str(error)


def _asking_again(text: str, problem: str) -> list[ChatMessage]:
    messages: list[ChatMessage] = [{"role": "assistant", "content": text}] if text else []
    again = f"That answer could not be used: {problem}. Give the answer again, in exactly the form that was asked for."
    return [*messages, {"role": "user", "content": again}]

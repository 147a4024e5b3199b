"""Agents of other frameworks as players: for each framework a function that turns an agent into a player."""

from collections.abc import Awaitable, Callable
from typing import Any

Messages = list[dict[str, str]]


def pydantic_ai_player(agent: Any) -> Callable[[Messages], Awaitable[str]]:
    """Return a player from a pydantic-ai `Agent`."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    def convert(message: dict[str, str]) -> Any:
        if message["role"] == "assistant":
            return ModelResponse([TextPart(message["content"])])
        part = SystemPromptPart if message["role"] == "system" else UserPromptPart
        return ModelRequest([part(message["content"])])

    async def reply(messages: Messages) -> str:
        return str((await agent.run(message_history=[convert(message) for message in messages])).output)

    return reply


def openai_agents_player(agent: Any) -> Callable[[Messages], Awaitable[str]]:
    """Return a player from an `Agent` of the OpenAI Agents SDK."""
    from agents.run import Runner

    async def reply(messages: Messages) -> str:
        return str((await Runner.run(agent, [dict(message) for message in messages])).final_output)

    return reply


def smolagents_player(make_agent: Callable[[], Any]) -> Callable[[Messages], str]:
    """Return a player from a function that makes a smolagents agent; each reply is made by a new agent."""

    def reply(messages: Messages) -> str:
        conversation = "\n".join(f"{message['role']}: {message['content']}" for message in messages)
        return str(make_agent().run(f"Reply to the last message of this conversation.\n\n{conversation}"))

    return reply

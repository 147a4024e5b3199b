"""Agents of other frameworks as players, with fake models: `make test-frameworks`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dialoom
from docs.examples.frameworks import openai_agents_player, pydantic_ai_player, smolagents_player
from tests.api.players import run_settings
from tests.invented import write_release


def pydantic_ai_agent() -> Any:
    """Return a player from a pydantic-ai agent whose model is a function of its messages."""
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    def think(messages: list[Any], _: Any) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        kinds = [part.part_kind for part in parts]
        return ModelResponse(
            [TextPart(f"{kinds[0].removesuffix('-prompt')} {kinds.count('user-prompt')}: {parts[-1].content}")]
        )

    return pydantic_ai_player(Agent(FunctionModel(think)))


def openai_agent() -> Any:
    """Return a player from an agent of the OpenAI Agents SDK."""
    pytest.importorskip("agents", reason="openai-agents is not installed")
    from agents import Agent, Model, ModelResponse, Usage, set_tracing_disabled
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Fake(Model):  # type: ignore[misc]
        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
            roles = [each["role"] for each in input]
            reply = f"{roles[0]} {roles.count('user')}: {input[-1]['content']}"
            text = ResponseOutputText(type="output_text", text=reply, annotations=[])
            output = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[text])
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    return openai_agents_player(Agent("shop", model=Fake()))


def smol_agent() -> Any:
    """Return a player from agents of smolagents, which reply through their tool `final_answer`."""
    pytest.importorskip("smolagents", reason="smolagents is not installed")
    from smolagents import ToolCallingAgent
    from smolagents.models import (
        ChatMessage,
        ChatMessageToolCall,
        ChatMessageToolCallFunction,
        MessageRole,
        Model,
    )

    class Fake(Model):  # type: ignore[misc]
        def generate(self, messages: Any, **_: Any) -> ChatMessage:
            asked = messages[-1].content[0]["text"]
            lines = [line for line in asked.splitlines() if line.startswith(("system: ", "user: "))]
            users = [line for line in lines if line.startswith("user: ")]
            reply = f"{lines[0].partition(':')[0]} {len(users)}: {users[-1].removeprefix('user: ')}"
            call = ChatMessageToolCallFunction(name="final_answer", arguments={"answer": reply})
            calls = [ChatMessageToolCall(function=call, id="1", type="function")]
            return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)

    return smolagents_player(lambda: ToolCallingAgent(tools=[], model=Fake(), verbosity_level=0))


@pytest.mark.parametrize("make", [pydantic_ai_agent, openai_agent, smol_agent])
def test_agents_of_other_frameworks_play(make: Any, tmp_path: Path) -> None:
    """The agent gets the system message and the whole conversation at each turn."""
    given = run_settings(
        write_release(tmp_path / "release", users=1), models={"assistant": make()}, options={"limit": 1}
    )
    (episode,) = dialoom.play("personalens", path=tmp_path / "run.db", **given).episodes()
    assert episode.error is None
    replies = [message.content for message in episode.outcome.messages[1::2]]
    assert replies[:2] == ["system 1: Line 0 of mine.", "system 2: Line 1 of mine."]

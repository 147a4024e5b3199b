"""Two custom assistants, as `--model assistant=...` accepts them.

dialoom run personalens --model offline/attentive --model assistant=python:docs.examples.assistants:echo ...
dialoom run personalens --model offline/attentive --model assistant=graph:docs/examples/assistants.py:clerk ...
"""

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


async def echo(messages: list[dict[str, str]]) -> str:
    """Reply from an async function; it gets the chat messages, with the setting's system message first."""
    request = messages[-1]["content"]
    return f'Noted: "{request}" I have taken care of that.'


def think(state: MessagesState) -> dict[str, Any]:
    """Add a first step, such as retrieval; anything that LangGraph can do is possible here."""
    user_messages = [message for message in state["messages"] if message.type == "human"]
    return {"messages": [AIMessage(f"(the user has spoken {len(user_messages)} times)")]}


def answer(state: MessagesState) -> dict[str, Any]:
    """Add the reply: the last message of the final state."""
    return {"messages": [AIMessage(f"Done. {state['messages'][-1].content}")]}


builder = StateGraph(MessagesState)
builder.add_node("think", think)
builder.add_node("answer", answer)
builder.add_edge(START, "think")
builder.add_edge("think", "answer")
builder.add_edge("answer", END)
clerk = builder.compile()

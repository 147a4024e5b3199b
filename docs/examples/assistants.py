"""Two assistants of one's own, as `--model assistant=...` takes them.

dialoom run personalens --model offline/attentive --model assistant=python:docs.examples.assistants:echo ...
dialoom run personalens --model offline/attentive --model assistant=graph:docs/examples/assistants.py:clerk ...
"""

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


async def echo(messages: list[dict[str, str]]) -> str:
    """An async callable: the chat messages that a model would get (the setting's system message first) -> its reply."""
    wish = messages[-1]["content"]
    return f'Noted: "{wish}" I have taken care of that.'


def think(state: MessagesState) -> dict[str, Any]:
    """A first step of a graph, such as retrieval: anything that LangGraph can do may stand here."""
    said = [message for message in state["messages"] if message.type == "human"]
    return {"messages": [AIMessage(f"(the user has spoken {len(said)} times)")]}


def answer(state: MessagesState) -> dict[str, Any]:
    """The last message of the final state is the reply."""
    return {"messages": [AIMessage(f"Done. {state['messages'][-1].content}")]}


builder = StateGraph(MessagesState)
builder.add_node("think", think)
builder.add_node("answer", answer)
builder.add_edge(START, "think")
builder.add_edge("think", "answer")
builder.add_edge("answer", END)
clerk = builder.compile()

"""Recipes as compiled graphs for LangGraph's own server, which checkpoints them and gives them their context as JSON.

`runs/served.py` has one of every installed recipe. With options or models of your own, or a recipe in a file of yours,
call `serve` in a module of your own and name what it returns in your `langgraph.json`.
"""

from .context import ServedContext
from .graph import serve
from .programme import Programme
from .request import RequestError

__all__ = ["Programme", "RequestError", "ServedContext", "serve"]

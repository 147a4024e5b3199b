"""Every installed recipe as a compiled graph, for `langgraph dev`; `langgraph.json` names them.

A graph bears its recipe's name, with `_` where a Python name takes no `-`.
"""

from __future__ import annotations

from .langgraph_server import serve
from .recipes import recipe_names

# By name and not one by one: 'runs' knows no recipe, and the server looks into the module's dictionary.
globals().update({name.replace("-", "_"): serve(name) for name in recipe_names()})

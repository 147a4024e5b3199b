"""Every installed recipe as a compiled graph, for `langgraph dev`; `langgraph.json` names them.

A graph has its recipe's name, with `_` for each `-`, which Python names cannot contain.
"""

from __future__ import annotations

from .langgraph_server import serve
from .recipes import recipe_names

# Via `globals`, because 'runs' knows no recipe by name, and the server reads the module's dictionary.
globals().update({name.replace("-", "_"): serve(name) for name in recipe_names()})

"""Every installed recipe as a compiled graph, for `langgraph dev`; `langgraph.json` names them.

A graph has its recipe's name, with `_` for each `-`, which Python names cannot contain.
"""

from __future__ import annotations

from dialoom.runs.configuration.recipes import recipe_names

from .langgraph_server import serve

# Via `globals`, because only 'graphs' knows recipes by name, and the server reads the module's dictionary.
globals().update({name.replace("-", "_"): serve(name) for name in recipe_names()})

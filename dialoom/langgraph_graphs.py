"""Every installed recipe as a compiled graph, for `langgraph dev`; `langgraph.json` lists them.

Each graph has its recipe's name, with `_` in place of `-`, which Python names cannot contain.
"""

from __future__ import annotations

from dialoom.runs.configuration.recipes import recipe_names

from .langgraph_server import serve

# The graphs are set through `globals`, because the server reads the module's dictionary, and the recipes' names are not
# known in advance.
globals().update({name.replace("-", "_"): serve(name) for name in recipe_names()})

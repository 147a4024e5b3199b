"""dialoom: language models talk to each other in named roles, and everything that happens is kept.

The five folders beside this package at the repository's root (`runs`, `graphs`, `roles`, `prompts`, `personas`) are
linked into it, so they are imported, installed and documented under one name: `dialoom.runs`, `dialoom.graphs`, ...
"""

__version__ = "0.1.0"

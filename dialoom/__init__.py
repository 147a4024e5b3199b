"""dialoom: language models talk to each other in named roles, and everything that happens is kept.

The five folders beside this package at the repository's root (`runs`, `graphs`, `roles`, `prompts`, `personas`) are
linked into it, so they are imported, installed and documented under one name: `dialoom.runs`, `dialoom.graphs`, ...
"""

from os.path import isfile

if isfile(f"{__path__[0]}/runs"):  # noqa: PTH113 - pathlib would take longer than the rest of this module
    raise ImportError(
        "dialoom/runs is a text file where a symbolic link belongs: this checkout was made without links; "
        "in it, 'git config core.symlinks true' and 'git checkout -- dialoom' make them (Windows: in Developer Mode)"
    )

__version__ = "0.1.0"

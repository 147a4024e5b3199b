"""Trust in what a file names: code that would run and addresses that would be called on this machine."""

from .errors import TrustError
from .trust import (
    Named,
    Trust,
    code_hashes,
    files_named,
    loads_named,
    player_named,
    players_named,
    recipe_named,
    remember,
    remembered,
)

__all__ = [
    "Named",
    "Trust",
    "TrustError",
    "code_hashes",
    "files_named",
    "loads_named",
    "player_named",
    "players_named",
    "recipe_named",
    "remember",
    "remembered",
]

"""What a file names that would run or be called on this machine, and whether it may."""

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

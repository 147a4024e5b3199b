"""What a file names that would run or be called on this machine, and whether it may."""

from .errors import TrustError
from .named import Named, code_hashes, files_named, loads_named, player_named, players_named, recipe_named
from .record import remember, remembered
from .trust import Trust

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

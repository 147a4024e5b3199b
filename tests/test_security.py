"""What SECURITY.md says of a run file from a stranger."""

from __future__ import annotations

import sys
from pathlib import Path

from .conftest import ROOT, Command

EXAMPLE = ROOT / "docs" / "examples" / "twenty_questions"
_GAME = """
async def guesser(messages):
    return "Is it a heron?"

async def keeper(messages):
    return "You have found it."
"""
_TRACE = "\nimport pathlib\npathlib.Path(__file__ + '.ran').touch()\n"


def test_looking_at_a_run_imports_its_recipe_and_going_on_its_players_too(dialoom: Command, tmp_path: Path) -> None:
    """And `status` and the list import neither; who is imported leaves a trace."""
    recipe, game = tmp_path / "recipe.py", tmp_path / "strange_game.py"
    recipe.write_text((EXAMPLE / "recipe.py").read_text())
    (tmp_path / "prompts").symlink_to(EXAMPLE / "prompts")
    game.write_text(_GAME)
    players = [f"--model={role}=python:strange_game:{role}" for role in ("guesser", "keeper")]
    dialoom("run", "recipe.py:RECIPE", *players, "--words", "heron", "-o", "r.db")
    for source in (recipe, game):
        source.write_text(source.read_text() + _TRACE)

    def imported(*arguments: object) -> set[str]:
        sys.modules.pop("strange_game", None)
        dialoom(*arguments)
        found = {path.name.removesuffix(".py.ran") for path in tmp_path.glob("*.ran")}
        for path in tmp_path.glob("*.ran"):
            path.unlink()
        return found

    assert imported("status", "r.db") == set()
    assert imported("show", "r.db") == set()
    assert imported("show", "r.db", 1) == {"recipe"}
    assert imported("retry", "r.db", "--scenario", 1) == {"recipe", "strange_game"}

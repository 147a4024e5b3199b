"""A request that cannot fit into its model's context window: refused before it is sent, with both lengths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Run
from dialoom.roles import ContextError
from dialoom.roles.gateway.gateway import Limits
from tests.conftest import Command
from tests.ledgers import MemoryLedger
from tests.roles.gateway.asking import ask, request
from tests.server import completion, serving

pytestmark = pytest.mark.usefixtures("keyed")

MODEL = "offline/attentive"
TABLE: dict[str, Any] = {"limit": 4, "turns": [0, 8]}
SHORT, LONG = 400, 4000


def played(path: Path, window: int) -> Run:
    """Two items of two lengths, of which a small window takes the shorter ones."""
    return dialoom.play("prefeval", path=path, options=TABLE, context={MODEL: window})


def states(run: Run) -> list[tuple[int, str, str | None]]:
    """How many unrelated turns each item has, what became of it, and by what fault."""
    return [(each.facets["turns"], each.state, each.at_fault) for each in run.episodes()]


async def test_nothing_is_sent_that_cannot_fit() -> None:
    """A window that the user states holds the reply, too; one token more, and the request goes out."""
    ledger = MemoryLedger()
    with serving(lambda _body, _number: completion("heron")) as reached:
        asked = request(reached.url)
        with pytest.raises(ContextError, match=r"not sent, as .* \(16 tokens by cl100k_base; it reads 15\)") as caught:
            await ask(asked, ledger, limits=Limits(context={asked.model: 15}))
        assert asked.role in str(caught.value)
        assert not reached.requests and not ledger.records
        assert (await ask(asked, limits=Limits(context={asked.model: 16}))).text == "heron"


def test_the_items_that_fit_are_played(tmp_path: Path) -> None:
    """The others fail by `context`, with the lengths; the report has a dash for them and says how many they are."""
    run = played(tmp_path / "run.db", SHORT)
    assert states(run) == [(0, "done", None), (8, "failed", "context")] * 2
    failed = [each for each in run.episodes() if each.state == "failed"]
    assert all(f"and 300 for the reply; it reads {SHORT}" in str(each.error) for each in failed)
    tables = {table.name: table for table in run.report().tables}
    (accuracy,) = tables["accuracy"].rows
    assert accuracy[-3] is not None and accuracy[-2] is None
    lengths = tables["dialogues"]
    assert [row[lengths.columns.index("too long")] for row in lengths.rows] == [0, 2]


def test_they_are_tried_again_only_with_another_window(dialoom: Command, tmp_path: Path) -> None:
    """Which the run's file keeps."""
    played(tmp_path / "run.db", SHORT)
    assert "2 stay failed" in dialoom("retry", "run.db", code=1).stdout
    told = dialoom("retry", "run.db", "--context", f"{MODEL}={LONG}").stdout
    assert "2 failed scenarios are tried again" in told
    status = json.loads(dialoom("status", "run.db", "--json").stdout)
    assert (status["scenarios"]["done"], status["limits"]["context"]) == (4, {MODEL: LONG})
    assert f"{MODEL}: reads {LONG:,} tokens" in dialoom("status", "run.db").stdout


@pytest.mark.parametrize("wrong", ["8000", "offline/attentive=few", "offline/attentive=0"])
def test_a_window_that_is_none_is_refused(dialoom: Command, wrong: str) -> None:
    """With what would be right."""
    done = dialoom("run", "prefeval", "--context", wrong, "-o", "run.db", code=2)
    assert "--context" in done.stderr and "MODEL=N" in done.stderr

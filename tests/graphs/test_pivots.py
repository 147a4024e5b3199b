"""What follows from a pivot besides its figures: which scenarios each of them counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dialoom
from dialoom.graphs.reporting import Counted, Pivot, count, mean, score
from tests.graphs.support import Support, judge, played_by


class Counting(Support):
    """Counts endings in several ways."""

    pivots = (
        Pivot(
            "endings",
            "Endings",
            columns=[
                count("all"),
                count("by marker", ended_by="end_marker"),
                count("by limit", ended_by="max_turns"),
                count("long", lambda episode: len(episode.outcome.messages) > 100),
                mean("turns", lambda episode: episode.outcome.counts["turns"], interval=False),
                score("resolved", title="resolved %"),
                score("unheard of"),
            ],
        ),
    )


def test_a_figure_knows_which_scenarios_alone_count_in_it(tmp_path: Path) -> None:
    """By a metric or an ending; one that a function decides has no drill-down, one of all needs nothing."""
    models: dict[str, Any] = {"user": played_by(["I want it.", "Thanks. DONE"]), "assistant": played_by(["Done."])}
    run = dialoom.play(Counting, path=tmp_path / "run.db", models={**models, "judge": judge})
    table = run.report()["endings"]
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert (cells["all"], cells["by marker"], cells["by limit"], cells["long"]) == (len(run), len(run), 0, 0)
    assert table.counted == {
        "by limit": Counted(ended_by="max_turns"),
        "unheard of": Counted("unheard of", "assistant"),
    }
    assert table.chosen == {"long": None} and not table.where_of


def test_default_tables_know_the_scales_of_their_metrics(tmp_path: Path) -> None:
    """So that their charts go from one end to the other; verdicts have none."""
    models: dict[str, Any] = {"user": played_by(["I want it.", "Thanks. DONE"]), "assistant": played_by(["Done."])}
    run = dialoom.play(Support, path=tmp_path / "run.db", models={**models, "judge": judge})
    scales = run.report()["scores"].scales
    assert scales and set(scales.values()) == {(1, 5)}
    assert not any("resolved" in column for column in scales)

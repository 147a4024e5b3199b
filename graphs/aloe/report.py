"""What the trees of a run hold, by round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting.statistics import Tally, intervals
from dialoom.graphs.reporting.table import Table

from .display import sentences
from .nodes import PREFERRED, Round


@dataclass(slots=True)
class _OfRound:
    """What is counted at one depth."""

    pairs: int = 0
    profile: Tally = field(default_factory=Tally)
    personality: Tally = field(default_factory=Tally)
    followed: Tally = field(default_factory=Tally)
    verified: Tally = field(default_factory=Tally)


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """Pairs, sentences induced, how often the preferred reply was followed, how many pairs a judge confirms."""
    by_depth: dict[int, _OfRound] = defaultdict(_OfRound)
    trees = failed = 0
    for episode in episodes:
        trees += episode.state == "done"
        failed += episode.state != "done"
        for done in episode.outcome.details.get("rounds", []):
            _count(by_depth[len(done["path"]) + 1], done, episode.facets["persona"])
    columns = ["round", "pairs", "profile sentences", "personality sentences", "preferred followed %", "verified %"]
    table = Table("rounds", "The trees by round", columns)
    for depth, of_round in sorted(by_depth.items()):
        tallies = (of_round.profile, of_round.personality, of_round.followed, of_round.verified)
        table.rows.append([depth, of_round.pairs, *(tally.estimate() for tally in tallies)])
    table.notes.append(f"{trees:,} trees; {failed:,} failed, of which the finished rounds are counted.")
    table.notes.append(
        "Sentences: what the induction had found by then. Forks follow both replies and count as neither."
    )
    table.notes.append(intervals())
    return [table] if by_depth else []


def _count(of_round: _OfRound, done: Round, persona: str) -> None:
    of_round.pairs += 1
    of_round.profile.add(len(sentences(done["inferred_profile"])), persona)
    of_round.personality.add(len(sentences(done["inferred_personality"])), persona)
    if len(done["followed"]) == 1:
        of_round.followed.add(done["followed"] == [PREFERRED], persona)
    if done["verified"] is not None:
        of_round.verified.add(bool(done["verified"]), persona)

"""What the trees of a run hold, by round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting.statistics import Tally, intervals, share_of
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
    verified: Tally = field(default_factory=partial(Tally, judged=True))


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """Pairs, sentences induced, how often the preferred reply was followed, how many pairs a judge confirms."""
    by_depth: dict[int, _OfRound] = defaultdict(_OfRound)
    named = Counter[str]()
    trees = failed = unread = 0
    for episode in episodes:
        trees += episode.state == "done"
        failed += episode.state != "done"
        unread += episode.outcome.counts.get("unread_inductions", 0)
        for done in episode.outcome.details.get("rounds", []):
            named.update(filter(None, [done.get("named")]))
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
    if unread:
        table.notes.append(
            f"Inductions that could not be read: {unread:,}. Their rounds went on with what was known before."
        )
    table.notes.append(intervals())
    return [table, *_order(named)] if by_depth else []


def _order(named: Counter[str]) -> list[Table]:
    """What the judge of the pairs named when it read them in both orders: a judge that looks at places shows here."""
    if not named:
        return []
    agreed, placed = named["preferred"] + named["rejected"], named["first"] + named["second"]
    columns = ["pairs", "same reply in both orders %", "of these the preferred one %", "of others the first place %"]
    table = Table("order", "The judge of pairs, with the two replies in both orders", columns)
    shares = [share_of(agreed, agreed + placed), share_of(named["preferred"], agreed), share_of(named["first"], placed)]
    table.rows.append([agreed + placed, *shares])
    table.notes.append(
        "Where the judge named a place and not a reply, an unbiased one names the first in half of the cases. In "
        "brackets: Wilson's 95 % intervals."
    )
    return [table]


def _count(of_round: _OfRound, done: Round, persona: str) -> None:
    of_round.pairs += 1
    of_round.profile.add(len(sentences(done["inferred_profile"])), persona)
    of_round.personality.add(len(sentences(done["inferred_personality"])), persona)
    if len(done["followed"]) == 1:
        of_round.followed.add(done["followed"] == [PREFERRED], persona)
    if done["verified"] is not None:
        of_round.verified.add(bool(done["verified"]), persona)

"""Trees as outlines, round by round, and the tables of a run's trees."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting import Outline, Span, Table, Tally, intervals, share_of

from .tree import PREFERRED, REPLIES, Round, first_path, rounds_of

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?]+(?=\s|$)|$|(?=\n))")
_PRONOUN = re.compile(r"\b(?:he|she|they|his|hers?|him|their|them|himself|herself|themselves)\b|/", re.IGNORECASE)


def outline(episode: Episode) -> Outline:
    """Return the whole tree. Rounds of one path are siblings; each branch of a fork is indented."""
    rounds = rounds_of(episode.outcome)
    by_path, shown = {done["path"]: done for done in rounds}, first_path(rounds)
    heading = Span(f"the tree of {episode.outcome.details['persona']['id']}", "heading")
    return Outline([heading], list(_rounds(by_path, "", shown)))


def sentences(text: str | None) -> list[str]:
    """Return the sentences of an induced text."""
    return [found.strip() for found in _SENTENCE.findall(text or "") if found.strip()]


def _rounds(by_path: Mapping[str, Round], path: str, shown: str) -> Iterator[Outline]:
    while path in by_path:
        done = by_path[path]
        yield _round(done, by_path.get(path[:-1]) if path else None, shown)
        if len(done["followed"]) > 1:
            for reply in done["followed"]:
                text = f"on from the {REPLIES[reply]} reply"
                heading = Outline([Span(text, "heading")], kind="branch", is_taken=shown.startswith(path + reply))
                heading.parts.extend(_rounds(by_path, path + reply, shown))
                yield heading
            return
        path += done["followed"][0]


def _round(done: Round, before: Round | None, path: str) -> Outline:
    shown = Outline([Span(f"{len(done['path']) + 1}. ", "heading"), Span(done["user"], "user")])
    shown.kind, shown.where, shown.is_taken = "step", done["path"], path.startswith(done["path"])
    for key in ("profile", "personality"):
        shown.parts.append(_induced(key, done, before))
    for reply, name in REPLIES.items():
        is_taken = reply in done["followed"]
        spans = [Span(f"{'→' if is_taken else ' '} {name}: ", "note"), Span(done[name], "assistant")]
        shown.parts.append(Outline(spans, kind="option", is_taken=is_taken))
    if done["verified"] is not None:
        word = "the judge agrees" if done["verified"] else "the judge does not agree"
        shown.parts.append(Outline([Span(word, "note")]))
    return shown


def _induced(key: str, done: Round, before: Round | None) -> Outline:
    """Return the induced sentences of a round: the number of known ones, and the new ones."""
    known = {_unnamed(sentence) for sentence in sentences(before[f"inferred_{key}"])} if before else set()
    now = sentences(done[f"inferred_{key}"])
    line = Outline([Span(f"  {key}: ", "note")])
    if not now:
        line.spans.append(Span("nothing yet", "note"))
    new = [sentence for sentence in now if _unnamed(sentence) not in known]
    if old := len(now) - len(new):
        line.spans.append(Span(f"{old} known{', new: ' if new else ''}", "note"))
    line.spans += [Span(f"{sentence} ", "new") for sentence in new]
    return line


def _unnamed(sentence: str) -> str:
    """Return a sentence without pronouns, so that a change from "He/She" to "She" does not count as new."""
    return _PRONOUN.sub("", sentence).lower()


_FIGURES: Mapping[str, Callable[[Round], int | bool | None]] = {
    "profile sentences": lambda done: len(sentences(done["inferred_profile"])),
    "personality sentences": lambda done: len(sentences(done["inferred_personality"])),
    "preferred followed %": lambda done: done["followed"] == [PREFERRED] if len(done["followed"]) == 1 else None,
    "verified %": lambda done: done["verified"],
}
"""The columns of a round's row: each is a mean of this figure."""


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """Return the table by round: pairs, induced sentences, followed preferred replies, and verified pairs."""
    tallies: dict[int, dict[str, Tally]] = {}
    pairs, named, states = Counter[int](), Counter[str](), Counter[str]()
    unread = 0
    for episode in episodes:
        states["done" if episode.state == "done" else "failed"] += 1
        unread += episode.outcome.counts.get("unread_inductions", 0)
        for done in rounds_of(episode.outcome):
            depth = len(done["path"]) + 1
            pairs[depth] += 1
            named.update(filter(None, [done["named"]]))
            of_depth = tallies.setdefault(depth, {name: Tally(judged=name == "verified %") for name in _FIGURES})
            for name, figure in _FIGURES.items():
                if (value := figure(done)) is not None:
                    of_depth[name].add(value, episode.facets["persona"])
    table = Table("rounds", "The trees by round", ["round", "pairs", *_FIGURES])
    for depth, of_depth in sorted(tallies.items()):
        table.rows.append([depth, pairs[depth], *(tally.estimate() for tally in of_depth.values())])
    table.notes = [
        f"{states['done']:,} trees; {states['failed']:,} failed, of which the finished rounds are counted.",
        "Sentences: what the induction had found by then. Forks follow both replies and count as neither.",
    ]
    if unread:
        table.notes.append(
            f"Inductions that could not be read: {unread:,}. Their rounds went on with what was known before."
        )
    table.notes.append(intervals())
    return [table, *_order(named)] if tallies else []


def _order(named: Counter[str]) -> list[Table]:
    """Return the table of the pair judge's verdicts in both orders, which reveals position bias."""
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

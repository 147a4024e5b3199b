"""Outlines of trees, the tables of a run's trees, and the export formats.

Each round of a tree gives one training example, however many paths continue from it. The example's history is the
actual conversation: the replies that were followed, whether they were preferred or rejected.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import Field, field_validator

from dialoom.graphs import Episode, Exporter, Outline, Span, Table, Tally, intervals
from dialoom.graphs.tables.statistics import TRIALS_NOTE
from dialoom.graphs.training_rows import SystemOptions
from dialoom.prompts import ChatMessage

from .tree import PAIR_JUDGE, PREFERRED, REPLIES, Round, build_history, find_first_path, find_leaves, judged_rounds

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?]+(?=\s|$)|$|(?=\n))")
_PRONOUN = re.compile(r"\b(?:he|she|they|his|hers?|him|their|them|himself|herself|themselves)\b|/", re.IGNORECASE)


def build_outline(episode: Episode) -> Outline:
    """Return the whole tree as an outline. Rounds of one path are siblings; each branch of a fork is indented."""
    rounds = judged_rounds(episode.outcome)
    by_path, shown = {done["path"]: done for done in rounds}, find_first_path(rounds)
    heading = Span(f"the tree of {episode.outcome.details['persona']['id']}", "heading")
    return Outline([heading], list(_outline_rounds(by_path, "", shown)))


def split_sentences(text: str | None) -> list[str]:
    """Split an induced text into its sentences."""
    return [found.strip() for found in _SENTENCE.findall(text or "") if found.strip()]


def _outline_rounds(by_path: Mapping[str, Round], path: str, shown: str) -> Iterator[Outline]:
    if (done := by_path.get(path)) is None:
        return
    yield _outline_round(done, by_path.get(path[:-1]) if path else None, shown)
    if len(done["followed"]) == 1:
        yield from _outline_rounds(by_path, path + done["followed"][0], shown)
        return
    for reply in done["followed"]:
        heading = [Span(f"continued from the {REPLIES[reply]} reply", "heading")]
        parts, is_taken = [*_outline_rounds(by_path, path + reply, shown)], shown.startswith(path + reply)
        yield Outline(heading, parts, kind="branch", is_taken=is_taken)


def _outline_round(done: Round, before: Round | None, path: str) -> Outline:
    parts = [_outline_induced(key, done, before) for key in ("profile", "personality")]
    for reply, name in REPLIES.items():
        is_taken = reply in done["followed"]
        spans = [Span(f"{'→' if is_taken else ' '} {name}: ", "note"), Span(done[name], "assistant")]
        parts.append(Outline(spans, kind="option", is_taken=is_taken))
    if done["verified"] is not None:
        parts.append(Outline([Span("the judge agrees" if done["verified"] else "the judge does not agree", "note")]))
    line = [Span(f"{len(done['path']) + 1}. ", "heading"), Span(done["user"], "user")]
    return Outline(line, parts, kind="step", is_taken=path.startswith(done["path"]), where=done["path"])


def _outline_induced(key: str, done: Round, before: Round | None) -> Outline:
    """Return how many of a round's induced sentences were known before, and a list of the new ones."""
    known = {_strip_pronouns(sentence) for sentence in split_sentences(before[f"inferred_{key}"])} if before else set()
    now = split_sentences(done[f"inferred_{key}"])
    line = Outline([Span(f"  {key}: ", "note")])
    if not now:
        line.spans.append(Span("nothing yet", "note"))
    new = [sentence for sentence in now if _strip_pronouns(sentence) not in known]
    if old := len(now) - len(new):
        line.spans.append(Span(f"{old} known{', new: ' if new else ''}", "note"))
    line.spans += [Span(f"{sentence} ", "new") for sentence in new]
    return line


def _strip_pronouns(sentence: str) -> str:
    """Return a sentence without pronouns, so that sentences differing only in "He/She" and "She" count as equal."""
    return _PRONOUN.sub("", sentence).lower()


_COLUMNS: Mapping[str, Callable[[Round], int | bool | None]] = {
    "profile sentences": lambda done: len(split_sentences(done["inferred_profile"])),
    "personality sentences": lambda done: len(split_sentences(done["inferred_personality"])),
    "preferred followed %": lambda done: done["followed"] == [PREFERRED] if len(done["followed"]) == 1 else None,
    "verified %": lambda done: done["verified"],
}
"""The columns of a round's row. Each shows the mean of the values that its function returns."""

_INTERVALS_NOTE = "For shares, the pairs of one tree count as one in the intervals, as they are not independent."


def build_tables(episodes: Iterable[Episode]) -> list[Table]:
    """Return the table by round: pairs, induced sentences, followed preferred replies, and verified pairs."""
    tallies: dict[int, dict[str, Tally]] = {}
    pairs, states = Counter[int](), Counter[str]()
    order, unread, has_trials = _OrderConsistency(), 0, False
    for episode in episodes:
        unit = episode.facets["persona"], episode.scenario
        has_trials |= episode.repeated is not None
        states["done" if episode.state == "done" else "failed"] += 1
        unread += episode.outcome.counts.get("unread_inductions", 0)
        for done in judged_rounds(episode.outcome):
            depth = len(done["path"]) + 1
            pairs[depth] += 1
            order.add(done["named"], *unit)
            of_depth = tallies.setdefault(depth, {name: Tally(judged=name == "verified %") for name in _COLUMNS})
            for name, figure in _COLUMNS.items():
                if (value := figure(done)) is not None:
                    of_depth[name].add(value, *unit)
    table = Table("rounds", "Trees by round", ["round", "pairs", *_COLUMNS])
    table.judged = {"verified %": [f"{PAIR_JUDGE.metric} ({PAIR_JUDGE.target}) by turn"]}
    for depth, of_depth in sorted(tallies.items()):
        table.rows.append([depth, pairs[depth], *(tally.estimate() for tally in of_depth.values())])
    table.notes = [
        f"{states['done']:,} finished trees; of {states['failed']:,} failed trees, only the finished rounds count.",
        "Sentences: those induced up to that round. A fork follows both replies, so it is not counted in "
        "'preferred followed %'.",
    ]
    if unread:
        table.notes.append(
            f"Inductions that could not be parsed: {unread:,}. These rounds continued with the sentences of the "
            "previous round."
        )
    found = [table, *order.tables()] if tallies else []
    for each in found:
        each.notes += [intervals(), _INTERVALS_NOTE, *([TRIALS_NOTE] if has_trials else [])]
    return found


class _OrderConsistency:
    """The pair judge's verdicts in both orders of the replies, which reveal position bias."""

    def __init__(self) -> None:
        self._same, self._preferred, self._first = Tally(), Tally(), Tally()

    def add(self, named: str | None, persona: str, scenario: str) -> None:
        """Add a comparison's result, one of `PAIR_VERDICTS`; `None` if there was none or it could not be parsed."""
        if named is not None:
            is_same = named in ("preferred", "rejected")
            self._same.add(is_same, persona, scenario)
            (self._preferred if is_same else self._first).add(named in ("preferred", "first"), persona, scenario)

    def tables(self) -> list[Table]:
        """Return the table of the comparisons; an empty list without any."""
        if not self._same.n:
            return []
        columns = ["pairs", "same reply in both orders %", "preferred reply if same %", "first position if different %"]
        table = Table("order", "Consistency of the pair judge over both orders of the replies", columns)
        table.rows.append([self._same.n, *(each.estimate() for each in (self._same, self._preferred, self._first))])
        table.notes = [
            "Different: in both orders the judge chose the same position, and thus different replies. A judge without "
            "a position bias chooses the first position for half of these pairs.",
        ]
        return [table]


KTO_DISTANCE = 64
"""The number of rows with wanted replies that are written between the wanted and the unwanted reply of a round."""

_PAIR_ROLES = ("preferred", "rejected")
_NO_RESULT = "None"  # the release's word for an induction without result


Rows = Iterator[dict[str, Any]]
Prompt = list[ChatMessage]


class PairOptions(SystemOptions):
    """A selection of the pairs of a training set."""

    round_range: str | None = Field(None, description="Rounds to export, from 1: a range such as 3-10, or one round.")
    verified_only: bool = Field(False, description="Only pairs that a judge verified.")

    @field_validator("round_range")
    @classmethod
    def _check_range(cls, text: str | None) -> str | None:
        if text is not None:
            first, last = _parse_range(text)
            if not 1 <= first <= last:
                raise ValueError(f"must be a range of rounds from 1, such as 3-10, got {text!r}")
        return text

    def take(self, each: Round) -> bool:
        """Return whether the options select a round of the tree."""
        first, last = (1, len(each["path"]) + 1) if self.round_range is None else _parse_range(self.round_range)
        return first <= len(each["path"]) + 1 <= last and (each["verified"] is True or not self.verified_only)


def _parse_range(text: str) -> tuple[int, int]:
    if (match := re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", text, re.ASCII)) is None:
        raise ValueError(f"must be a range of rounds such as 3-10, or one round, got {text!r}")
    return int(match[1]), int(match[2] or match[1])


def sft_rows(prompt: Prompt, each: Round) -> Rows:
    """Yield the preferred reply as completion, separate from the prompt, so that only the reply is trained on."""
    yield {"prompt": prompt, "completion": _build_reply(each["preferred"])}


def preference_rows(prompt: Prompt, each: Round) -> Rows:
    """Yield the pair with its prompt, for DPO and for reward models."""
    yield {"prompt": prompt, "chosen": _build_reply(each["preferred"]), "rejected": _build_reply(each["rejected"])}


def kto_rows(prompt: Prompt, each: Round) -> Rows:
    """Yield both replies of a round with their labels. `delay_rejected` later separates them."""
    yield {"prompt": prompt, "completion": _build_reply(each["preferred"]), "label": True}
    yield {"prompt": prompt, "completion": _build_reply(each["rejected"]), "label": False}


def delay_rejected(rows: Rows) -> Rows:
    """Yield each row with a wanted reply immediately, and each row with an unwanted reply some rows later.

    Within a batch, KTO also pairs a reply with the prompt of the adjacent row, so adjacent rows must differ in their
    prompts.
    """
    waiting: deque[dict[str, Any]] = deque()
    for row in rows:
        if row["label"]:
            yield row
            if len(waiting) >= KTO_DISTANCE:
                yield waiting.popleft()
        else:
            waiting.append(row)
    yield from waiting


def release_rows(episode: Episode, *_: Any) -> Rows:
    """Yield a row for each whole conversation: one per leaf of the tree."""
    rounds, persona = _finished_rounds(episode), episode.outcome.details.get("persona", {})
    by_path = {each["path"]: each for each in rounds}
    for leaf in find_leaves(rounds):
        yield {
            "profile": persona["profile"],
            "personality": persona["personality"],
            "conversations": [
                {
                    "user": each["user"],
                    # The replies are strings instead of lists, because the release's trainers put them into the
                    # history. The release's dpo.py, however, draws one item of the list `rejected`;
                    # docs/training-sets.md has a patch for it.
                    "assistant": {name: each[name] for name in REPLIES.values()},
                    "chosen": REPLIES[step],
                    "inferred_profile": each["inferred_profile"] or _NO_RESULT,
                    "inferred_personality": each["inferred_personality"] or _NO_RESULT,
                }
                for each, step in ((by_path[leaf[:depth]], step) for depth, step in enumerate(leaf))
            ],
        }


def tree_rows(episode: Episode, *_: Any) -> Rows:
    """Yield the tree in the form in which the run stores it."""
    if rounds := _finished_rounds(episode):
        yield {"id": episode.scenario, "persona": episode.outcome.details["persona"], "rounds": rounds}


def _pair_rows(episode: Episode, *_: Any, options: PairOptions, rows: Callable[[Prompt, Round], Rows]) -> Rows:
    """Yield the rows of each selected round, in order."""
    rounds = _finished_rounds(episode)
    for each in filter(options.take, rounds):
        lines = build_history(rounds, each["path"])
        prompt: Prompt = [{"role": line["speaker"], "content": line["content"]} for line in lines]
        yield from rows(options.apply([*prompt, {"role": "user", "content": each["user"]}]), each)


def _finished_rounds(episode: Episode) -> list[Round]:
    """Return the rounds of a tree; an empty list if the tree failed."""
    return judged_rounds(episode.outcome) if episode.state == "done" else []


def _build_reply(reply: str) -> Prompt:
    return [{"role": "assistant", "content": reply}]


EXPORTERS: Mapping[str, Exporter] = {
    "aloe": Exporter(
        "rows in the form of the ALOE release, one per conversation from the first round to a leaf; the release's "
        "dpo.py needs a patch of one line (docs/training-sets.md); TRL reads the formats dpo and sft unchanged",
        "lines",
        release_rows,
    ),
    "sft": Exporter(
        "TRL prompt-completion: the preferred reply after the actual conversation",
        "lines",
        partial(_pair_rows, rows=sft_rows),
        PairOptions,
    ),
    "dpo": Exporter(
        "TRL preference: prompt, chosen, rejected",
        "lines",
        partial(_pair_rows, rows=preference_rows),
        PairOptions,
        pair_roles=_PAIR_ROLES,
    ),
    "kto": Exporter(
        "TRL unpaired preference: prompt, completion, label",
        "lines",
        partial(_pair_rows, rows=kto_rows),
        PairOptions,
        delay_rejected,
        pair_roles=_PAIR_ROLES,
    ),
    "reward": Exporter(
        "TRL preference, for a reward model: prompt, chosen, rejected",
        "lines",
        partial(_pair_rows, rows=preference_rows),
        PairOptions,
        pair_roles=_PAIR_ROLES,
    ),
    "tree": Exporter("a row per persona with its whole tree", "lines", tree_rows),
}

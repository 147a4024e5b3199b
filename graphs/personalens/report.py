"""PersonaLens aggregates: the paper's tables 3, 4, 12 and 13, and its figures 4 and 5, as tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from dialoom.graphs.outcome import Episode, Judgement
from dialoom.graphs.reporting.statistics import Estimate, Tally, intervals
from dialoom.graphs.reporting.table import Cell, FacetColumn, Table

from .scenario import SETTINGS

COLUMNS: dict[str, tuple[str, str]] = {
    "TCR %": ("task_completion", "assistant"),
    "P": ("personalization", "assistant"),
    "Nat. assistant": ("naturalness", "assistant"),
    "Nat. user": ("naturalness", "user"),
    "Coh. assistant": ("coherence", "assistant"),
    "Coh. user": ("coherence", "user"),
}
_KINDS = {"single": "single-domain", "multi": "multi-domain"}
SCALES: Mapping[str, tuple[int, int]] = {"personalization": (1, 4), "naturalness": (1, 5), "coherence": (1, 5)}
_SCALE_OF = {column: SCALES[metric] for column, (metric, _) in COLUMNS.items() if metric in SCALES}
_FACETS: Mapping[str, FacetColumn | None] = {
    "tasks": FacetColumn("kind", {words: kind for kind, words in _KINDS.items()}),
    "domain": FacetColumn("domains"),
}

Group = tuple[str, ...]


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """All tables of the report, in one pass over the episodes."""
    scores, by_turn, statuses = _Scores(), _Scores(), _Statuses()
    dialogues: dict[Group, _Dialogues] = defaultdict(_Dialogues)
    for episode in episodes:
        setting, kind = str(episode.facets["setting"]), _KINDS[str(episode.facets["kind"])]
        domains = [str(name) for name in episode.facets["domains"]]
        dialogues[(setting, kind)].add(episode)
        for judgement in episode.outcome.judgements:
            statuses.add(setting, judgement)
            if judgement.score is None:
                continue
            groups = [(setting, kind), *((setting, domain) for domain in domains)]
            target = by_turn if judgement.turn is not None else scores
            for group in groups:
                target.add(group, judgement, episode.facets["user"])
    overall = _overall(scores, dialogues)
    return [
        table
        for table in (
            overall,
            _by_domain(scores, overall.where_of),
            _by_turn(by_turn),
            statuses.table(),
            _statistics(dialogues),
        )
        if table.rows
    ]


class _Scores:
    """A tally for each group, metric, target and turn."""

    def __init__(self) -> None:
        self.tallies: dict[tuple[Group, str, str, int | None], Tally] = defaultdict(partial(Tally, judged=True))

    def add(self, group: Group, judgement: Judgement, user: str) -> None:
        assert judgement.score is not None
        self.tallies[(group, judgement.metric, judgement.target, judgement.turn)].add(judgement.score, user)

    def groups(self) -> list[Group]:
        return sorted({key[0] for key in self.tallies}, key=_order)

    def row(self, group: Group) -> list[Cell]:
        return [
            self.tallies[(group, *column, None)].estimate() if (group, *column, None) in self.tallies else None
            for column in COLUMNS.values()
        ]


class _Statuses:
    """How many judgements of each metric were had, and how many were not."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._where: dict[str, dict[str, str]] = defaultdict(dict)

    def add(self, setting: str, judgement: Judgement) -> None:
        metric = judgement.metric if judgement.turn is None else f"{judgement.metric} by turn"
        named = f"{metric} ({judgement.target})"
        self._counts[(setting, named, judgement.status)] += 1
        self._where[judgement.status][named] = _has_judgement(judgement)

    def table(self) -> Table:
        """A row for each setting and metric."""
        statuses = [
            "ok",
            "unparsed",
            "error",
            *(["tied"] if any(status == "tied" for *_, status in self._counts) else []),
        ]
        table = Table("judgements", "Judgements had and not had", ["setting", "metric", *statuses])
        table.facets, table.where_of = {"metric": None}, {**self._where}
        seen = dict.fromkeys((setting, metric) for setting, metric, _ in self._counts)
        for setting, metric in sorted(seen, key=lambda pair: SETTINGS.index(pair[0])):
            counts = [self._counts[(setting, metric, status)] for status in statuses]
            table.rows.append([setting, metric, *counts])
        return table


def _has_judgement(judgement: Judgement) -> str:
    """That a dialogue has one of this metric, target and status, as an expression over it."""
    whole = "none" if judgement.turn is None else "number"
    having = {"metric": judgement.metric, "target": judgement.target, "status": judgement.status}
    parts = [f"selectattr('{name}', 'eq', '{value}')" for name, value in having.items()]
    return " | ".join(["judgements", *parts, f"selectattr('turn', '{whole}')", "list"])


_ENDINGS = ("user_terminated", "turn_limit", "error")


class _Dialogues:
    """Sizes and endings of a group's dialogues."""

    def __init__(self) -> None:
        self.n = self.failed = self.turns = self.messages = self.tokens = 0
        self.tokens_known = True
        self.endings: Counter[str] = Counter()

    def add(self, episode: Episode) -> None:
        self.n += 1
        self.endings[episode.outcome.ended_by] += 1
        if episode.state != "done":
            self.failed += 1
            return
        self.turns += sum(line.role == "assistant" for line in episode.outcome.messages)
        self.messages += len(episode.outcome.messages)
        for role in ("user", "assistant"):
            tokens = episode.output_tokens.get(role)
            self.tokens_known = self.tokens_known and tokens is not None
            self.tokens += tokens or 0

    def row(self) -> Sequence[Cell]:
        done = self.n - self.failed
        endings = [self.endings[name] for name in _ENDINGS]
        if not done:
            return [self.n, None, None, None, *endings]
        per_turn = self.tokens / self.turns if self.tokens_known and self.turns else None
        return [self.n, self.turns / done, self.messages / done, per_turn, *endings]


def _overall(scores: _Scores, dialogues: dict[Group, _Dialogues]) -> Table:
    table = Table("scores", "Scores by setting and kind of task", ["setting", "tasks", "dialogues", *COLUMNS])
    table.facets, table.scales = _FACETS, _SCALE_OF
    for group in sorted(dialogues, key=_order):
        row = scores.row(group)
        if any(cell is not None for cell in row):
            table.rows.append([*group, dialogues[group].n, *row])
            table.where_of |= _where_scored(row, dialogues[group].n)
    table.notes.append(
        "TCR: share of dialogues whose goal was reached. P: personalization, 1 to 4. Nat., Coh.: 1 to 5."
    )
    table.notes.append(intervals())
    return table


def _where_scored(row: Sequence[Cell], dialogues: int) -> dict[str, str]:
    """Of scores that fewer dialogues have than there are: which have them."""
    return {
        column: f"{metric}.{target} is defined"
        for (column, (metric, target)), cell in zip(COLUMNS.items(), row, strict=True)
        if isinstance(cell, Estimate) and cell.n < dialogues
    }


def _by_domain(scores: _Scores, where_of: Mapping[str, str | Mapping[str, str]]) -> Table:
    table = Table("domains", "Scores by setting and domain", ["setting", "domain", *COLUMNS])
    table.facets, table.scales = _FACETS, _SCALE_OF
    kinds = set(_KINDS.values())
    table.rows = [[*group, *scores.row(group)] for group in scores.groups() if group[1] not in kinds]
    table.where_of = {**where_of}
    table.notes += ["A multi-domain dialogue counts in each of its domains.", intervals()]
    return table


def _by_turn(scores: _Scores) -> Table:
    last = max((key[3] or 0 for key in scores.tallies), default=0)
    columns = ["setting", "group", *(f"P turn {turn}" for turn in range(1, last + 1))]
    table = Table("turns", "Personalization after each assistant reply", columns)
    table.scales = dict.fromkeys(columns[2:], SCALES["personalization"])
    for group in scores.groups():
        cells: list[Cell] = []
        for turn in range(1, last + 1):
            tally = scores.tallies.get((group, "personalization", "assistant", turn))
            cells.append(tally.estimate() if tally else None)
        table.rows.append([*group, *cells])
    table.notes.append(intervals())
    return table


def _statistics(dialogues: dict[Group, _Dialogues]) -> Table:
    means = ["turns", "messages", "tokens per turn"]
    columns = ["dialogues", *means, *_ENDINGS]
    table = Table("dialogues", "The dialogues", ["setting", "tasks", *columns])
    table.facets = _FACETS
    if any(each.failed for each in dialogues.values()):
        table.where_of = dict.fromkeys(means, "state == 'done'")
    table.where_of |= {ending: f"ended_by == '{ending}'" for ending in _ENDINGS}
    table.rows = [[*group, *dialogues[group].row()] for group in sorted(dialogues, key=_order)]
    table.notes.append(
        "A turn is an assistant reply with the user's line before it; turns, messages and tokens are means over "
        "finished dialogues. Tokens are those that user and assistant wrote, as their providers counted them."
    )
    return table


def _order(group: Group) -> tuple[int, int, str]:
    kinds = list(_KINDS.values())
    place = kinds.index(group[1]) if group[1] in kinds else len(kinds)
    return (SETTINGS.index(group[0]), place, group[1])

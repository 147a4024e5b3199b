"""PersonaLens aggregates: the paper's tables 3, 4, 12 and 13, and its figures 4 and 5, as tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dialoom.graphs.outcome import Episode, Judgement
from dialoom.graphs.reporting.facet import Facet
from dialoom.graphs.reporting.pivot import Pivot, count, score, score_by_turn, tabulate
from dialoom.graphs.reporting.table import Cell, FacetColumn, Table

from .scenario import SETTINGS

_KINDS = {"single": "single-domain", "multi": "multi-domain"}
_SETTING = Facet("setting", order=SETTINGS)
_KIND = Facet("kind", "tasks", tuple(_KINDS), _KINDS)
_DOMAIN = Facet("domains", "domain")
_SCORES = (
    score("task_completion", title="TCR %"),
    score("personalization", title="P", scale=(1, 4)),
    score("naturalness", title="Nat. assistant", scale=(1, 5)),
    score("naturalness", "user", title="Nat. user", scale=(1, 5)),
    score("coherence", title="Coh. assistant", scale=(1, 5)),
    score("coherence", "user", title="Coh. user", scale=(1, 5)),
)
_TURNS = score_by_turn("personalization", title="P", scale=(1, 4))
PIVOTS = (
    Pivot(
        "scores",
        "Scores by setting and kind of task",
        (_SETTING, _KIND),
        (count("dialogues"), *_SCORES),
        ("TCR: share of dialogues whose goal was reached. P: personalization, 1 to 4. Nat., Coh.: 1 to 5.",),
    ),
    Pivot(
        "domains",
        "Scores by setting and domain",
        (_SETTING, _DOMAIN),
        _SCORES,
        ("A multi-domain dialogue counts in each of its domains.",),
    ),
    Pivot("turns", "Personalization after each assistant reply", (_SETTING, _KIND), (_TURNS,)),
    Pivot("turns-by-domain", "Personalization after each assistant reply, by domain", (_SETTING, _DOMAIN), (_TURNS,)),
)
_FACETS: Mapping[str, FacetColumn | None] = {
    "tasks": FacetColumn("kind", {words: kind for kind, words in _KINDS.items()}),
}

Group = tuple[str, ...]


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """Return all tables of the report, in one pass over the episodes."""
    statuses = _Statuses()
    dialogues: dict[Group, _Dialogues] = defaultdict(_Dialogues)

    def counted() -> Iterator[Episode]:
        for episode in episodes:
            setting = str(episode.facets["setting"])
            dialogues[(setting, _KINDS[str(episode.facets["kind"])])].add(episode)
            for judgement in episode.outcome.judgements:
                statuses.add(setting, judgement)
            yield episode

    pivoted = tabulate(PIVOTS, counted(), "user", "people")
    return [*pivoted, *(table for table in (statuses.table(), _statistics(dialogues)) if table.rows)]


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

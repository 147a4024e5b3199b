"""Statistics of people in a dataset: census tables, personal data, surfaced preferences, empty combinations."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dialoom.graphs import Line, Table
from dialoom.graphs.tables.diversity import SAMPLE_WORDS, SAMPLES, compute_diversity, compute_published_diversity
from dialoom.graphs.tables.table import Cell
from dialoom.personas import PersonaLensRelease
from dialoom.personas.release import MAX_TEXTS, Census
from dialoom.text import TOKEN


def describe_release(folder: Path) -> list[Table]:
    """Return the tables that describe a published dataset of people.

    Raises:
        DataError: If the folder is not such a dataset, or one of its files is malformed.
    """
    release = PersonaLensRelease(folder)
    census = Census.of(release)
    tables = [_tasks(census), *_demographics(census), _preferences(census), _texts(census)]
    tables[0].notes.append("The numbers of tables in titles are those of the PersonaLens paper.")
    if summary := release.repairs.summary():
        tables[0].notes.append(f"Tolerated irregularities in the files: {summary}.")
    return tables


def _tasks(census: Census) -> Table:
    table = Table("tasks", "Tasks and dialogues by domain (table 1)", ["domain", "tasks", "dialogues"])
    for domain in sorted(census.dialogues):
        table.rows.append([domain, len(census.tasks[domain]), census.dialogues[domain]])
    single, several = census.pairs["single"], census.pairs["multi"]
    table.rows.append(["all", len(set[str]().union(*census.tasks.values())), single + several])
    table.notes.append(
        f"Dialogues: (person, task) pairs, {single:,} of one domain and {several:,} of several; a pair with several "
        "domains counts in each of them, so the column's sum exceeds the last row."
    )
    return table


def _demographics(census: Census) -> list[Table]:
    """Return tables 6 and 7 of the PersonaLens paper; regions are the regions of birth."""
    tables = []
    for key, counts in census.demographics.items():
        title = f"{key.replace('_', ' ').capitalize()} of {census.people:,} people (tables 6 and 7)"
        table = Table(f"people-{key.replace('_', '-')}", title, [key.replace("_", " "), "n", "%"])
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        table.rows += [[value, count, count / census.people] for value, count in ranked]
        tables.append(table)
    return tables


def _preferences(census: Census) -> Table:
    columns = ["domain", "preference", "possible", "generated", "evenness", "values", "different", "without N/A"]
    table = Table("preferences", "Evenness of preferences (tables 8 and 9)", columns)
    for domain, name, values in census.rows():
        stated = Counter({text: count for text, count in values.counts.items() if text != "N/A"})
        row: list[Cell] = [domain, name, values.possible, values.generated, values.evenness]
        table.rows.append([*row, values.counts.total(), len(values.counts), type(values)(values.type, stated).evenness])
    table.notes += [
        "Evenness: E = H / ln n over the n values that occur, for all people, whether or not they are interested in "
        "the domain; 1 if all are equally common, a dash if there is only one.",
        "Generated: the number of different values; for a preference with a fixed list, at most the length of the "
        "list. Without N/A: the same without the value N/A, which the paper counts as a value.",
    ]
    return table


def _texts(census: Census) -> Table:
    columns = ["texts", "measured", "n", "words", "Dist-1", "Dist-2", "Ent-4", "Self-BLEU"]
    table = Table("texts", "Variety of the written texts (table 10)", columns, decimals=dict.fromkeys(columns[4:], 3))
    for what, drawn in census.texts.items():
        for how, measure in (("as published", compute_published_diversity), ("words", compute_diversity)):
            found = measure(drawn.texts)
            row: list[Cell] = [what, how, found.texts, found.words]
            table.rows.append([*row, found.dist_1, found.dist_2, found.ent_4, found.self_bleu])
    table.notes.append(
        f"As published: means over {SAMPLES} samples of {SAMPLE_WORDS:,} words, Self-BLEU of characters instead of "
        "words (Joko et al. 2024); the paper applies this to dialogues, which the dataset does not contain. Words: "
        "measured over all words of the texts."
    )
    if any(drawn.count > MAX_TEXTS for drawn in census.texts.values()):
        table.notes.append(f"If there are more than {MAX_TEXTS:,} texts, that many were drawn at random.")
    return table


@dataclass(slots=True)
class PreferenceMentions:
    """Statistics of the preferences that come up in dialogues.

    Attributes:
        preferences: Number of preferences over all dialogues.
        first: Number of preferences that first come up in each turn (from 1), by the role that states them.
        turns: Number of dialogues that have each turn.
    """

    preferences: int = 0
    first: dict[str, Counter[int]] = field(default_factory=dict)
    turns: Counter[int] = field(default_factory=Counter)

    def add(self, lines: Sequence[Line], preferences: Mapping[str, str]) -> None:
        """Count a dialogue. A turn is a line of the opening role with all lines until that role's next line."""
        # The values of each preference as normalized text; a value of more than six words is omitted.
        split = {
            name: [TOKEN.findall(part.casefold()) for part in text.split(";")] for name, text in preferences.items()
        }
        known = {name: [" ".join(each) for each in parts if 0 < len(each) <= 6] for name, parts in split.items()}
        open_ = {name: values for name, values in known.items() if values}
        self.preferences += len(open_)
        turn, opener = 0, lines[0].role if lines else ""
        for line in lines:
            turn += line.role == opener
            words = f" {' '.join(TOKEN.findall(line.content.casefold()))} "
            for name in [name for name, values in open_.items() if any(f" {value} " in words for value in values)]:
                self.first.setdefault(line.role, Counter())[turn] += 1
                del open_[name]
        self.turns.update(range(1, turn + 1))


MAX_VALUES = 20
"""Maximum number of values of a facet. A facet with more values identifies single dialogues rather than kinds of
dialogues, and is left out.
"""

_SHOWN = 3


@dataclass(slots=True)
class Combinations:
    """The values of facets that occur, and their combinations.

    Attributes:
        dialogues: Number of dialogues.
        values: The values of each facet, in the order of occurrence; `None` for a facet with too many values.
        observed: For each pair of facets, the pairs of values that occur together.
    """

    dialogues: int = 0
    values: dict[str, dict[str, None] | None] = field(default_factory=dict)
    observed: dict[tuple[str, str], set[tuple[str, str]]] = field(default_factory=dict)

    def add(self, facets: Mapping[str, Any]) -> None:
        """Count the facets of one dialogue, which may have several values of a facet."""
        self.dialogues += 1
        stated = {name: [str(each) for each in as_list(value)] for name, value in facets.items() if value is not None}
        for name, values in stated.items():
            known = self.values.setdefault(name, {})
            if known is not None:
                known.update(dict.fromkeys(values))
                if len(known) > MAX_VALUES:
                    self.values[name] = None
                    self.observed = {pair: met for pair, met in self.observed.items() if name not in pair}
        names = [name for name in stated if self.values[name] is not None]
        for one, other in itertools.combinations(names, 2):
            self.observed.setdefault((one, other), set()).update(itertools.product(stated[one], stated[other]))

    def table(self) -> Table:
        """Return a table with a row for each pair of facets in which some combination of values does not occur."""
        columns = ["of", "and", "combinations", "empty", "empty %", "such as"]
        table = Table("combinations", "Combinations of values that occur in no dialogue", columns)
        compared, deciding = 0, self._deciding()
        for (one, other), met in self.observed.items():
            left, right = self.values[one] or {}, self.values[other] or {}
            both = (deciding[one] | {one}) & (deciding[other] | {other})
            seen = min([self.dialogues, *(len(self.values[name] or {}) for name in both)])
            if len(left) < 2 or len(right) < 2 or len(left) * len(right) > seen:
                continue
            compared += 1
            pairs = [*itertools.product(left, right)]
            if empty := [pair for pair in pairs if pair not in met]:
                such = "; ".join(f"{first[:40]} with {second[:40]}" for first, second in empty[:_SHOWN])
                table.rows.append([one, other, len(pairs), len(empty), len(empty) / len(pairs), such])
        table.notes.append(
            f"For each pair of facets, among the values that occur at all; {compared:,} pairs of facets were compared. "
            f"Left out are facets with a single value or with more than {MAX_VALUES}, and pairs that have more "
            "combinations than there are dialogues, or more than the number of values of a facet that determines both. "
            "Some of these combinations may be impossible."
        )
        if decided := [f"{name} by {', '.join(sorted(by))}" for name, by in deciding.items() if by]:
            table.notes.append(
                f"Facets determined by another one, each of whose values occurs with only one value: "
                f"{'; '.join(decided)}."
            )
        return table

    def _deciding(self) -> dict[str, set[str]]:
        """Return, for each facet, the other facets that determine its value, such as the person for an age."""
        found: dict[str, set[str]] = {name: set() for name in self.values}
        for pair, met in self.observed.items():
            for side, name in enumerate(pair) if all(len(self.values[name] or {}) > 1 for name in pair) else ():
                if len({values[side] for values in met}) == len(met):
                    found[pair[1 - side]].add(name)
        return found


def as_list(value: Any) -> list[Any]:
    """Return the values of a facet as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]

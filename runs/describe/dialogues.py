"""Statistics of a set of dialogues, collected in one pass, and their tables and charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import quantiles

from dialoom.graphs import Chart, Series, Table
from dialoom.graphs.gate import format_reduced_coverage
from dialoom.graphs.gate.talk import detect_language
from dialoom.graphs.personal_data import PersonalDatum, build_finder
from dialoom.graphs.tables.diversity import (
    MAX_COMPARED_TEXTS,
    SAMPLE_WORDS,
    SAMPLES,
    LexicalDiversity,
    compute_diversity,
    compute_published_diversity,
)
from dialoom.graphs.tables.table import EMPTY_LABEL, Cell
from dialoom.personas.similarity import TextSample
from dialoom.runs.export.shortcuts import PairSample, shortcut_table
from dialoom.text import count_words
from dialoom.text import pluralize as amount

from .dataset import COMPARED_TEXTS, Dataset, DescribedDialogue
from .lexical import NEAR_DUPLICATE_THRESHOLD, SHINGLE_WORDS, Duplicates, SimilarTexts, TextIndex
from .people import Combinations, PreferenceMentions, as_list

MAX_LINES = 50_000
"""Maximum number of lines per role for lexical figures; from more lines, a seeded sample is drawn."""

_SHOWN = 10
_MAX_VALUES = 200
"""Maximum number of values of a facet that are counted."""


@dataclass(slots=True)
class DialogueStatistics:
    """Statistics of dialogues, collected in one pass.

    Their size in memory is bounded, except for the distinct first lines.
    """

    dialogues: int = 0
    sizes: dict[str, Counter[int]] = field(default_factory=dict)
    endings: Counter[str] = field(default_factory=Counter)
    openings: Counter[str] = field(default_factory=Counter)
    lines: dict[str, TextSample] = field(default_factory=dict)
    languages: Counter[str] = field(default_factory=Counter)
    personal: dict[str, list[tuple[str, PersonalDatum]]] = field(default_factory=dict)
    personal_counts: Counter[str] = field(default_factory=Counter)
    facets: dict[str, Counter[str]] = field(default_factory=dict)
    combinations: Combinations = field(default_factory=Combinations)
    surfacing: PreferenceMentions = field(default_factory=PreferenceMentions)
    copies: dict[str, TextIndex] = field(default_factory=lambda: {what: TextIndex() for what in COMPARED_TEXTS})
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    gate_languages: Counter[str] = field(default_factory=Counter)
    pairs: PairSample = field(default_factory=PairSample)
    gated: int = 0
    faulty: int = 0

    def add(self, dialogue: DescribedDialogue, find: Callable[[str], Iterator[PersonalDatum]]) -> None:
        """Count a dialogue, and the personal data that a function finds in its lines."""
        self.dialogues += 1
        if dialogue.ended_by:
            self.endings[dialogue.ended_by] += 1
        if dialogue.lines:
            self.openings[" ".join(dialogue.opening.split())] += 1
        sizes = Counter({"lines": len(dialogue.lines)})
        for line in dialogue.lines:
            sizes[f"words of the {line.role}"] += count_words(line.content)
            self.lines.setdefault(line.role, TextSample(MAX_LINES)).add(line.content)
            self.languages[detect_language(line.content) or "unknown"] += 1
            for datum in find(line.content):
                self.personal_counts[datum.kind] += 1
                if len(shown := self.personal.setdefault(datum.kind, [])) < _SHOWN:
                    shown.append((dialogue.id, datum))
        for what, size in sizes.items():
            self.sizes.setdefault(what, Counter())[size] += 1
        for name, value in ((name, each) for name, values in dialogue.facets.items() for each in as_list(values)):
            counts = self.facets.setdefault(name, Counter())
            facet_value = "–" if value is None else str(value)
            if facet_value in counts or len(counts) < _MAX_VALUES:
                counts[facet_value] += 1
        for what, text in COMPARED_TEXTS.items():
            self.copies[what].add(dialogue.id, text(dialogue))
        self.combinations.add(dialogue.facets)
        self.surfacing.add(dialogue.lines, dialogue.preferences)
        self.pairs.add(dialogue.row)
        if dialogue.faults is not None:
            self.gated += 1
            self.gate_languages.update(dialogue.languages)
            self.faulty += bool(dialogue.faults)
            self.faults.update({(fault.role, fault.kind) for fault in dialogue.faults})


def describe_dialogues(
    dataset: Dataset, against: Sequence[Dataset] = (), alike: SimilarTexts | None = None
) -> tuple[list[Table], list[Chart]]:
    """Return the tables and charts of a set of dialogues.

    Args:
        dataset: The dialogues.
        against: Other sets, such as test sets, whose copies are searched for.
        alike: The detector of texts with similar meaning, if these are to be reported.

    Raises:
        RunError: If a library for copies or personal data is missing.
    """
    counted, find = DialogueStatistics(), build_finder()
    for dialogue in dataset.dialogues():
        counted.add(dialogue, find)
    tables = [
        _sizes(counted),
        _shares("endings", "How dialogues end", "ended by", counted.endings, counted.dialogues),
        _openings(counted),
        _lexical(counted),
        _duplicates(counted, dataset, against),
        *([] if alike is None else [alike.table(dataset, against)]),
        _shares("languages", "Languages of lines", "language", counted.languages, counted.languages.total()),
        _personal(counted),
        _facets(counted),
        counted.combinations.table(),
        _surfacing(counted),
        _faults(counted),
        shortcut_table(counted.pairs),
    ]
    charts = [_surfacing_chart(counted)] if counted.surfacing.preferences else []
    return [table for table in tables if table is not None and table.rows], charts


def _sizes(counted: DialogueStatistics) -> Table:
    table = Table(
        "sizes",
        "Lengths of dialogues",
        ["of each dialogue", "n", "mean", "5th percentile", "median", "95th percentile"],
    )
    for what, sizes in counted.sizes.items():
        values = sorted(sizes.elements())
        cuts = quantiles(values, n=20, method="inclusive") if len(values) > 1 else values * 19
        mean = sum(values) / len(values)
        table.rows.append([what, len(values), mean, float(cuts[0]), float(cuts[9]), float(cuts[18])])
    table.notes.append(
        "Words are separated by white space, and characters of Chinese and Japanese count as words. A role's figures "
        "cover the dialogues in which it speaks."
    )
    return table


def _shares(name: str, title: str, column: str, counts: Counter[str], n: int) -> Table:
    table = Table(name, title, [column, "n", "%"])
    table.rows += [[value, count, _share(count, n)] for value, count in counts.most_common()]
    return table


def _openings(counted: DialogueStatistics) -> Table:
    table = Table("openings", "Most common first lines", ["first line", "n", "%"])
    for text, count in counted.openings.most_common(_SHOWN):
        if count > 1:
            table.rows.append([text if len(text) <= 80 else f"{text[:79]}…", count, count / counted.dialogues])
    table.notes.append(
        f"{amount(len(counted.openings), 'different first lines')} in {amount(counted.openings.total(), 'dialogues')}."
    )
    return table


def _lexical(counted: DialogueStatistics) -> Table:
    columns = ["lines of", "measured", "lines", "words", "Dist-1", "Dist-2", "Ent-4", "Self-BLEU", "compared"]
    table = Table("lexical", "Variety of lines", columns, decimals=dict.fromkeys(columns[4:8], 3))
    drawn = {role: each.texts for role, each in counted.lines.items() if any(map(str.strip, each.texts))}
    if len(drawn) > 1:
        drawn = {**drawn, "all": [text for texts in drawn.values() for text in texts]}
    for role, texts in drawn.items():
        table.rows.append([role, "words", *_figures(compute_diversity(texts))])
    if drawn:
        role, texts = list(drawn.items())[-1]
        table.rows.append([role, "as published", *_figures(compute_published_diversity(texts))])
    table.notes += [
        "Dist-n: share of distinct n-grams among all; Ent-4: entropy of 4-grams in nats; Self-BLEU: how similar a line "
        f"is to the others (of at most {MAX_COMPARED_TEXTS:,} lines). The first two fall with the number of words, so "
        "compare sets of similar size.",
        f"As published (PersonaLens, table 10, after Joko et al. 2024): means over {SAMPLES} samples of "
        f"{SAMPLE_WORDS:,} words; Self-BLEU of characters instead of words.",
    ]
    if any(each.count > MAX_LINES for each in counted.lines.values()):
        table.notes.append(f"If a role has more than {MAX_LINES:,} lines, that many were drawn at random.")
    return table


def _figures(found: LexicalDiversity) -> list[Cell]:
    return [found.texts, found.words, found.dist_1, found.dist_2, found.ent_4, found.self_bleu, found.compared]


def _duplicates(counted: DialogueStatistics, dataset: Dataset, against: Sequence[Dataset]) -> Table:
    columns = ["of", "searched in", "texts", "word for word", "nearly", "copies %"]
    table = Table("duplicates", "Copies", columns)
    table.notes.append(
        f"Nearly: at least {NEAR_DUPLICATE_THRESHOLD:.0%} of the sequences of {SHINGLE_WORDS} words in common "
        "(MinHash), ignoring case and punctuation."
    )
    others = [(other, {what: Duplicates() for what in COMPARED_TEXTS}) for other in against]
    for other, copies in others:
        for dialogue in other.dialogues():
            for what, text in COMPARED_TEXTS.items():
                counted.copies[what].search(dialogue.id, text(dialogue), copies[what])
    for what, index in counted.copies.items():
        rows = [("", "itself", index.within)]
        rows += [(f" of {other.name}", dataset.name, copies[what]) for other, copies in others]
        for whose, looked_in, found in rows:
            share = _share(found.exact + found.near, found.texts)
            table.rows.append([f"{what}{whose}", looked_in, found.texts, found.exact, found.near, share])
            table.notes += [f"{what}: {one}{whose} resembles {match}" for one, match in found.pairs]
    return table


def _share(count: int, n: int) -> float | None:
    return count / n if n else None


def _personal(counted: DialogueStatistics) -> Table:
    table = Table("personal-data", "Personal data that looks real", ["kind", "n", "such as"])
    for kind, count in counted.personal_counts.most_common():
        id_, datum = counted.personal[kind][0]
        table.rows.append([kind, count, f"{datum.masked} in {id_}"])
    return table


def _facets(counted: DialogueStatistics) -> Table:
    table = Table(
        "facets", "Values of the facets", ["facet", "values", "most frequent", "n", "rarest", "n of the rarest"]
    )
    for name, counts in counted.facets.items():
        ranked = counts.most_common()
        (first, most), (last, least) = ranked[0], ranked[-1]
        table.rows.append([name, len(counts), first[:60] or EMPTY_LABEL, most, last[:60] or EMPTY_LABEL, least])
    if any(len(counts) == _MAX_VALUES for counts in counted.facets.values()):
        table.notes.append(f"At most {_MAX_VALUES} values of a facet are counted separately.")
    return table


def _surfacing(counted: DialogueStatistics) -> Table:
    found = counted.surfacing
    table = Table("preferences", "Preferences mentioned", ["mentioned first by", "n", "of all preferences %"])
    for role, turns in sorted(found.first.items()):
        table.rows.append([role, turns.total(), _share(turns.total(), found.preferences)])
    if found.preferences:
        never = found.preferences - sum(turns.total() for turns in found.first.values())
        table.rows.append(["nobody", never, _share(never, found.preferences)])
    table.notes.append("A preference counts as mentioned if one of its values occurs word for word, ignoring case.")
    return table


def _surfacing_chart(counted: DialogueStatistics) -> Chart:
    found = counted.surfacing
    last = max(found.turns, default=1)
    title = "Preferences mentioned up to each turn, by who mentioned them first"
    chart = Chart("preferences", title, "turn", "share of all")
    for role, turns in sorted(found.first.items()):
        so_far = accumulate(turns[turn] for turn in range(1, last + 1))
        chart.series.append(Series(role, range(1, last + 1), [count / found.preferences for count in so_far]))
    chart.notes = [f"{amount(found.preferences, 'preferences')} of {amount(counted.dialogues, 'dialogues')}."]
    return chart


def _faults(counted: DialogueStatistics) -> Table:
    table = Table("faults", "Faults that the gate found", ["role", "fault", "dialogues", "%"])
    for (role, kind), count in counted.faults.most_common():
        table.rows.append([role, kind, count, _share(count, counted.gated)])
    if counted.gated:
        sound = counted.gated - counted.faulty
        table.rows.append(["–", "none", sound, _share(sound, counted.gated)])
        table.notes.append(format_reduced_coverage(counted.gate_languages, counted.gated))
    return table

"""What is in a release of people: tables 1 and 6 to 10 of PersonaLens, by formulas that give the paper's figures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from dialoom.graphs import Table
from dialoom.graphs.reporting.table import Cell
from dialoom.personas import PersonaLensRelease
from dialoom.personas.census import MOST_TEXTS, Census

from .lexical import SAMPLE_WORDS, SAMPLES, published, varied


def describe_release(folder: Path) -> list[Table]:
    """The tables of a release.

    Raises:
        DataError: If it is none, or a file of it is broken.
    """
    release = PersonaLensRelease(folder)
    census = Census.of(release)
    tables = [_tasks(census), *_demographics(census), _preferences(census), _texts(census)]
    if summary := release.mendings.summary():
        tables[0].notes.append(f"Put up with while reading: {summary}.")
    return tables


def _tasks(census: Census) -> Table:
    table = Table("tasks", "Tasks and dialogues by domain (table 1)", ["domain", "tasks", "dialogues"])
    for domain in sorted(census.dialogues):
        table.rows.append([domain, len(census.tasks[domain]), census.dialogues[domain]])
    single, several = census.pairs["single"], census.pairs["multi"]
    table.rows.append(["all", len(set[str]().union(*census.tasks.values())), single + several])
    table.notes.append(
        f"Dialogues: (person, task) pairs, {single:,} of one domain and {several:,} of several; one of several counts "
        "in each of its domains, so that the column's sum is larger than the last row."
    )
    return table


def _demographics(census: Census) -> list[Table]:
    """Tables 6 and 7; regions are those of birth."""
    tables = []
    for key, counts in census.demographics.items():
        title = f"{key.replace('_', ' ').capitalize()} of {census.people:,} people (tables 6 and 7)"
        table = Table(f"people-{key.replace('_', '-')}", title, [key.replace("_", " "), "n", "%"])
        table.rows += [[value, count, count / census.people] for value, count in _ranked(counts)]
        tables.append(table)
    return tables


def _preferences(census: Census) -> Table:
    columns = ["domain", "preference", "possible", "generated", "evenness", "values", "different", "without N/A"]
    table = Table("preferences", "Evenness of preferences (tables 8 and 9)", columns)
    for domain, name, values in census.rows():
        told = Counter({text: count for text, count in values.counts.items() if text != "N/A"})
        row: list[Cell] = [domain, name, values.possible, values.generated, values.evenness]
        table.rows.append([*row, values.counts.total(), len(values.counts), type(values)(values.type, told).evenness])
    table.notes += [
        "Evenness: E = H / ln n over the n values that occur, of all people, whether the domain is of interest to them "
        "or not; 1 if all are equally common, a dash if there is only one.",
        "Generated: the different values, of a preference from a list at most as many as the list has. "
        "Without N/A: the same without the value N/A, which the paper's figures count as one.",
    ]
    return table


def _texts(census: Census) -> Table:
    columns = ["texts", "measured", "n", "words", "Dist-1", "Dist-2", "Ent-4", "Self-BLEU"]
    table = Table(
        "texts", "How varied the written texts are (table 10)", columns, decimals=dict.fromkeys(columns[4:], 3)
    )
    for what, drawn in census.texts.items():
        for how, measure in (("as published", published), ("words", varied)):
            found = measure(drawn.texts)
            row: list[Cell] = [what, how, found.texts, found.words]
            table.rows.append([*row, found.dist_1, found.dist_2, found.ent_4, found.self_bleu])
    table.notes.append(
        f"As published: means over {SAMPLES} samples of {SAMPLE_WORDS:,} words, Self-BLEU of letters (Joko et al. "
        "2024); the paper measures dialogues so, which the release does not hold. Words: of all texts as they are."
    )
    if any(drawn.count > MOST_TEXTS for drawn in census.texts.values()):
        table.notes.append(f"Of more than {MOST_TEXTS:,} texts, so many were drawn.")
    return table


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

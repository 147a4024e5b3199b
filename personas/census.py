"""A census of a release: its people, tasks and preferences, counted as in tables 1 and 6 to 9 of PersonaLens.

Values are taken from the files before any repair: exact texts, masked domains included, `N/A` counted as a value like
any other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from .profile import AffinityType, Demographics
from .release import PersonaLensRelease
from .similarity import DrawnTexts

DEMOGRAPHICS = tuple(name for name in Demographics.model_fields if name != "user_id")

MOST_TEXTS = 20_000
"""The most texts of a kind that are kept; of more, this many are sampled."""

NOT_SAID = "Prefer not to say"
"""The paper's label for `N/A` in categories that people may decline to answer."""

_MAY_BE_KEPT = ("ethnicity", "religion")


@dataclass(slots=True)
class PreferenceValues:
    """Frequencies of the values of one preference (a row of tables 8 and 9).

    Attributes:
        type: The schema's entry; `None` if the schema lacks it.
        counts: The number of occurrences of each raw value; values of a list count one by one.
    """

    type: AffinityType | None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def possible(self) -> int | None:
        """The number of possible values; `None` for a preference with free values."""
        return len(self.type.possible_values) if self.type is not None and self.type.is_categorical else None

    @property
    def generated(self) -> int:
        """The number of different values that occur; for a categorical preference at most `possible`."""
        return len(self.counts) if self.possible is None else min(len(self.counts), self.possible)

    @property
    def evenness(self) -> float | None:
        """Pielou's evenness E = H / ln n over the n values that occur (H in nats); `None` where n < 2."""
        total = self.counts.total()
        if len(self.counts) < 2:
            return None
        entropy = -math.fsum(count / total * math.log(count / total) for count in self.counts.values())
        return entropy / math.log(len(self.counts))


@dataclass(slots=True)
class Census:
    """The counts of a release.

    Attributes:
        people: The number of people.
        demographics: By key, the number of people with each value.
        preferences: By domain and name.
        tasks: By domain, the ids of its tasks.
        dialogues: By domain, the number of (person, task) pairs; a pair of several domains counts in each.
        pairs: The number of (person, task) pairs of one domain and of several.
        texts: By kind (`summaries`, `intents`), the texts written for people, or a sample of them.
    """

    people: int = 0
    demographics: dict[str, Counter[str]] = field(default_factory=lambda: {key: Counter() for key in DEMOGRAPHICS})
    preferences: dict[tuple[str, str], PreferenceValues] = field(default_factory=dict)
    tasks: dict[str, set[str]] = field(default_factory=dict)
    dialogues: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)
    texts: dict[str, DrawnTexts] = field(
        default_factory=lambda: {"summaries": DrawnTexts(MOST_TEXTS), "intents": DrawnTexts(MOST_TEXTS)}
    )

    @classmethod
    def of(cls, release: PersonaLensRelease) -> Census:
        """Count a release, one person at a time.

        Raises:
            DataError: If one of its files is broken.
        """
        census = cls()
        for user in release.user_ids():
            census._count_person(release, user)
            for task in release.tasks(release.profile(user), user):
                census._count_task(task.id, task.domains)
                census.texts["intents"].add(task.intent)
        return census

    def _count_person(self, release: PersonaLensRelease, user: str) -> None:
        raw = release.as_written(user)
        self.people += 1
        for key in DEMOGRAPHICS:
            value = str(raw["demographics"].get(key, ""))
            self.demographics[key][NOT_SAID if value == "N/A" and key in _MAY_BE_KEPT else value] += 1
        for domain, preferences in raw["affinities"].items():
            for name, value in preferences.items():
                values = value if isinstance(value, list) else [value]
                place = domain, name
                if place not in self.preferences:
                    known = release.schema.types.get(place) if release.schema is not None else None
                    self.preferences[place] = PreferenceValues(known)
                self.preferences[place].counts.update(map(str, values))
        for text in filter(None, raw["interactions"].values()):
            self.texts["summaries"].add(text)

    def _count_task(self, id_: str, domains: tuple[str, ...]) -> None:
        self.pairs["single" if len(domains) == 1 else "multi"] += 1
        for domain in domains:
            self.dialogues[domain] += 1
            self.tasks.setdefault(domain, set()).add(id_)

    def rows(self) -> Iterator[tuple[str, str, PreferenceValues]]:
        """Yield the preferences by domain and name, in the order of the files."""
        for (domain, name), values in sorted(self.preferences.items(), key=lambda item: item[0][0]):
            yield domain, name, values

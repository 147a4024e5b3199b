"""What is in a release: its people, tasks and preferences, counted as tables 1 and 6 to 9 of PersonaLens count them.

The values are the files' own, before anything is mended: exact texts, masked domains included, `N/A` a value like any
other.
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
"""Texts of a kind that are kept; of more, so many are drawn."""

NOT_SAID = "Prefer not to say"
"""What the paper prints for `N/A` where people may keep a thing to themselves."""

_MAY_BE_KEPT = ("ethnicity", "religion")


@dataclass(slots=True)
class PreferenceValues:
    """How often each value of one preference occurs (a row of tables 8 and 9).

    Attributes:
        type: What the schema says of it; `None` if it does not know it.
        counts: Of each raw value; those of a list count one by one.
    """

    type: AffinityType | None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def possible(self) -> int | None:
        """How many values there could be; `None` of a preference that takes any."""
        return len(self.type.possible_values) if self.type is not None and self.type.is_categorical else None

    @property
    def generated(self) -> int:
        """How many different ones occur, of a categorical preference at most as many as could."""
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
    """A release, counted.

    Attributes:
        people: How many there are.
        demographics: By key, how many people have each value.
        preferences: By domain and name.
        tasks: By domain, the ids of its tasks.
        dialogues: By domain, the (person, task) pairs; one of several domains counts in each.
        pairs: The (person, task) pairs of one domain and of several.
        texts: By what they are (`summaries`, `intents`), the texts that were written for people, or a sample of them.
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
            DataError: If a file of it is broken.
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
        """The preferences by domain and name, as the files have them."""
        for (domain, name), values in sorted(self.preferences.items(), key=lambda item: item[0][0]):
            yield domain, name, values

"""The reader of PersonaLens profiles in the release's layout, counts of irregularities, and a census of a release."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dialoom.inputs import DataError, read_bytes, read_json, validate_model
from dialoom.text import is_well_formed, to_well_formed_value

from .profile import (
    DOMAINS,
    FREE_FORM_SITUATIONS,
    LONE_SURROGATES,
    NON_ASCII_PROFILES,
    UNLISTED_VALUES,
    Affinity,
    AffinitySchema,
    AffinityType,
    Demographics,
    Domain,
    Profile,
    Repairs,
    Situation,
    Task,
    count_free_form,
    is_redacted,
    is_withheld,
    normalize_domain_name,
    resolve_affinity,
)
from .rows import DEMOGRAPHIC_KEYS, build_study_advice
from .similarity import TextSample

_DOMAIN_SECTIONS = ("affinities", "interests", "interactions")


def load_samples() -> PersonaLensRelease:
    """Return the release of sample people that dialoom ships."""
    return PersonaLensRelease(Path(__file__).parent / "samples")


class PersonaLensRelease:
    """A folder in the release's layout.

    Attributes:
        root: The folder that holds `data/profile`.
        schema: The affinity schema, if the release has one.
        repairs: The repairs so far. They are complete once all requested data has been read.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repairs = Repairs()
        self._profiles = root / "data" / "profile"
        if not self._profiles.is_dir():
            message = "holds no data/profile folder; give the folder of a PersonaLens release"
            raise DataError(root, message, advice=build_study_advice(root))
        schema = root / "res" / "schema.json"
        self.schema = AffinitySchema.read(schema) if schema.exists() else None
        own = [domain for domain, _ in self.schema.types] if self.schema is not None else []
        self._domain_names = tuple(dict.fromkeys((*own, *DOMAINS)))

    def user_ids(self) -> list[str]:
        """Return the ids of all people in numerical order (`user2` before `user10`)."""
        ids = sorted((path.name for path in self._profiles.iterdir() if path.is_dir()), key=_natural_sort_key)
        if not ids:
            raise DataError(self._profiles, "contains no folder of a user, such as user1/profile.json")
        return ids

    def as_written(self, user_id: str) -> dict[str, Any]:
        """Return a person's file unchanged, except that stray characters in the names of domains are removed.

        Raises:
            DataError: If the person does not exist or the file is broken.
        """
        path = self._profiles / user_id / "profile.json"
        values = self._read(path)
        return {**values, **{key: self._by_domain(path, key, values[key]) for key in _DOMAIN_SECTIONS}}

    def profile(self, user_id: str) -> Profile:
        """Return one person's profile.

        Raises:
            DataError: If the person does not exist or the file is broken.
        """
        path = self._profiles / user_id / "profile.json"
        values = self._read(path)
        demographics = validate_model(Demographics, values["demographics"], path, part="demographics")
        self._count_untold(demographics)
        is_ascii = read_bytes(path).isascii() and json.dumps(values, ensure_ascii=False).isascii()
        self.repairs[NON_ASCII_PROFILES] += not is_ascii
        return Profile(demographics=demographics, domains=self._domains(path, values))

    def tasks(self, profile: Profile, user_id: str | None = None) -> Iterator[Task]:
        """Yield a person's tasks in the files' order, single-domain tasks first.

        Raises:
            DataError: If a file is broken, or a task needs a domain that the profile lacks.
        """
        folder = self._profiles / (user_id or profile.user_id)
        if not (paths := [path for path in (folder / "tasks.json", folder / "tasks_md.json") if path.exists()]):
            raise DataError(folder, "contains neither tasks.json nor tasks_md.json")
        for path in paths:
            for key, value in _read_object(path, self.repairs).items():
                task = validate_model(Task, value, path, part=key)
                if self._is_eligible(task, profile, path):
                    self._count(task, profile)
                    yield task

    def _read(self, path: Path) -> dict[str, Any]:
        values = _read_object(path, self.repairs)
        for key in ("affinities", "demographics", *_DOMAIN_SECTIONS[1:]):
            if not isinstance(values.get(key), dict):
                found = "missing" if key not in values else f"{values[key]!r:.60}"
                raise DataError(path, f"{key!r} is {found}; it must be an object")
        return values

    def _domains(self, path: Path, values: Mapping[str, Any]) -> dict[str, Domain]:
        affinities, interests, interactions = (self._by_domain(path, key, values[key]) for key in _DOMAIN_SECTIONS)
        domains: dict[str, Domain] = {}
        for name, preferences in affinities.items():
            if not isinstance(preferences, dict):
                raise DataError(path, f"affinities of {name!r} are {preferences!r}; they must be an object")
            mask, summary = interests.get(name, 0), interactions.get(name, "")
            if mask not in (0, 1):
                raise DataError(path, f"interests of {name!r} are {mask!r}; they must be 0 or 1")
            if not isinstance(summary, str):
                raise DataError(path, f"interactions of {name!r} are {summary!r}; they must be text")
            domains[name] = Domain(
                affinities=self._affinities(path, name, preferences), summary=summary, of_interest=bool(mask)
            )
        return domains

    def _by_domain(self, path: Path, section: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a section of a file by canonical domain names."""
        mended: dict[str, Any] = {}
        for key, value in values.items():
            name = normalize_domain_name(key, self._domain_names)
            self.repairs["domain names with stray characters repaired"] += name != key
            if name in mended:
                raise DataError(path, f"{section} has {name!r} twice (once as {key!r})")
            mended[name] = value
        return mended

    def _affinities(self, path: Path, domain: str, values: Mapping[str, Any]) -> dict[str, Affinity]:
        affinities: dict[str, Affinity] = {}
        for name, value in values.items():
            texts = value if isinstance(value, list) else [value]
            if not all(isinstance(text, str) for text in texts):
                raise DataError(
                    path, f"affinity {name!r} of {domain!r} is {value!r}; it must be a string or a list of strings"
                )
            cleaned = [text.strip() for text in texts if text.strip() and not is_withheld(text)]
            withheld = sum(is_withheld(text) for text in texts)
            self.repairs["'[Redacted]' or 'N/A' values left out"] += withheld
            if not cleaned:
                self.repairs["empty affinities left out"] += not withheld
                continue
            affinities[name] = tuple(cleaned) if isinstance(value, list) else cleaned[0]
            if self.schema is not None:
                self.repairs[UNLISTED_VALUES] += self.schema.outside(domain, name, affinities[name])
        return affinities

    def _is_eligible(self, task: Task, profile: Profile, path: Path) -> bool:
        """Return whether a task has no masked domain (section 2.2 of the paper)."""
        for name in task.domains:
            if name not in profile.domains:
                raise DataError(path, f"task {task.id!r} needs the domain {name!r}, which the profile lacks")
        is_eligible = all(profile.domains[name].of_interest for name in task.domains)
        self.repairs["tasks left out because one of the domains is masked"] += not is_eligible
        return is_eligible

    def _count(self, task: Task, profile: Profile) -> None:
        names = [name for domain in task.domains for name in self._known_affinities(domain, profile)]
        self.repairs.update(filter(None, (resolve_affinity(name, names)[1] for name in task.relevant_affinities)))
        situation = task.situation
        self._count_untold(situation)
        self.repairs[FREE_FORM_SITUATIONS] += count_free_form(
            situation.device, situation.day_of_week, situation.time_of_day
        )

    def _count_untold(self, record: Demographics | Situation) -> None:
        kind = "'[Redacted]' or 'N/A' values of demographics or situations, which no prompt shows"
        self.repairs[kind] += sum(is_redacted(value) for value in record.model_dump().values())

    def _known_affinities(self, domain: str, profile: Profile) -> list[str]:
        """Return the names of a domain's affinities in the schema, or in the profile if there is no schema."""
        if self.schema is not None:
            return [name for where, name in self.schema.types if where == domain]
        return list(profile.domains[domain].affinities)


def _read_object(path: Path, repairs: Repairs) -> dict[str, Any]:
    values = read_json(path)
    if not isinstance(values, dict):
        raise DataError(path, f"holds {type(values).__name__}; it must be an object")
    if is_well_formed(values):
        return values
    whole = to_well_formed_value(values)
    repairs[LONE_SURROGATES] += whole != values
    return dict(whole)


def _natural_sort_key(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a sort key with which digits in names compare as numbers."""
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", name))


MAX_TEXTS = 20_000
"""Maximum number of texts of a kind that are kept. If there are more, this number of texts is sampled."""

DECLINED_LABEL = "Prefer not to say"
"""The paper's label for `N/A` in categories that people may decline to answer."""

_DECLINABLE_KEYS = ("ethnicity", "religion")


@dataclass(slots=True)
class PreferenceValues:
    """Frequencies of the values of one preference (a row of tables 8 and 9).

    Attributes:
        type: The schema's entry; `None` if the schema lacks it.
        counts: The number of occurrences of each raw value. Each value of a list counts.
    """

    type: AffinityType | None
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def possible(self) -> int | None:
        """The number of possible values; `None` for a preference with free values."""
        return len(self.type.possible_values) if self.type is not None and self.type.is_categorical else None

    @property
    def generated(self) -> int:
        """The number of different values that occur. For a categorical preference it is at most `possible`."""
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
    """Counts of the data in a release.

    Attributes:
        people: The number of people.
        demographics: The number of people with each value, by key.
        preferences: The values of each preference, by domain and name.
        tasks: The ids of tasks, by domain.
        dialogues: The number of (person, task) pairs, by domain. A pair with several domains counts in each of them.
        pairs: The number of (person, task) pairs with one domain and with several domains.
        texts: The texts written for people, or a sample of these texts, by kind (`summaries`, `intents`).
    """

    people: int = 0
    demographics: dict[str, Counter[str]] = field(default_factory=lambda: {key: Counter() for key in DEMOGRAPHIC_KEYS})
    preferences: dict[tuple[str, str], PreferenceValues] = field(default_factory=dict)
    tasks: dict[str, set[str]] = field(default_factory=dict)
    dialogues: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)
    texts: dict[str, TextSample] = field(
        default_factory=lambda: {"summaries": TextSample(MAX_TEXTS), "intents": TextSample(MAX_TEXTS)}
    )

    @classmethod
    def of(cls, release: PersonaLensRelease) -> Census:
        """Count the data of a release, reading one person at a time.

        Raises:
            DataError: If a file of the release is broken.
        """
        census = cls()
        for user in release.user_ids():
            census._count_person(release, user)
            for task in release.tasks(release.profile(user), user):
                census.pairs[task.kind] += 1
                census.dialogues.update(task.domains)
                for domain in task.domains:
                    census.tasks.setdefault(domain, set()).add(task.id)
                census.texts["intents"].add(task.intent)
        return census

    def _count_person(self, release: PersonaLensRelease, user: str) -> None:
        raw = release.as_written(user)
        self.people += 1
        for key in DEMOGRAPHIC_KEYS:
            value = str(raw["demographics"].get(key, ""))
            self.demographics[key][DECLINED_LABEL if value == "N/A" and key in _DECLINABLE_KEYS else value] += 1
        for domain, preferences in raw["affinities"].items():
            for name, value in preferences.items():
                if (place := (domain, name)) not in self.preferences:
                    known = release.schema.types.get(place) if release.schema is not None else None
                    self.preferences[place] = PreferenceValues(known)
                self.preferences[place].counts.update(map(str, value if isinstance(value, list) else [value]))
        for text in filter(None, raw["interactions"].values()):
            self.texts["summaries"].add(text)

    def rows(self) -> Iterator[tuple[str, str, PreferenceValues]]:
        """Yield the preferences by domain and name, in the order of the files."""
        found = sorted(self.preferences.items(), key=lambda item: item[0][0])
        yield from ((domain, name, values) for (domain, name), values in found)

"""The reader of PersonaLens profiles in the release's layout; irregularities are repaired or kept, and counted.

Layout: `data/profile/<user>/{profile,tasks,tasks_md}.json` and, optionally, `res/schema.json`. People are read one at a
time, so memory does not grow with the size of the release.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dialoom.errors import first_problem
from dialoom.inputs import DataError, read_bytes, read_json
from dialoom.text import well_formed_value

from . import mending
from .mending import Mendings
from .profile import DOMAINS, Affinity, AffinitySchema, Demographics, Domain, Profile, Situation, Task

Validated = TypeVar("Validated", bound=BaseModel)

_PROFILE_KEYS = ("affinities", "demographics", "interests", "interactions")


def samples() -> PersonaLensRelease:
    """Return the release of sample people that dialoom ships."""
    return PersonaLensRelease(Path(__file__).parent / "samples")


class PersonaLensRelease:
    """A folder in the release's layout.

    Attributes:
        root: The folder that holds `data/profile`.
        schema: The affinity schema, if the release has one.
        mendings: The repairs so far; complete once everything wanted has been read.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mendings = Mendings()
        self._profiles = root / "data" / "profile"
        if not self._profiles.is_dir():
            raise DataError(root, "holds no data/profile folder; give the folder of a PersonaLens release")
        schema = root / "res" / "schema.json"
        self.schema = AffinitySchema.read(schema) if schema.exists() else None
        own = [domain for domain, _ in self.schema.types] if self.schema is not None else []
        self._domain_names = tuple(dict.fromkeys((*own, *DOMAINS)))

    def user_ids(self) -> list[str]:
        """Return the ids of all people, `user2` before `user10`."""
        folders = (path.name for path in self._profiles.iterdir() if path.is_dir())
        ids = sorted(folders, key=_natural)
        if not ids:
            raise DataError(self._profiles, "holds no folder of a user, such as user1/profile.json")
        return ids

    def as_written(self, user_id: str) -> dict[str, Any]:
        """Return one person's file unchanged, except for stray characters in the names of domains.

        Raises:
            DataError: If the person does not exist or the file is broken.
        """
        path = self._profiles / user_id / "profile.json"
        values = self._read(path)
        by_domain = {key: self._by_domain(path, key, values[key]) for key in _PROFILE_KEYS if key != "demographics"}
        return {**values, **by_domain}

    def profile(self, user_id: str) -> Profile:
        """Return one person's profile.

        Raises:
            DataError: If the person does not exist or the file is broken.
        """
        path = self._profiles / user_id / "profile.json"
        values = self._read(path)
        demographics = _validated(Demographics, values["demographics"], path, "demographics")
        self._count_untold(demographics)
        profile = Profile(demographics=demographics, domains=self._domains(path, values))
        if not read_bytes(path).isascii() or not json.dumps(values, ensure_ascii=False).isascii():
            self.mendings[mending.NON_ASCII] += 1
        return profile

    def tasks(self, profile: Profile, user_id: str | None = None) -> Iterator[Task]:
        """Yield a person's tasks in the files' order, single-domain tasks first.

        Raises:
            DataError: If a file is broken, or a task needs a domain that the profile lacks.
        """
        folder = self._profiles / (user_id or profile.user_id)
        paths = [path for path in (folder / "tasks.json", folder / "tasks_md.json") if path.exists()]
        if not paths:
            raise DataError(folder, "holds neither tasks.json nor tasks_md.json")
        for path in paths:
            for key, value in _read_object(path, self.mendings).items():
                task = _validated(Task, value, path, key)
                if self._is_eligible(task, profile, path):
                    self._count(task, profile)
                    yield task

    def _read(self, path: Path) -> dict[str, Any]:
        values = _read_object(path, self.mendings)
        for key in _PROFILE_KEYS:
            if not isinstance(values.get(key), dict):
                raise DataError(path, f"{key!r} is {_what(values, key)}; a profile has an object there")
        return values

    def _domains(self, path: Path, values: Mapping[str, Any]) -> dict[str, Domain]:
        affinities, interests, interactions = (
            self._by_domain(path, section, values[section]) for section in ("affinities", "interests", "interactions")
        )
        domains: dict[str, Domain] = {}
        for name, preferences in affinities.items():
            if not isinstance(preferences, dict):
                raise DataError(path, f"affinities of {name!r} are {preferences!r}; they are an object")
            mask, summary = interests.get(name, 0), interactions.get(name, "")
            if mask not in (0, 1):
                raise DataError(path, f"interests of {name!r} are {mask!r}; they are 0 or 1")
            if not isinstance(summary, str):
                raise DataError(path, f"interactions of {name!r} are {summary!r}; they are text")
            domains[name] = Domain(
                affinities=self._affinities(path, name, preferences), summary=summary, of_interest=bool(mask)
            )
        return domains

    def _by_domain(self, path: Path, section: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the section keyed by canonical domain names."""
        mended: dict[str, Any] = {}
        for key, value in values.items():
            name = mending.domain_name(key, self._domain_names)
            if name != key:
                self.mendings[mending.STRAY_KEY] += 1
            if name in mended:
                raise DataError(path, f"{section} has {name!r} twice (once as {key!r})")
            mended[name] = value
        return mended

    def _affinities(self, path: Path, domain: str, values: Mapping[str, Any]) -> dict[str, Affinity]:
        kept: dict[str, Affinity] = {}
        for name, value in values.items():
            texts = value if isinstance(value, list) else [value]
            if not all(isinstance(text, str) for text in texts):
                raise DataError(path, f"affinity {name!r} of {domain!r} is {value!r}; it is text or a list of texts")
            told = [text.strip() for text in texts if text.strip() and not mending.is_withheld(text)]
            withheld = sum(mending.is_withheld(text) for text in texts)
            self.mendings[mending.WITHHELD] += withheld
            if not told:
                self.mendings[mending.EMPTY] += not withheld
                continue
            kept[name] = tuple(told) if isinstance(value, list) else told[0]
            if self.schema is not None:
                self.mendings[mending.OUTSIDE] += self.schema.outside(domain, name, kept[name])
        return kept

    def _is_eligible(self, task: Task, profile: Profile, path: Path) -> bool:
        """Return whether a task has no masked domain (section 2.2 of the paper)."""
        for name in task.domains:
            if name not in profile.domains:
                raise DataError(path, f"task {task.id!r} needs the domain {name!r}, which the profile lacks")
        if all(profile.domains[name].of_interest for name in task.domains):
            return True
        self.mendings[mending.MASKED_TASK] += 1
        return False

    def _count(self, task: Task, profile: Profile) -> None:
        names = [name for domain in task.domains for name in self._known_affinities(domain, profile)]
        for name in task.relevant_affinities:
            _, kind = mending.resolve_affinity(name, names)
            if kind is not None:
                self.mendings[kind] += 1
        situation = task.situation
        self._count_untold(situation)
        self.mendings[mending.FREE_SITUATION] += mending.free_form(
            situation.device, situation.day_of_week, situation.time_of_day
        )

    def _count_untold(self, told: Demographics | Situation) -> None:
        self.mendings[mending.UNTOLD] += sum(mending.is_untold(value) for value in told.model_dump().values())

    def _known_affinities(self, domain: str, profile: Profile) -> list[str]:
        """Return the names of a domain's affinities in the schema, or in the profile if there is no schema."""
        if self.schema is not None:
            return [name for where, name in self.schema.types if where == domain]
        return list(profile.domains[domain].affinities)


def _read_object(path: Path, mendings: Mendings) -> dict[str, Any]:
    values = read_json(path)
    if not isinstance(values, dict):
        raise DataError(path, f"holds {type(values).__name__}; an object is needed")
    whole = well_formed_value(values)
    mendings[mending.HALVES] += whole != values
    return dict(whole)


def _validated(model: type[Validated], value: Any, path: Path, key: str) -> Validated:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        place, message, found = first_problem(error)
        where = f"{key}.{place}" if place else key
        raise DataError(path, f"{where!r} is {found!r:.80}: {message}") from error


def _what(values: Mapping[str, Any], key: str) -> str:
    return "missing" if key not in values else f"{values[key]!r:.60}"


def _natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a sort key under which digits in names compare as numbers."""
    parts = re.split(r"(\d+)", name)
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts)

"""A source that is being written: what models have made so far, in files that people read, accept and mend."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from dialoom.inputs import DataError
from dialoom.personas.pools.files import content_id

from ..flows import Preference, Resident
from ..tools import Value
from .reading import read_lines
from .source import META, ApolloMeta, ApolloUser, PastCall, PreferenceForm, QueryKind, Speech

DraftKind = Literal["users", "preferences", "sessions", "queries"]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Of = TypeVar("Of", bound="ApolloDraft")


class ApolloDraft(BaseModel):
    """A piece of a source in the making: a line of a file.

    Attributes:
        id: Its name.
        user: Whose it is.
        accepted: Whether somebody has found it right. Then no model is asked about it; rules are gone by as ever.
        problem: What is wrong with it, if it is out.
        checked: What it was when it was last looked at: whoever changes it changes what it would be now.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    about_itself: ClassVar[frozenset[str]] = frozenset({"accepted", "problem", "checked"})
    id: Text
    user: Text
    accepted: bool = False
    problem: str = ""
    checked: str = ""

    @property
    def own_id(self) -> str:
        """What `checked` is if nobody has changed it since."""
        return digest(self.model_dump(mode="json", exclude=set(self.about_itself)))

    @property
    def is_sound(self) -> bool:
        """Whether it has passed all checks as it is."""
        return not self.problem and self.checked == self.own_id

    @property
    def is_mended(self) -> bool:
        """Whether somebody has changed it, or has accepted what was out."""
        return self.checked != self.own_id or (self.accepted and bool(self.problem))

    def looked_at(self: Of, problem: str = "") -> Of:
        """Itself after all checks."""
        return self.model_copy(update={"problem": problem, "checked": self.own_id})


class UserDraft(ApolloDraft):
    """Somebody who has an assistant; the keys are those of `ApolloUser`."""

    name: Text
    gender: Text
    age: int = Field(ge=16, le=99)
    persona: Text
    city: Text
    home: Text
    work: Text

    @property
    def resident(self) -> Resident:
        """Where they live and work."""
        return Resident(self.city, self.home, self.work)

    def person(self) -> ApolloUser:
        """Who it is."""
        mine = self.model_dump(include={"id", "name", "gender", "age", "persona", "city", "home", "work"})
        return ApolloUser(**mine, interests={})


class RequestSlots(BaseModel):
    """What two requests say for one preference: in whose session it is told, and the later one."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    told: dict[str, Value]
    asked: dict[str, Value]


class PreferenceSet(BaseModel):
    """What a user wanted of a flow for a time.

    Attributes:
        values: The value of every facet.
        order: The flow's lookups in the order in which they are made.
        story: How it came about, in a sentence or two.
        requests: What is asked when; drawn, and drawn anew if the values change.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    values: dict[str, Value]
    order: tuple[str, ...]
    story: Text
    requests: tuple[RequestSlots, ...] = ()


class PreferencesDraft(ApolloDraft):
    """The preferences that a user has had for a flow, one after the other.

    Attributes:
        flow: Its name.
        sets: The preferences.
        requests_for: What their requests were drawn for.
    """

    about_itself: ClassVar[frozenset[str]] = ApolloDraft.about_itself | {"requests_for"}
    flow: Text
    sets: tuple[PreferenceSet, ...]
    requests_for: str = ""

    @property
    def own_id(self) -> str:
        """As of any draft; what is drawn is no part of it."""
        return digest([self.id, [each.model_dump(mode="json", exclude={"requests"}) for each in self.sets]])

    def preferences(self) -> list[Preference]:
        """They alone."""
        return [Preference(self.flow, each.values, each.order) for each in self.sets]

    def drawn_for(self, resident: Resident, count: int) -> str:
        """What `requests_for` is if the requests are for these preferences, somebody who lives there, and so many."""
        return digest([[[each.values, each.order] for each in self.sets], resident, count])


class SessionDraft(ApolloDraft):
    """A past session.

    Attributes:
        about: What it was written for: with other preferences it is of no use any more.
        form: How it tells a preference; none if it tells none.
        turns: In order; outputs are what the tools really say.
    """

    about: str = ""
    form: PreferenceForm | None = None
    turns: tuple[PastCall | Speech, ...] = ()


class QueryDraft(ApolloDraft):
    """A later query.

    Attributes:
        about: As a session's.
        kind: Who speaks: the user, or somebody who tells of them.
        query: Its words.
        verified: How many answers without the history were not the right ones.
    """

    about_itself: ClassVar[frozenset[str]] = ApolloDraft.about_itself | {"verified"}
    about: str = ""
    kind: QueryKind
    query: Text
    verified: int = 0


DRAFTS: Mapping[DraftKind, type[ApolloDraft]] = {
    "users": UserDraft,
    "preferences": PreferencesDraft,
    "sessions": SessionDraft,
    "queries": QueryDraft,
}
"""Kinds of drafts; their file is called so, with `.jsonl`."""


class UserDrafts(BaseModel):
    """All drafts of a user, by kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    users: tuple[UserDraft, ...] = ()
    preferences: tuple[PreferencesDraft, ...] = ()
    sessions: tuple[SessionDraft, ...] = ()
    queries: tuple[QueryDraft, ...] = ()

    def of(self, kind: DraftKind) -> tuple[ApolloDraft, ...]:
        """Those of a kind."""
        found: tuple[ApolloDraft, ...] = getattr(self, kind)
        return found

    def all(self) -> list[ApolloDraft]:
        """All of them."""
        return [draft for kind in DRAFTS for draft in self.of(kind)]


class DraftsMeta(ApolloMeta):
    """What drafts were made with.

    Attributes:
        flows: What preferences are for.
        pairs: For each preference.
        errands: Sessions about each unrelated tool.
    """

    maker: Literal["scripted", "written"] = "written"
    flows: tuple[str, ...]
    pairs: int
    errands: int


def read_drafts(folder: Path) -> tuple[DraftsMeta, dict[str, UserDrafts]]:
    """What a folder of drafts was made with, and the drafts by user, in the order of `users.jsonl`.

    Other files than this one and that of the meta may be missing.

    Raises:
        DataError: If there are no users, a line is of another form, or is of a user that is not there.
    """
    ((_, meta),) = read_lines(folder / META, DraftsMeta)[:1]
    found: dict[str, dict[DraftKind, list[ApolloDraft]]] = {}
    for kind, model in DRAFTS.items():
        path = folder / f"{kind}.jsonl"
        if kind != "users" and not path.exists():
            continue
        for line, draft in read_lines(path, model):
            if kind == "users":
                found[draft.id] = {each: [] for each in DRAFTS}
            if draft.user not in found or (kind == "users" and draft.user != draft.id):
                raise DataError(path, f"{draft.id}: there is no user {draft.user!r} in users.jsonl", line)
            found[draft.user][kind].append(draft)
    return meta, {user: UserDrafts.model_validate(drafts) for user, drafts in found.items()}


def digest(value: Any) -> str:
    """Twelve hex digits that follow from plain values."""
    return content_id(json.dumps(value, ensure_ascii=False, sort_keys=True))

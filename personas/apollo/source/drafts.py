"""Drafts of a source: the models' output so far, in files that people can review, accept and edit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field, StringConstraints

from dialoom.inputs import DataError, Record
from dialoom.personas.apollo.calls import Value
from dialoom.personas.pools import content_id

from ..flows import Preference, Resident
from .source import META, ApolloMeta, ApolloUser, PastCall, PreferenceForm, QueryKind, Speech, read_lines

DraftKind = Literal["users", "preferences", "sessions", "queries"]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Of = TypeVar("Of", bound="ApolloDraft")


class ApolloDraft(Record):
    """A draft of one part of a source, stored as a line of a file.

    Attributes:
        id: The draft's id.
        user: The id of its user.
        accepted: Whether a person has approved the draft. Checks by models are then skipped, but rules still apply.
        problem: The reason why the draft was rejected; empty if it was not.
        checked: The value of `own_id` at the last check. A different current value means that the draft was edited.
    """

    about_itself: ClassVar[frozenset[str]] = frozenset({"accepted", "problem", "checked"})
    id: Text
    user: Text
    accepted: bool = False
    problem: str = ""
    checked: str = ""

    @property
    def own_id(self) -> str:
        """The hash of the draft's content. It equals `checked` unless the draft was edited after its last check."""
        return digest(self.model_dump(mode="json", exclude=set(self.about_itself)))

    @property
    def is_sound(self) -> bool:
        """Return whether the draft's current content has passed all checks."""
        return not self.problem and self.checked == self.own_id

    @property
    def is_edited(self) -> bool:
        """Return whether a person has edited the draft, or accepted it after a rejection."""
        return self.checked != self.own_id or (self.accepted and bool(self.problem))

    def reviewed(self: Of, problem: str = "") -> Of:
        """Return the draft with the result of its checks."""
        return self.model_copy(update={"problem": problem, "checked": self.own_id})


class UserDraft(ApolloDraft):
    """A draft of a user of an assistant. The keys are those of `ApolloUser`."""

    name: Text
    gender: Text
    age: int = Field(ge=16, le=99)
    persona: Text
    city: Text
    home: Text
    work: Text

    @property
    def resident(self) -> Resident:
        """The user's city, home and work."""
        return Resident(self.city, self.home, self.work)

    def person(self) -> ApolloUser:
        """Return the user without the draft's own fields."""
        data = self.model_dump(include={"id", "name", "gender", "age", "persona", "city", "home", "work"})
        return ApolloUser(**data, interests={})


class RequestSlots(Record):
    """The slots of two requests for one preference: the request whose session states it, and a later request."""

    told: dict[str, Value]
    asked: dict[str, Value]


class PreferenceSet(Record):
    """A preference of a user for a flow during a period.

    Attributes:
        values: The value of every facet.
        order: The flow's lookups in the order in which they are made.
        story: The reason for the preference, in a sentence or two.
        requests: The drawn requests. They are drawn again if the values change.
    """

    values: dict[str, Value]
    order: tuple[str, ...]
    story: Text
    requests: tuple[RequestSlots, ...] = ()


class PreferencesDraft(ApolloDraft):
    """A draft of the successive preferences of a user for a flow.

    Attributes:
        flow: The flow's name.
        sets: The preferences.
        requests_for: The hash of the inputs from which the requests were drawn.
    """

    about_itself: ClassVar[frozenset[str]] = ApolloDraft.about_itself | {"requests_for"}
    flow: Text
    sets: tuple[PreferenceSet, ...]
    requests_for: str = ""

    @property
    def own_id(self) -> str:
        """The hash of the draft's content, without the drawn requests."""
        return digest([self.id, [each.model_dump(mode="json", exclude={"requests"}) for each in self.sets]])

    def preferences(self) -> list[Preference]:
        """Return the preferences without the draft's other fields."""
        return [Preference(self.flow, each.values, each.order) for each in self.sets]

    def drawn_for(self, resident: Resident, count: int) -> str:
        """Return the value of `requests_for` for these preferences, given a resident and a number of requests."""
        return digest([[[each.values, each.order] for each in self.sets], resident, count])


class SessionDraft(ApolloDraft):
    """A draft of a past session.

    Attributes:
        about: The hash of the inputs from which the session was written. If preferences change, the session becomes
            obsolete.
        form: The form in which the session states a preference; None if it states none.
        turns: The turns in order. Outputs are the tools' real results.
    """

    about: str = ""
    form: PreferenceForm | None = None
    turns: tuple[PastCall | Speech, ...] = ()


class QueryDraft(ApolloDraft):
    """A draft of a query that is asked after the sessions.

    Attributes:
        about: The hash of the inputs from which the query was written, as in `SessionDraft`.
        kind: The speaker: the user (`reactive`), or an observer who describes the user (`proactive`).
        query: The text.
        verified: The number of answers that were given without the history. All of them were wrong, as is required,
            because the query must depend on the history.
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
"""The kinds of drafts. The file of a kind has the kind's name and the suffix `.jsonl`."""


class UserDrafts(Record):
    """All drafts of a user, by kind."""

    users: tuple[UserDraft, ...] = ()
    preferences: tuple[PreferencesDraft, ...] = ()
    sessions: tuple[SessionDraft, ...] = ()
    queries: tuple[QueryDraft, ...] = ()

    def of(self, kind: DraftKind) -> tuple[ApolloDraft, ...]:
        """Return the drafts of a kind."""
        found: tuple[ApolloDraft, ...] = getattr(self, kind)
        return found

    def all(self) -> list[ApolloDraft]:
        """Return all drafts."""
        return [draft for kind in DRAFTS for draft in self.of(kind)]


class DraftsMeta(ApolloMeta):
    """The settings with which drafts were made.

    Attributes:
        flows: The flows of the preferences.
        pairs: The number of pairs per preference.
        errands: The number of sessions per unrelated tool.
    """

    maker: Literal["scripted", "written"] = "written"
    flows: tuple[str, ...]
    pairs: int
    errands: int


_USER = re.compile(r"u\d+", re.ASCII)


def read_drafts(folder: Path) -> tuple[DraftsMeta, dict[str, UserDrafts]]:
    """Read a folder's settings, and its drafts by user, in the order of `users.jsonl`.

    Only the settings and `users.jsonl` are required; the files of other drafts may be missing.

    Raises:
        DataError: If there are no users, or a line is invalid, has a wrong id or refers to an unknown user.
    """
    ((_, meta),) = read_lines(folder / META, DraftsMeta)[:1]
    found: dict[str, dict[DraftKind, list[ApolloDraft]]] = {}
    for kind, model in DRAFTS.items():
        path = folder / f"{kind}.jsonl"
        if kind != "users" and not path.exists():
            continue
        for line, draft in read_lines(path, model):
            if kind == "users":
                if not _USER.fullmatch(draft.id):
                    raise DataError(
                        path, f"{draft.id!r} is not the id of a user: give u and a number, such as u01", line
                    )
                found[draft.id] = {each: [] for each in DRAFTS}
            if draft.user not in found or (kind == "users" and draft.user != draft.id):
                raise DataError(path, f"{draft.id}: there is no user {draft.user!r} in users.jsonl", line)
            found[draft.user][kind].append(draft)
    return meta, {user: UserDrafts.model_validate(drafts) for user, drafts in found.items()}


def digest(value: Any) -> str:
    """Return a hash of plain values, with twelve hex digits."""
    return content_id(json.dumps(value, ensure_ascii=False, sort_keys=True))

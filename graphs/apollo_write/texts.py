"""What was written of a source, for the gate: texts that nobody says, and sessions, in which others speak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dialoom.graphs.gate.talk import Facts, Said, Talk
from dialoom.personas.apollo.source import Speech
from dialoom.personas.apollo.source.drafts import (
    DRAFTS,
    ApolloDraft,
    PreferencesDraft,
    QueryDraft,
    SessionDraft,
    UserDraft,
)

from .making import Rows
from .scenario import WriteScenario

_WRITER = "writer"


def written_talks(scenario: WriteScenario, drafts: Mapping[str, Rows], facts: Facts) -> Iterator[Talk]:
    """The texts of each draft that is not out, and each session; drafts that were given, and stayed so, are left out.

    Requests of the same occasion may well be in the same words, so texts are compared within a draft alone.

    Args:
        scenario: Whose source it is, with the drafts that were given.
        drafts: By kind and id, as plain values.
        facts: What the gate should know.
    """
    given = {(draft.id, draft.own_id) for draft in scenario.drafts.all()}
    found = [type_.model_validate(row) for kind, type_ in DRAFTS.items() for row in drafts[kind].values()]
    for draft in found:
        if draft.problem or (draft.id, draft.own_id) in given:
            continue
        if isinstance(draft, SessionDraft):
            yield Talk(_said(draft), facts, author=_WRITER)
        else:
            yield Talk.of_texts(_WRITER, _texts(draft), facts)


def _said(draft: SessionDraft) -> list[Said]:
    turns = enumerate(draft.turns, start=1)
    return [
        Said(turn.speaker, turn.text, where=f"{draft.id}, turn {place}")
        for place, turn in turns
        if isinstance(turn, Speech)
    ]


def _texts(draft: ApolloDraft) -> dict[str, str]:
    """What stands in a draft and nobody says, by its place."""
    match draft:
        case UserDraft():
            return {f"{draft.id}, persona": draft.persona}
        case PreferencesDraft():
            return {f"{draft.id}, story {place}": each.story for place, each in enumerate(draft.sets, start=1)}
        case QueryDraft():
            return {f"{draft.id}, query": draft.query}
        case _:
            return {}

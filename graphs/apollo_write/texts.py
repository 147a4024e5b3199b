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
    """All texts of what is not out in one, and each session; drafts that were given, and stayed so, are somebody's own.

    Args:
        scenario: Whose source it is, with the drafts that were given.
        drafts: By kind and id, as plain values.
        facts: What the gate should know.
    """
    given = {(draft.id, draft.own_id) for draft in scenario.drafts.all()}
    found = [type_.model_validate(row) for kind, type_ in DRAFTS.items() for row in drafts[kind].values()]
    left = [draft for draft in found if not draft.problem]
    own = [draft for draft in left if (draft.id, draft.own_id) in given]
    made = [draft for draft in left if (draft.id, draft.own_id) not in given]
    texts = {where: text for draft in [*own, *made] for where, text in _texts(draft)}
    since = sum(len(_texts(draft)) for draft in own)
    if len(texts) > since:
        yield Talk.of_texts(_WRITER, texts, facts, since)
    for draft in made:
        if isinstance(draft, SessionDraft):
            turns = enumerate(draft.turns, start=1)
            said = [
                Said(turn.speaker, turn.text, where=f"{draft.id}, turn {place}")
                for place, turn in turns
                if isinstance(turn, Speech)
            ]
            yield Talk(said, facts, author=_WRITER)


def _texts(draft: ApolloDraft) -> list[tuple[str, str]]:
    """What stands in a draft and nobody says, by its place."""
    match draft:
        case UserDraft():
            return [(f"{draft.id}, persona", draft.persona)]
        case PreferencesDraft():
            return [(f"{draft.id}, story {place}", each.story) for place, each in enumerate(draft.sets, start=1)]
        case QueryDraft():
            return [(f"{draft.id}, query", draft.query)]
        case _:
            return []

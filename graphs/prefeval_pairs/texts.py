"""What was written of pairs, for the gate: the texts of each one, and the talks in which it is told."""

from __future__ import annotations

from collections.abc import Iterator

from dialoom.graphs.gate.talk import Facts, Said, Talk
from dialoom.personas.preferences import Draft, Form

_WRITER = "writer"


def written_talks(draft: Draft, place: str, facts: Facts, is_given: bool) -> Iterator[Talk]:
    """A pair's texts, then its talks, which a writer made up and in which nobody spoke.

    Args:
        draft: The pair.
        place: What it is called.
        facts: What the gate should know.
        is_given: Whether preference and question are somebody's own: then they are only what nothing should copy.
    """
    own = {"preference": draft.preference, "question": draft.question}
    made = {"earlier preference": draft.conflicting_preference}
    options = draft.classification_task_options or ()
    answers = {f"option {number}": text for number, text in enumerate(options, start=1)}
    texts = {f"{place}, {name}": text for name, text in (own | made | answers).items() if text}
    since = len(own) if is_given else 0
    if len(texts) > since:
        yield Talk.of_texts(_WRITER, texts, facts, since)
    forms: tuple[Form, ...] = ("choice", "persona")
    for form in forms:
        lines = draft.pair(form, 0).talk
        said = [
            Said(line.speaker, line.content, where=f"{place}, {form} {at}") for at, line in enumerate(lines, start=1)
        ]
        if said:
            yield Talk(said, facts, author=_WRITER)

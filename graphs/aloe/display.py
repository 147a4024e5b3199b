"""A tree as people read it: each round's message, both replies, which was followed, and what was induced."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting.outline import Outline, Span

from .nodes import PREFERRED, REJECTED, Round, first_path

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?]+(?=\s|$)|$|(?=\n))")
_PRONOUN = re.compile(r"\b(?:he|she|they|his|hers?|him|their|them|himself|herself|themselves)\b|/", re.IGNORECASE)
_NAMES = {PREFERRED: "preferred", REJECTED: "rejected"}


def outline(episode: Episode) -> Outline:
    """The whole tree. Rounds of one path stand below each other; at a fork each branch is one step further in."""
    details = episode.outcome.details
    rounds: list[Round] = details.get("rounds", [])
    by_path, shown = {done["path"]: done for done in rounds}, first_path(rounds)
    return Outline([Span(f"the tree of {details['persona']['id']}", "heading")], list(_rounds(by_path, "", shown)))


def sentences(text: str | None) -> list[str]:
    """The sentences of an induced text."""
    return [found.strip() for found in _SENTENCE.findall(text or "") if found.strip()]


def _rounds(by_path: Mapping[str, Round], path: str, shown: str) -> Iterable[Outline]:
    while path in by_path:
        done = by_path[path]
        yield _round(done, by_path.get(path[:-1]) if path else None, shown)
        if len(done["followed"]) > 1:
            for reply in done["followed"]:
                text = f"on from the {_NAMES[reply]} reply"
                heading = Outline([Span(text, "heading")], kind="branch", is_taken=shown.startswith(path + reply))
                heading.parts.extend(_rounds(by_path, path + reply, shown))
                yield heading
            return
        path += done["followed"][0]


def _round(done: Round, before: Round | None, path: str) -> Outline:
    shown = Outline([Span(f"{len(done['path']) + 1}. ", "heading"), Span(done["user"], "user")])
    shown.kind, shown.where, shown.is_taken = "step", done["path"], path.startswith(done["path"])
    for key in ("profile", "personality"):
        shown.parts.append(_induced(key, done, before))
    for reply, name in _NAMES.items():
        is_taken = reply in done["followed"]
        spans = [Span(f"{'→' if is_taken else ' '} {name}: ", "note"), Span(done[name], "assistant")]
        shown.parts.append(Outline(spans, kind="option", is_taken=is_taken))
    if done["verified"] is not None:
        word = "the judge agrees" if done["verified"] else "the judge does not agree"
        shown.parts.append(Outline([Span(word, "note")]))
    return shown


def _induced(key: str, done: Round, before: Round | None) -> Outline:
    """What is known by now, and what of it was not before."""
    known = {_unnamed(sentence) for sentence in sentences(before[f"inferred_{key}"])} if before else set()
    now = sentences(done[f"inferred_{key}"])
    line = Outline([Span(f"  {key}: ", "note")])
    if not now:
        line.spans.append(Span("nothing yet", "note"))
    new = [sentence for sentence in now if _unnamed(sentence) not in known]
    if old := len(now) - len(new):
        line.spans.append(Span(f"{old} known{', new: ' if new else ''}", "note"))
    line.spans += [Span(f"{sentence} ", "new") for sentence in new]
    return line


def _unnamed(sentence: str) -> str:
    """A sentence without its pronouns: it is no news that "He/She" is "She" from now on."""
    return _PRONOUN.sub("", sentence).lower()

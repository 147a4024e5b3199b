"""What was judged, as a digest: a label counts for the conversation that it was given to, and for no other."""

from __future__ import annotations

import json
from hashlib import sha256

from dialoom.graphs import Episode, Judgement, Recipe
from dialoom.graphs.capabilities import WithLabels

from .items import Item

_LENGTH = 16


def digest_of(episode: Episode, recipe: Recipe, item: Item) -> str:
    """The digest of the lines that people read to label an item; the same whatever judges have said of it.

    It is another one when another branch has become the scenario's conversation, or it was played anew, unless what
    the item is about, such as its first turns, is the same there.
    """
    judgements = episode.outcome.judgements
    unsaid = tuple(map(_without_a_word, judgements))
    place = next((place for place, each in enumerate(judgements) if each is item.judgement), None)
    judgement = _without_a_word(item.judgement) if place is None else unsaid[place]
    outcome = episode.outcome.model_copy(update={"judgements": unsaid})
    lines = [[line.role, line.spoken] for line in WithLabels.of(recipe).judged_lines(outcome, judgement)]
    content = json.dumps(lines, ensure_ascii=False).encode("utf-8", "surrogatepass")
    # The word before it keeps spreadsheets from taking it for a number.
    return f"sha256:{sha256(content).hexdigest()[:_LENGTH]}"


def _without_a_word(judgement: Judgement) -> Judgement:
    """That something was judged, and not how: what people are shown of a conversation may quote a judge."""
    return Judgement(metric=judgement.metric, target=judgement.target, turn=judgement.turn, status="unparsed")

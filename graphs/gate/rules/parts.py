"""Who does what: a user who serves, and an assistant who wants to be served."""

from __future__ import annotations

from collections.abc import Iterator

from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.gate.vocabulary import spelt


def swapped_roles(talk: Talk) -> Iterator[DialogueFault]:
    """A user who offers help or calls itself a model; an assistant who asks for what only users ask for.

    What is quoted does not count.
    """
    words = talk.vocabulary
    for line in talk.looked_at():
        pattern = words.offers if line.role == talk.facts.user else words.requests
        if found := pattern.search(spelt(line.own)):
            yield line.fault("swapped_role", found[0], 0.9)

"""What a chat has told so far: the one statement in each line that is worth remembering."""

from __future__ import annotations

import re
from functools import lru_cache

from ..lazy import Lazy
from ..prose import sentences
from .manners import shown_in
from .retold import Told, retold
from .words import telling

_LEAD = Lazy(
    r"^(?:(?:by the way|something else|on another note|what else|that reminds me|and then there's this|"
    r"speaking of which|"
    r"you may not know this yet|you know|anyway|anyhow|well|oh|honestly|so|also|actually|ah|hm+|hey|hi|and|"
    r"but|ok|okay|yes|no)"
    r"[,:;?.!]*\s+|did i (?:ever )?(?:say|mention|tell you)(?: yet| already)?,?(?: that)?\s+|(?:what i told "
    r"you before, that|it came up again today that)\s+|"
    r"(?:i don't think i've|i do not think i have|i haven't|have i|i never) (?:mentioned|said|told you)(?: "
    r"yet| before)?(?: that)?\s+)+",
    re.IGNORECASE,
)
_OPENS = Lazy(
    r"(?:I|I['’]\w+|My|We|We['’]\w+|Our|On|In|At|Every|Each|Most|Some|When|Since|After|Before|While|Once|"
    r"Nobody|Everybody|The|"
    r"Two|Three|Weekends|Sundays|Saturdays|There['’]s|There)\b"
)
_VAGUE = Lazy(r"I(?:'d| would) (?:rather not|have to|say)\b|I (?:suppose|think so|can guess|guess)\b", re.IGNORECASE)
_OWN = Lazy(r"\b(?:I|I['’]\w+|[Mm]y|[Mm]e|[Ww]e|[Oo]ur)\b")
_MOST_WORDS = 26


@lru_cache(maxsize=8192)
def statement_in(line: str) -> Told | None:
    """Give what a line tells about its writer, or nothing if it tells nothing that could be said again."""
    best: tuple[float, str] | None = None
    for at, part in enumerate(sentences(line)):
        bare = _LEAD.sub("", part.replace("’", "'")).strip()
        if _VAGUE.match(bare):
            continue
        asked = part.rstrip().endswith("?") and bare[:1] == part[:1]
        if asked or not _OWN.search(bare) or re.search(r"\b[Yy]ou(?:r|'\w+)?\b", bare):
            continue
        # What comes first is the news; what follows is what its writer thinks of it.
        weight = len(telling(bare)) - 3 * bool(shown_in([part])) - 0.6 * at
        if weight > 0 and (best is None or weight > best[0]):
            best = (weight, bare)
    if best is None:
        return None
    text = best[1].rstrip(".!?")
    text = text[:1].upper() + text[1:]
    if not _OPENS.match(text) or len(text.split()) > _MOST_WORDS:
        return None
    return retold(text)

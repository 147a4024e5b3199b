"""Turn a description of a need ("You have ... Find ...") into what the person would say about it."""

from __future__ import annotations

import re

from .lazy import Lazy
from .prose import sentence, sentences, uncapitalised

# An intent may tell the circumstances first; those sentences do not start with a verb.
_TELLS = Lazy(
    r"(?:You|Your|A|An|The|Some\w*|One|Two|Three|Four|Five|Six|After|It|This|There|Nobody|Everybody|In|On|Next|"
    r"Last)\b"
)
_OBJECT = (
    r"for|to|with|of|like|from|about|on|by|at|than|help|helps|warns?|invited?|bring|brings|tells?|told|leaves?|"
    r"suits?|let|lets|"
    r"joins?|joining|meets?|visits?|asked|owes?|gives?|sends?|past|around"
)
_PLAINER = (
    (r"\s*\bwith the assistant\b,?", ""),
    (r"\bLet the assistant help you\b", "Help me"),
    (r"(?<!put )(?<!get )(?<!come )(?<!back )\btogether\b(?=[.,]|$)", "with me"),
    (r"\bDescribe it vaguely and have it found\b", "Find it"),
)


def first_person(text: str) -> str:
    """Turn `you` and `your` into `I`, `me` and `my`."""
    text = re.sub(r"\b(the \w+) of you\b", r"\1 of us", text)
    text = re.sub(r"\b[Yy]ourself\b", "myself", text)
    text = re.sub(r"\b[Yy]ours\b", "mine", text)
    text = re.sub(r"\bYour\b", "My", re.sub(r"\byour\b", "my", text))
    text = re.sub(r"\byou(?:'re| are)\b", "I'm", re.sub(r"\bYou(?:'re| are)\b", "I'm", text))
    text = re.sub(r"\byou(?: woul|')d like\b", "I'd like", re.sub(r"\bYou(?: woul|')d like\b", "I'd like", text))
    text = re.sub(r"\b[Yy]ou've\b", "I've", text)
    text = re.sub(
        rf"\b({_OBJECT}) you\b(?! (?:have|had|own|want|need|can|like|use|know|do|did|feel|promised)\b)", r"\1 me", text
    )
    return re.sub(r"\b[Yy]ou\b", "I", text)


def is_declarative(intent: str) -> bool:
    """Tell whether an intent begins by telling something, rather than with a request."""
    return bool(_TELLS.match(intent.strip()))


def told(intent: str, most: int = 36) -> list[tuple[str, str]]:
    """Give an intent's sentences as ("tell" | "ask", what the person says); long ones are cut at a comma."""
    for pattern, plain in _PLAINER:
        intent = re.sub(pattern, plain, intent)
    parts: list[tuple[str, str]] = []
    for part in sentences(re.sub(r"\([^)]*\)|\[[^\]]*\]", "", intent)):
        said = first_person(part.rstrip(" .")).strip()
        if len(said.split()) > 20 and ":" in said:
            said = said.split(":")[0]
        while len(said.split()) > 22 and "," in said:
            said = said.rpartition(",")[0]
        kind = "tell" if _TELLS.match(part) else "ask"
        parts.append((kind, said))
    while len(parts) > 1 and sum(len(said.split()) for _, said in parts) > most:
        parts.pop()
    return parts


def as_request(said: str) -> tuple[str, str]:
    """Split a request into the way to lead it in (suggest, please, have or do) and the rest of it."""
    asked = re.match(r"Ask for (.+)", said, re.IGNORECASE)
    if asked:
        return "suggest", asked.group(1)
    if re.match(r"Help me\b", said):
        return "please", said
    have = re.match(
        r"(?:Have|Get) (.+?) (moved|set up|made|written|changed|reserved|exchanged|found|drawn up|put together)\b(.*)",
        said,
    )
    if have and len(have.group(1).split()) < 9:
        return "have", uncapitalised(said)
    return "do", uncapitalised(said)


def spoken(kind: str, said: str) -> str:
    """Make a told circumstance a sentence."""
    return sentence(said) if kind == "tell" else said

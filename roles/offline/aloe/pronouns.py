"""By which pronoun a description calls its person.

The rule: the profile decides, as a personality is drawn for anybody. As long as no line of the person's own tells
whether it is a woman or a man, nobody can know, and `she` is written `he/she`. Descriptions with `they`, `I` or no
pronoun stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .english import ENGLISH, listed
from .retelling import speaker_of

_FORMS: Mapping[str, tuple[str, str, str, str]] = {
    "she": ("she", "her", "her", "herself"),
    "he": ("he", "his", "him", "himself"),
    "he/she": ("he/she", "his/her", "him/her", "himself/herself"),
}
_WORD = re.compile(r"[^\W_]+")


def pronoun_known(profile: str, lines: Iterable[str]) -> str:
    """Give the pronoun by which somebody calls a person who has read nothing but that person's lines."""
    called_by, _ = speaker_of(profile)
    is_told = any(_tells().search(line.replace("’", "'")) for line in lines)
    return called_by if called_by in ("she", "he") and is_told else "he/she"


def called(text: str, whole: str, pronoun: str) -> str:
    """Give a sentence of a whole description with its person called by another pronoun."""
    old, _ = speaker_of(whole)
    if old not in _FORMS or old == pronoun:
        return text
    subject, own, object_, self_ = _FORMS[pronoun]

    def other(found: re.Match[str]) -> str:
        low, behind = found[0].lower(), text[found.end() :]
        after = re.match(r" ([^\W_]+)", behind)
        if low == _FORMS[old][0]:
            new = subject
        elif low == _FORMS[old][3]:
            new = self_
        elif low == _FORMS[old][1] and (old != "she" or (after and after[1].lower() not in listed("not_owned"))):
            new = own
        elif low == _FORMS[old][2]:
            new = object_
        else:
            return found[0]
        return new if found[0].islower() else "/".join(part.capitalize() for part in new.split("/"))

    return _WORD.sub(other, text)


def _tells() -> re.Pattern[str]:
    """Find a line whose writer says to be a woman, or a man."""
    named = "|".join(sorted(listed("gendered")))
    return re.compile(ENGLISH.get("patterns.about_oneself") + rf"(?:{named})\b", re.IGNORECASE)

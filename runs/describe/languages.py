"""Which language a text is in, by its commonest words or its letters."""

from __future__ import annotations

from collections import Counter

from dialoom.graphs.gate.vocabulary import commonest_words, script_of, vocabularies, words_of


def language_of(text: str) -> str | None:
    """The code of the language whose commonest words a text has most of; `None` of one with fewer than three.

    Languages that are written without blanks between words are told by their letters.
    """
    for code, count in commonest_words(words_of(text)).most_common(1):
        if count >= 3:
            return code
    if text.isascii():
        return None
    scripts = Counter(script_of(letter) for letter in text if letter.isalpha() and not letter.isascii())
    script = scripts.most_common(1)[0][0] if scripts else "LATIN"
    return next((code for code, each in vocabularies().items() if script in each.scripts and script != "LATIN"), None)

"""Texts that occur twice, or nearly: within a set, and between a set and others (leakage, contamination)."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialoom.runs.errors import RunError

HOW_TO_INSTALL = 'pip install "dialoom[describe]"'

NEAR = 0.8
"""Texts are near-duplicates if at least this share of their word sequences is in both (Jaccard)."""

SHINGLE = 4
"""Words of a sequence."""

_PERMUTATIONS = 128
_WORD = re.compile(r"[^\W_]+")
_SHOWN = 5


@dataclass(slots=True)
class Duplicates:
    """What was found of one set of texts against another, or within itself.

    Attributes:
        texts: How many were looked at.
        exact: Those that are in the other set word for word (or stood in their own before).
        near: Those of which a near-duplicate is there, but no exact one.
        pairs: The first few, by their ids.
    """

    texts: int = 0
    exact: int = 0
    near: int = 0
    pairs: list[tuple[str, str]] = field(default_factory=list)

    def found(self, text: str, other: str, *, is_exact: bool) -> None:
        """Count one."""
        self.exact += is_exact
        self.near += not is_exact
        if len(self.pairs) < _SHOWN:
            self.pairs.append((text, other))


class TextIndex:
    """Texts by what they say, so that copies of them are found: MinHash with locality-sensitive hashing (datasketch).

    How alike two texts are is estimated from 128 hashes each, with a standard error of at most 0.045.

    Attributes:
        within: What was found among the texts of the set itself.

    Raises:
        RunError: If datasketch is not installed.
    """

    def __init__(self) -> None:
        try:
            self._library: Any = importlib.import_module("datasketch")
        except ModuleNotFoundError as error:
            raise RunError(f"near-duplicates are found by datasketch, which is not installed: {HOW_TO_INSTALL}") from (
                error
            )
        self._lsh = self._library.MinHashLSH(threshold=NEAR, num_perm=_PERMUTATIONS)
        self._hashes: dict[str, Any] = {}
        self._exact: dict[bytes, str] = {}
        self.within = Duplicates()

    def add(self, id_: str, text: str) -> None:
        """A text of the set: looked for among those before it, which it joins if it is another."""
        digest, minhash = self._compared(id_, text, self.within)
        if minhash is not None:
            key = f"{len(self._hashes)} {id_}"
            self._exact[digest], self._hashes[key] = id_, minhash
            self._lsh.insert(key, minhash)

    def look_for(self, id_: str, text: str, found: Duplicates) -> None:
        """A text of another set, looked for in this one."""
        self._compared(id_, text, found)

    def _compared(self, id_: str, text: str, found: Duplicates) -> tuple[bytes, Any]:
        """Count a text; gives what it is known by, its hashes being `None` if it is empty or is there already."""
        found.texts += 1
        words = _words(text)
        digest = _digest(words)
        if not words:
            return digest, None
        if (same := self._exact.get(digest)) is not None:  # it stands for all that are equal to it
            found.found(id_, same, is_exact=True)
            return digest, None
        minhash = self._minhash(words)
        near = [(minhash.jaccard(self._hashes[key]), key) for key in self._lsh.query(minhash)]
        if near and max(near)[0] >= NEAR:
            found.found(id_, max(near)[1].partition(" ")[2], is_exact=False)
        return digest, minhash

    def _minhash(self, words: Sequence[str]) -> Any:
        minhash = self._library.MinHash(num_perm=_PERMUTATIONS)
        minhash.update_batch([" ".join(each).encode() for each in _shingles(words)])
        return minhash


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _digest(words: Sequence[str]) -> bytes:
    return hashlib.blake2b(" ".join(words).encode(), digest_size=16).digest()


def _shingles(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Sequences of four words; a shorter text is one of its own."""
    for start in range(max(1, len(words) - SHINGLE + 1)):
        yield words[start : start + SHINGLE]

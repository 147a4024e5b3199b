"""Shortcuts in preference datasets: features of replies alone that separate chosen from rejected ones."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dialoom.graphs import Estimate, Table
from dialoom.graphs.tables.statistics import MIN_UNITS
from dialoom.grouping import nest_triples

MAX_PEOPLE, MAX_PROMPTS = 300, 20
"""Maximum number of people in a sample, and of prompts for each person."""

_PERSON = ("persona", "person", "user")

Replies = dict[bool, str]
"""The chosen (`True`) and the rejected reply to one prompt; either may be missing."""


class PairSample:
    """A sample of chosen and rejected replies.

    If there are too many people or prompts, those with the lowest hashes are kept. If a prompt has several pairs, the
    first is used.

    Attributes:
        is_partial: Whether people or prompts were left out because there were too many.
    """

    def __init__(self) -> None:
        self._people: dict[str, dict[str, Replies]] = {}
        self.is_partial = False

    def add(self, row: object, person: str | None = None) -> None:
        """Add a row if it has chosen or rejected replies.

        Args:
            row: An object with `chosen` and `rejected`, or with `completion` and `label`, as in TRL.
            person: The person that the replies are for; by default the row's `persona`, `person` or `user`, or else its
                `id`. Rows without any of them are for the same person if their conversations begin with the same
                message.
        """
        if not isinstance(row, Mapping) or (found := _replies(row)) is None:
            return
        prompt, replies = found
        prompts = self._place(self._people, _person(row, prompt) if person is None else person, MAX_PEOPLE)
        known = None if prompts is None else self._place(prompts, prompt, MAX_PROMPTS)
        if known is not None:
            known.update({label: text for label, text in replies.items() if label not in known})

    def people(self) -> list[list[Replies]]:
        """Return the replies for each person; people are ordered by their prompts' lowest hash."""
        return [
            [prompts[key] for key in sorted(prompts)]
            for prompts in sorted(self._people.values(), key=lambda prompts: min(prompts))
        ]

    def _place(self, places: dict[str, Any], key: object, most: int) -> Any:
        """Return the entry of a key, created if the key's hash is among the lowest; `None` if it is not among them."""
        hash_ = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()
        places.setdefault(hash_, {})
        if len(places) > most:
            self.is_partial = True
            del places[max(places)]
        return places.get(hash_)


def _replies(row: Mapping[str, Any]) -> tuple[list[Any], Replies] | None:
    """Return a row's prompt and replies; `None` if it has no such replies."""
    chosen, rejected, completion = (row.get(key) for key in ("chosen", "rejected", "completion"))
    if isinstance(chosen, str | list) and isinstance(rejected, str | list):
        shared = 0  # message count of the prompt, if both replies are whole conversations
        if isinstance(chosen, list) and isinstance(rejected, list):
            both = zip(chosen[:-1], rejected[:-1], strict=False)
            shared = sum(1 for _ in itertools.takewhile(lambda each: each[0] == each[1], both))
        return [row.get("prompt"), *chosen[:shared]], {True: _text(chosen[shared:]), False: _text(rejected[shared:])}
    if isinstance(completion, str | list) and isinstance(row.get("label"), bool):
        return [row.get("prompt")], {row["label"]: _text(completion)}
    return None


def _text(reply: str | list[Any]) -> str:
    """Return the text of a reply, which is a string or a list of messages."""
    if isinstance(reply, str):
        return reply
    return "\n".join(str(each.get("content") or "") for each in reply if isinstance(each, Mapping))


def _person(row: Mapping[str, Any], prompt: list[Any]) -> object:
    """Return the person that a row is for or, if unknown, the row's id or its conversation's first message."""
    for place in (row.get("facets"), row):
        if isinstance(place, Mapping):
            for name in _PERSON:
                if isinstance(place.get(name), str):
                    return place[name]
    if "id" in row:
        return row["id"]
    first = next((each for each in prompt if each), None)
    return first[0] if isinstance(first, list) else first


WARNING_AUC = 0.65
"""AUC above which there is a warning."""

MIN_PEOPLE_FOR_WORDS = 20
"""Minimum number of people for which the classifier of words is estimated."""


def shortcut_table(sample: PairSample) -> Table | None:
    """Return a table of how well length, punctuation and words separate a sample's replies; `None` without replies."""
    people = sample.people()
    if not people:
        return None
    table = Table("shortcuts", "What separates chosen from rejected replies", ["by", "AUC", "same prompt"])
    warned = []
    for name, features, fewest in (
        ("length", lengths, MIN_UNITS),
        ("punctuation", punctuation, MIN_UNITS),
        ("words", words, MIN_PEOPLE_FOR_WORDS),
    ):
        found = measure_separation(people, features) if len(people) >= fewest else (None, None)
        table.rows.append([name, *found])
        if any(each is not None and each.mean > WARNING_AUC for each in found):
            warned.append(name)
    if warned:
        table.notes.append(
            "Warning: chosen and rejected replies can be told apart without knowing the person, by "
            f"{', '.join(warned)} (above {WARNING_AUC}). A model trained on these pairs can learn that instead of a "
            "person's preferences."
        )
    if len(people) < MIN_PEOPLE_FOR_WORDS:
        table.notes.append(
            f"The classifier of words cannot be estimated with {len(people)} people; it needs {MIN_PEOPLE_FOR_WORDS}, "
            f"and length and punctuation {MIN_UNITS}."
        )
    table.notes.append(
        "AUC: the probability that a chosen reply scores higher than a rejected one; 0.5 if nothing separates them. "
        "Same prompt: the share of prompts whose chosen reply scores higher. The score is a regularised linear "
        f"discriminant of the reply alone, without prompt or person, cross-validated by person in {FOLDS} folds: no "
        "person is in both train and test. Length: numbers of characters and words. Punctuation: shares of kinds of "
        f"marks, emoji and line breaks among all characters. Words: which of the {MAX_WORDS} commonest occur. "
        "In brackets: 95 % intervals, clustered by person; n: replies, and prompts."
    )
    if sample.is_partial:
        table.notes.append(
            f"At most {MAX_PEOPLE} people and {MAX_PROMPTS} prompts for each person are compared, chosen by hash."
        )
    return table


FOLDS = 10
MAX_WORDS = 500

_Z = 1.959963984540054
"""The normal distribution's quantile of 0.975."""

_DECIMALS = 9
"""Number of decimals by which scores are compared; smaller differences are rounding errors."""

_MIN_SPREAD = 1e-9
"""Maximum standard deviation of a feature that counts as constant, which allows for rounding."""

_WORD = re.compile(r"[぀-ヿ㐀-鿿฀-๿]|[^\W_]+(?:['’][^\W_]+)*")  # in scripts without spaces, each character is a word
_MARKS = [
    re.compile(mark)
    for mark in (r"\.", ",", "!", r"\?", "[:;]", "…", "[-–—]", "[()]", '["“”„«»]', "[*_#`~|]", r"\n", r"[^\w\s!-~]")
]

Matrix: TypeAlias = NDArray[np.float64]


def lengths(texts: Sequence[str]) -> Matrix:
    """Return the logarithms of each text's numbers of characters and of words, plus one; a row per text."""
    counts: Matrix = np.array([[len(text), len(text.split())] for text in texts], dtype=float)
    return np.log1p(counts)


def punctuation(texts: Sequence[str]) -> Matrix:
    """Return the shares of each kind of mark among each text's characters; a row per text."""
    return np.array([[len(mark.findall(text)) / (len(text) or 1) for mark in _MARKS] for text in texts])


def words(texts: Sequence[str]) -> Matrix:
    """Return 0 or 1 for each of the commonest words, depending on whether it occurs in the text; a row per text."""
    found = [frozenset(_WORD.findall(text.lower())) for text in texts]
    counts = Counter(word for each in found for word in each)
    commonest = sorted(counts, key=lambda word: (-counts[word], word))[:MAX_WORDS]
    places = {word: place for place, word in enumerate(commonest)}
    matrix = np.zeros((len(texts), len(places)))
    for number, each in enumerate(found):
        matrix[number, [places[word] for word in each if word in places]] = 1
    return matrix


def measure_separation(
    people: Sequence[Sequence[Mapping[bool, str]]], features: Callable[[Sequence[str]], Matrix]
) -> tuple[Estimate | None, Estimate | None]:
    """Return the cross-validated AUC, and the share of prompts whose chosen reply scores higher (ties count half).

    Args:
        people: For each person, the chosen (`True`) and the rejected reply by prompt. A person's replies are all in the
            same fold.
        features: A function from texts to a row of features per text.
    """
    replies = [
        (text, label, person, prompt)
        for person, prompts in enumerate(people)
        for prompt, each in enumerate(prompts)
        for label, text in sorted(each.items())
    ]
    is_chosen, person = (np.array([reply[place] for reply in replies]) for place in (1, 2))
    scores = _scores(features([reply[0] for reply in replies]), is_chosen, person % FOLDS)
    pairs = nest_triples(
        ((of, prompt), label, score) for (_, label, of, prompt), score in zip(replies, scores, strict=True)
    )
    whole = [(of, pair[True] - pair[False]) for (of, _), pair in pairs.items() if len(pair) == 2]
    return _auc(scores, is_chosen, person), _share_of_pairs(whole)


def _scores(features: Matrix, is_chosen: NDArray[np.bool_], fold: NDArray[np.int_]) -> Matrix:
    """Return the score of each reply by a linear discriminant fitted on the other folds.

    It is the least-squares fit to labels of 1 and -1 (Bishop, Pattern Recognition and Machine Learning, 4.1.5), with a
    ridge penalty equal to the number of standardised features.
    """
    spread = features.std(axis=0)
    varied = spread > _MIN_SPREAD
    features = (features - features.mean(axis=0))[:, varied] / spread[varied]
    labels = np.where(is_chosen, 1.0, -1.0)
    scores = np.zeros(len(labels))
    ridge = max(1, features.shape[1]) * np.eye(features.shape[1])
    products, sums = features.T @ features, features.sum(axis=0)
    for test in (fold == number for number in range(FOLDS)):
        held_out, train = features[test], ~test
        mean = (sums - held_out.sum(axis=0)) / train.sum()
        scatter = products - held_out.T @ held_out - train.sum() * np.outer(mean, mean)
        weights = np.linalg.solve(scatter + ridge, features[train].T @ (labels[train] - labels[train].mean()))
        scores[test] = held_out @ weights
    return scores.round(_DECIMALS)


def _auc(scores: Matrix, is_chosen: NDArray[np.bool_], person: NDArray[np.int_]) -> Estimate | None:
    """Return the mean AUC of the folds, weighted by their replies; `None` if no fold has replies of both kinds.

    The variance is that of the influence function (LeDell, Petersen, van der Laan, Electronic Journal of Statistics 9,
    2015), summed by person (Obuchowski, Biometrics 53, 1997).
    """
    placements, weights = np.zeros(len(scores)), np.zeros(len(scores))
    for number in range(FOLDS):
        fold = person % FOLDS == number
        chosen, rejected = fold & is_chosen, fold & ~is_chosen
        if chosen.any() and rejected.any():
            placements[chosen] = _share_below(scores[chosen], scores[rejected])
            placements[rejected] = 1 - _share_below(scores[rejected], scores[chosen])
            weights[chosen], weights[rejected] = fold.sum() / chosen.sum(), fold.sum() / rejected.sum()
    used = weights > 0
    if not used.any():
        return None
    n = int(used.sum())
    auc = float((weights * placements)[is_chosen].sum()) / n
    return _clustered_estimate(n, auc, (weights * (placements - auc) / n)[used], person[used])


def _share_of_pairs(pairs: Sequence[tuple[int, float]]) -> Estimate | None:
    """Return the share of people's pairs with a difference above 0, where 0 counts half; `None` without pairs."""
    if not pairs:
        return None
    person, differences = np.array([of for of, _ in pairs]), np.array([difference for _, difference in pairs])
    is_higher = (np.sign(differences) + 1) / 2
    share = float(is_higher.mean())
    return _clustered_estimate(len(pairs), share, (is_higher - share) / len(pairs), person)


def _clustered_estimate(n: int, mean: float, influence: Matrix, person: NDArray[np.int_]) -> Estimate:
    """Return an estimate from 0 to 1 with its interval, from each observation's influence, summed by person.

    The interval is symmetric on the logit scale. There is none if the mean is 0 or 1, or if all people have the same
    influence.
    """
    people = len(np.unique(person))
    sums = np.bincount(person, influence)
    variance = people / (people - 1) * float(sums @ sums) if people > 1 else 0.0
    if variance == 0 or not 0 < mean < 1:
        return Estimate(n, mean, None, None)
    half = _Z * math.sqrt(variance) / (mean * (1 - mean))
    low, high = (1 / (1 + (1 - mean) / mean * math.exp(-side * half)) for side in (-1, 1))
    return Estimate(n, mean, low, high)


def _share_below(scores: Matrix, others: Matrix) -> Matrix:
    """Return the share of the others that each score exceeds; ties count half."""
    ordered = np.sort(others)
    both = np.searchsorted(ordered, scores, "left") + np.searchsorted(ordered, scores, "right")
    return both / (2 * len(others))

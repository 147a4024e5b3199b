"""Personal data that looks real: what could be reached, paid from or looked up, and was not made up for an example.

Checked by libraries that know the rules: telephone numbers (phonenumbers), account and card numbers (python-stdnum);
and mail addresses outside the domains that are kept for examples (RFC 2606).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dialoom.runs.errors import RunError

from .duplicates import HOW_TO_INSTALL

_MAIL = re.compile(r"[\w.+-]+@((?:[\w-]+\.)+[a-z]{2,})", re.IGNORECASE)
_KEPT_FOR_EXAMPLES = re.compile(r"(?:^|\.)(?:example(?:\.(?:com|net|org))?|test|invalid|localhost)$", re.IGNORECASE)
_ACCOUNT = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}\b")
_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
_FICTIONAL = re.compile(r"555[ -]?01\d\d")
"""American numbers that are kept for fiction."""


class PersonalDatum(NamedTuple):
    """Something found in a text: what kind it is, and the words."""

    kind: str
    text: str

    @property
    def masked(self) -> str:
        """Enough to find it again, and no more."""
        return f"{self.text[:3]}…{self.text[-2:]}"


def finder() -> Callable[[str], Iterator[PersonalDatum]]:
    """What finds personal data in a text.

    Raises:
        RunError: If the libraries are not installed.
    """
    try:
        phones: Any = importlib.import_module("phonenumbers")
        iban: Any = importlib.import_module("stdnum.iban")
        luhn: Any = importlib.import_module("stdnum.luhn")
    except ModuleNotFoundError as error:
        raise RunError(
            f"personal data is found by phonenumbers and python-stdnum, which are not installed: {HOW_TO_INSTALL}"
        ) from error

    def find(text: str) -> Iterator[PersonalDatum]:
        if "@" in text:
            for match in _MAIL.finditer(text):
                if not _KEPT_FOR_EXAMPLES.search(match[1]):
                    yield PersonalDatum("mail address", match[0])
        if sum(letter.isdigit() for letter in text) < 7:
            return
        for match in _ACCOUNT.finditer(text):
            if iban.is_valid(match[0]):
                yield PersonalDatum("account number", match[0])
        for match in _CARD.finditer(text):
            if luhn.is_valid(re.sub(r"\D", "", match[0])):
                yield PersonalDatum("card number", match[0])
        for number in phones.PhoneNumberMatcher(text, "US"):
            if not _FICTIONAL.search(number.raw_string):
                yield PersonalDatum("telephone number", number.raw_string)

    return find

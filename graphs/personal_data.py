"""Finding and masking of personal data in texts: mail addresses, and account, card and telephone numbers."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .recipe import RecipeError

_MAIL = re.compile(r"[\w.+-]+@((?:[\w-]+\.)+[a-z]{2,})", re.IGNORECASE)
_RESERVED_DOMAIN = re.compile(r"(?:^|\.)(?:example(?:\.(?:com|net|org))?|test|invalid|localhost)$", re.IGNORECASE)
_ACCOUNT = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}\b")
_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?!\.?\d)")
_FICTIONAL_NUMBER = re.compile(r"555[ -]?01\d\d")
"""The area and exchange codes of American telephone numbers reserved for fiction."""


class PersonalDatum(NamedTuple):
    """An item of personal data found in a text: its kind, and the characters found."""

    kind: str
    text: str

    @property
    def masked(self) -> str:
        """The characters found, masked except for the first and last ones, so that the item can be found again."""
        return f"{self.text[:3]}…{self.text[-2:]}"


def build_finder() -> Callable[[str], Iterator[PersonalDatum]]:
    """Return a function that finds personal data in a text.

    Raises:
        RecipeError: If the libraries are not installed.
    """
    try:
        phones: Any = importlib.import_module("phonenumbers")
        iban: Any = importlib.import_module("stdnum.iban")
        luhn: Any = importlib.import_module("stdnum.luhn")
    except ModuleNotFoundError as error:
        raise RecipeError(
            "finding personal data needs phonenumbers and python-stdnum, which are not installed: "
            'pip install "dialoom[describe]"'
        ) from error

    def find(text: str) -> Iterator[PersonalDatum]:
        if "@" in text:
            for match in _MAIL.finditer(text):
                if not _RESERVED_DOMAIN.search(match[1]):
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
            if not _FICTIONAL_NUMBER.search(number.raw_string):
                yield PersonalDatum("telephone number", number.raw_string)

    return find


def build_masker() -> Callable[[str], str]:
    """Return a function that replaces personal data in a text with its kind in brackets, e.g. `[mail address]`.

    Raises:
        RecipeError: If the libraries are not installed.
    """
    find = build_finder()

    def mask(text: str) -> str:
        for found in sorted(find(text), key=lambda each: len(each.text), reverse=True):
            text = text.replace(found.text, f"[{found.kind}]")
        return text

    return mask

"""A key is known again however an error writes it; a trace quotes no provider."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from dialoom.roles.gateway.secrets import redacted

KEY = "Zq7/vT+m2Lx9Kd4/Wb6Rn8Hs3Jp5Gf1C"
SPARED = "it says: the model does not exist, see https://docs.example.com/errors (request req_0123456789)"


def _encoded(before: str) -> str:
    return base64.b64encode(f"{before}{KEY} and more".encode()).decode()


WRITTEN = {
    "whole": KEY,
    "cut behind": KEY[:11],
    "cut before": KEY[-9:],
    "out of the middle": f"...{KEY[7:18]}...",
    "slashes escaped": KEY.replace("/", "\\/"),
    "unicode escapes": KEY.replace("/", "\\u002f").replace("+", "\\u002B"),
    "twice JSON": json.dumps(json.dumps({"key": KEY.replace("/", "\\/")})),
    "in a URL": quote(KEY, safe=""),
    "over lines": "\n".join(KEY[start : start + 6] for start in range(0, len(KEY), 6)),
    "over lines, indented": "\n    ".join(KEY[start : start + 5] for start in range(0, len(KEY), 5)),
    "line ends escaped": "\\n".join(KEY[start : start + 7] for start in range(0, len(KEY), 7)),
    "pieces in quotes": '" "'.join(KEY[start : start + 5] for start in range(0, len(KEY), 5)),
    "small letters": KEY.lower(),
    "hexadecimal": KEY.encode().hex(),
    **{f"base64 behind {count}": _encoded("user:"[:count]) for count in range(4)},
    "base64, escaped": _encoded("").replace("/", "\\/"),
    "base64, cut": _encoded("u:")[8:30],
    "base64 for URLs": _encoded("u").replace("+", "-").replace("/", "_"),
    "base64 over lines": base64.encodebytes(f"Basic {KEY * 3}".encode()).decode(),
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_a_key_is_taken_out_however_it_is_written(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    """What stands around it stays."""
    monkeypatch.setenv("STRANGE_API_KEY", KEY)
    told = redacted(f"{SPARED}: {written}: bye")
    assert told.startswith(f"{SPARED}: ")
    assert told.endswith(": bye")
    assert "[STRANGE_API_KEY]" in told
    left = told.removeprefix(SPARED).replace("[STRANGE_API_KEY]", "")
    for form in (KEY.lower(), KEY.encode().hex(), *(_encoded("abc"[:count]).lower()[4:42] for count in range(3))):
        assert not any(form[start : start + 8] in "".join(left.lower().split()) for start in range(len(form) - 7))


def test_paths_and_addresses_are_no_keys_in_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They would take the places out of half of all messages; whole, they go as before."""
    file = tmp_path / "credentials.json"
    file.touch()
    monkeypatch.setenv("SOME_CREDENTIALS", str(file))
    monkeypatch.setenv("HOOK_TOKEN", "https://docs.example.com/hook/17")
    assert redacted(f"{tmp_path / 'run.db'}: {SPARED}") == f"{tmp_path / 'run.db'}: {SPARED}"
    assert redacted(f"at {file}") == "at [SOME_CREDENTIALS]"


def test_a_long_error_is_looked_at_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers decides on its length."""
    monkeypatch.setenv("STRANGE_API_KEY", KEY)
    told = redacted("x" * 50_000 + " " + "x" * 50_000 + f" {KEY} " + "y" * 10_000_000)
    assert len(told) < 300_000
    assert "[STRANGE_API_KEY]" in told

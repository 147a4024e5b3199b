"""An affinity schema that is no list of domains is refused with the place of what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialoom.personas import DataError
from dialoom.personas.profile import read_domains


def test_a_domain_that_is_none_is_named_by_its_place(tmp_path: Path) -> None:
    """Which of them, and what stands there."""
    (path := tmp_path / "schema.json").write_text(json.dumps([{"domain": "Garden", "affinities": []}, 7]))
    with pytest.raises(DataError, match=r"schema\.json: domain 1: .*; it is 7"):
        read_domains(path)

"""Shipped suites: the systems and settings that measure an assistant's personalization."""

from __future__ import annotations

from pathlib import Path

DEFAULT_SUITE = "personalization"


def shipped_suites() -> dict[str, Path]:
    """Return the YAML files of the shipped suites, by name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}

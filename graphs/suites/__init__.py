"""Shipped suites: which systems are played to say how personal an assistant is, and with which settings."""

from __future__ import annotations

from pathlib import Path

DEFAULT_SUITE = "personalization"


def shipped_suites() -> dict[str, Path]:
    """The YAML files of the shipped suites, by name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}

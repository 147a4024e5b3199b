"""Descriptions of datasets: of a run, a release of people, or a file of dialogues."""

from .description import add_to_card, describe_path, describe_run, write_described
from .lexical import Alike

__all__ = ["Alike", "add_to_card", "describe_path", "describe_run", "write_described"]

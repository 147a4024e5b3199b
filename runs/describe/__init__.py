"""Descriptions of datasets: of a run, a published dataset of people, or a file of dialogues."""

from .description import add_to_card, describe_path, describe_run, write_described_export
from .lexical import SimilarTexts

__all__ = ["SimilarTexts", "add_to_card", "describe_path", "describe_run", "write_described_export"]

"""What is in a dataset: of a run, a release of people, or a file of dialogues."""

from .description import add_to_card, describe_path, describe_run

__all__ = ["add_to_card", "describe_path", "describe_run"]

"""What is in a dataset: of a run, a release of people, or a file of dialogues."""

from .description import describe_path, describe_run

__all__ = ["describe_path", "describe_run"]

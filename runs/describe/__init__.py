"""What is in a dataset: of a run, a release of people, or a file of dialogues."""

from .alike import Alike
from .description import add_to_card, describe_path, describe_run, write_described

__all__ = ["Alike", "add_to_card", "describe_path", "describe_run", "write_described"]

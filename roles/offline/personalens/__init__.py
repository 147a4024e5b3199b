"""PersonaLens: the simulated user, the assistants and the judges of a dialogue about everyday tasks."""

from . import assistant, judges, user

__all__ = ["assistant", "judges", "user"]

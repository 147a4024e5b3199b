"""The people: profiles, tasks and situations, and the readers of the files that hold them."""

from .errors import DataError
from .mending import Mendings
from .profile import DOMAINS, Demographics, Domain, Profile
from .release import PersonaLensRelease, samples
from .schema import AffinitySchema
from .task import Situation, Task

__all__ = [
    "DOMAINS",
    "AffinitySchema",
    "DataError",
    "Demographics",
    "Domain",
    "Mendings",
    "PersonaLensRelease",
    "Profile",
    "Situation",
    "Task",
    "samples",
]

"""Profiles, tasks and situations of simulated people, with the readers of their files."""

from dialoom.inputs import DataError

from .pools import (
    KINDS,
    PLURALS,
    Persona,
    PoolEntry,
    PoolKind,
    combined,
    entries_of,
    read_personas,
    read_pool,
    shipped_seeds,
    write_personas,
    write_pool,
)
from .profile import DOMAINS, AffinitySchema, Demographics, Domain, Profile, Repairs, Situation, Task
from .release import PersonaLensRelease, samples
from .similarity import (
    EMBEDDERS,
    THRESHOLD,
    Embedder,
    EmbedderError,
    LexicalEmbedder,
    check_embedder,
    local_embedder,
    located_embedder,
)

__all__ = [
    "DOMAINS",
    "EMBEDDERS",
    "KINDS",
    "PLURALS",
    "THRESHOLD",
    "AffinitySchema",
    "DataError",
    "Demographics",
    "Domain",
    "Embedder",
    "EmbedderError",
    "LexicalEmbedder",
    "Persona",
    "PersonaLensRelease",
    "PoolEntry",
    "PoolKind",
    "Profile",
    "Repairs",
    "Situation",
    "Task",
    "check_embedder",
    "combined",
    "entries_of",
    "local_embedder",
    "located_embedder",
    "read_personas",
    "read_pool",
    "samples",
    "shipped_seeds",
    "write_personas",
    "write_pool",
]

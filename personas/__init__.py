"""Profiles, tasks and situations of simulated people, with the readers of their files."""

from dialoom.inputs import DataError

from .pools import (
    POOL_KIND_PLURALS,
    POOL_KINDS,
    Persona,
    PoolEntry,
    PoolKind,
    combine,
    load_seeds,
    read_entries,
    read_personas,
    read_pool,
    write_personas,
    write_pool,
)
from .profile import DOMAINS, AffinitySchema, Demographics, Domain, Profile, Repairs, Situation, Task
from .release import PersonaLensRelease, load_samples
from .similarity import (
    DEFAULT_THRESHOLD,
    EMBEDDER_FORMS,
    Embedder,
    EmbedderError,
    LexicalEmbedder,
    check_embedder,
    load_local_embedder,
    resolve_embedder,
)

__all__ = [
    "DEFAULT_THRESHOLD",
    "DOMAINS",
    "EMBEDDER_FORMS",
    "POOL_KINDS",
    "POOL_KIND_PLURALS",
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
    "combine",
    "load_local_embedder",
    "load_samples",
    "load_seeds",
    "read_entries",
    "read_personas",
    "read_pool",
    "resolve_embedder",
    "write_personas",
    "write_pool",
]

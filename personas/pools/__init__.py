"""Pools of profiles and personalities: their files, the shipped seeds, and the files of the ALOE release."""

from .files import KINDS, PLURALS, PoolEntry, PoolKind, content_id, entries_of, read_pool, shipped_seeds, write_pool

__all__ = [
    "KINDS",
    "PLURALS",
    "PoolEntry",
    "PoolKind",
    "content_id",
    "entries_of",
    "read_pool",
    "shipped_seeds",
    "write_pool",
]

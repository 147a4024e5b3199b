"""The offline writer: it fills the pools of profiles and personalities."""

from .writer import pool_texts

__all__ = ["pool_texts"]

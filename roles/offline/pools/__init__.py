"""Pools: the writer of profiles and personalities."""

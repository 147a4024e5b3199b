"""Twelve invented people with their tasks and situations, in the PersonaLens layout."""

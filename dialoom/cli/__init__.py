"""The `dialoom` command. Each command's module is imported when it is called, so that help comes at once."""

from .app import main

__all__ = ["main"]

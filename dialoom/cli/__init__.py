"""The `dialoom` command. Each command's module is imported only when the command is called, to print help fast."""

from .app import main

__all__ = ["main"]

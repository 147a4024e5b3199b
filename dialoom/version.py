"""The version of dialoom, which every layer can import."""

__version__ = "0.1.0"

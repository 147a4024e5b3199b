"""The Python API of runs; `dialoom` exports its names, and the command line and the studio are built on it."""

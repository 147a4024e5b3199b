"""`python -m dialoom` is the `dialoom` command."""

from dialoom.runs.cli import main

main()

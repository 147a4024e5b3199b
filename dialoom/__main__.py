"""`python -m dialoom` is the `dialoom` command."""

from dialoom.cli import main

main()

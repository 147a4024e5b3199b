"""What a command ends with."""

EXIT_DONE, EXIT_SOME_FAILED, EXIT_USAGE, EXIT_STOPPED, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
"""All done; some scenarios failed; bad usage, configuration or data; stopped early and resumable; stopped before there
was anything to go on with."""

"""What a command ends with, and how its help says so."""

EXIT_DONE, EXIT_SOME_FAILED, EXIT_USAGE, EXIT_STOPPED, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
"""All done; some scenarios failed; bad usage, configuration or data; stopped early and resumable; stopped before there
was anything to go on with."""

OF_PLAYING = "Exit codes: 0 all done, 1 some scenarios failed, 2 bad usage or data, 3 stopped early and resumable."
OF_LOOKING = "Exit codes: 0 done, 2 bad usage, configuration or data."
OF_DOCTOR = "Exit codes: 0 everything is in place, 1 something is not, 2 bad usage."
OF_POOLS = "Exit codes: 0 done, 1 the writer failed, 2 bad usage or data, 3 stopped early and resumable."
OF_STEPPING = (
    "Exit codes: 0 every line was carried out, 1 a step failed (provider or reply), 2 bad usage, configuration or "
    "data, or a line that cannot be carried out, 3 stopped early (budget, Ctrl-C). Nothing that was played is lost."
)
OF_REPLAYING = "Exit codes: 0 the same path, 1 another one (a line for each departure), 2 no case."

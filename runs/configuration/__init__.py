"""The configuration of runs: recipes by name, their checks, trust in the code that a file names, and `RunConfig`."""

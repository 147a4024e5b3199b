"""The configuration of runs: recipes by name, their checks, trust in the code that files use, and `RunConfig`."""

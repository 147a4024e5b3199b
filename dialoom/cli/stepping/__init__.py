"""`dialoom step`: the step debugger in a terminal, from a script, or for a program."""

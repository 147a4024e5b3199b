"""Playing one run on several processes and machines: Ray actors play, and the run's own process merges the results.

See `docs/design/scale.md`. Only `cluster` imports Ray, and only when there are workers.
"""

"""One run on several processes and machines: Ray's actors play, and the run's own process folds what they bring.

See `docs/design/scale.md`. Nothing but `cluster` imports Ray, and that only when there are workers.
"""

"""Runs of many conversations, for any recipe: engine, store, workers, stepping, reading, reports and exports."""

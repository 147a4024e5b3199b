"""ALOE: an open chat between a person and a model that gets to know them."""

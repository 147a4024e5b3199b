"""PersonaLens: the simulated user, the assistant and the judges of a dialogue about everyday tasks."""

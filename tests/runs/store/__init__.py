"""Tests of a run's file."""

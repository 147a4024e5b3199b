"""Tests of the offline model."""

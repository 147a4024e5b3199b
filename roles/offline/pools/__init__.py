"""The understudy that fills the pools of profiles and personalities; its rules stand in `writer`."""

from . import writer  # noqa: F401  (registers it)

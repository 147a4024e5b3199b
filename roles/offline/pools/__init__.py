"""The understudy that fills the pools of profiles and personalities.

Its rules: a person is put together out of facts that go with each other, at most one of a topic; a character out of
traits, at most one of an axis. Each fact or trait may bear marks: what it settles, what it rules out and what it needs
to have been settled (`vegetarian`, `old`, `garden`); one that does not fit is passed over. The words are in
`data/pools`.
"""

from . import writer  # noqa: F401  (registers it)

"""The understudies of an open chat (ALOE): the person, the induction, the answerers and the judges.

All that they rely on are the `<profile>` and `<personality>` that a request marks, and the lines of the chat. Traits are
known by the manners that they name, a statement is told in the forms that a chat needs (`retelling`, `statements`), and
the rest are remarks on corners of a daily life. Each module states its rules. The words are in `data/aloe`.
"""

from . import friend, induction, judges, user  # noqa: F401  (registers them)

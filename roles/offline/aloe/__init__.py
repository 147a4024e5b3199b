"""The understudies of an open chat (ALOE): the person, the induction, the answerers and the judges.

They rely on the `<profile>` and `<personality>` that a request marks, and on the lines of the chat. Traits are known by
the manners that they name, a statement is told in the forms that a chat needs, and the rest are remarks on corners of a
daily life. Each module states its rules; the words are in `data/aloe`.
"""

from . import facts, friend, judges, user  # noqa: F401  (registers them)

"""The understudies of an open chat (ALOE): the person, the induction, the answerers and the judges.

They use the marked profile and personality and the lines of the chat. Each module states its rules.
"""

from . import chat  # noqa: F401  (registers them)

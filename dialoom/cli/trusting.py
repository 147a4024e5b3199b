"""The flag by which a user trusts the code and the addresses that a file names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .flags import Flags
from .terminal import say

if TYPE_CHECKING:
    from dialoom.runs.configuration.trust import Trust

_OPTION: Any = typer.Option(
    "--trust", help="Use code and addresses that the file names, though you have not given them on this machine."
)
TrustFlag = Annotated[bool, _OPTION]
TRUSTING: Flags = {"trust": (TrustFlag, False)}


def trust(is_given: bool) -> Trust:
    """Return the trust in what a file names; what is used on its word alone is reported before use."""
    from dialoom.runs.configuration.trust import Trust

    return Trust(is_given, lambda line: say(line, err=True))

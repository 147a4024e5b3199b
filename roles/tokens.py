"""Token counts by the published encoding cl100k_base, whose table is shipped with LiteLLM.

Papers report lengths in it. Few models count like this, so a reported count must name its tokenizer.
"""

from __future__ import annotations

import base64
import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

COUNTER = "cl100k_base"

_TABLE = Path("litellm_core_utils", "tokenizers", "9b5ad71b2ce5302211f9c61530b329a4922fc6a4")
_PIECES = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def tokens(text: str) -> int:
    """Return the number of tokens in a text."""
    return len(_encoding().encode_ordinary(text))


@cache
def _encoding() -> Encoding:
    """Return the encoding, read from the table: tiktoken's loader looks for it in the network or the environment."""
    import tiktoken  # deferred: slow to import and rarely needed

    found = importlib.util.find_spec("litellm")
    assert found is not None and found.submodule_search_locations
    rows = (Path(found.submodule_search_locations[0]) / _TABLE).read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in (row.split() for row in rows)}
    return tiktoken.Encoding(COUNTER, pat_str=_PIECES, mergeable_ranks=ranks, special_tokens={})

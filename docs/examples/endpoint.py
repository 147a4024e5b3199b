"""An assistant behind an HTTP endpoint, as a player: `--model assistant=python:docs.examples.endpoint:shop`."""

import http.client
import json
import os
import urllib.error
import urllib.request
from typing import Any


def shop(messages: list[dict[str, str]], session: Any) -> str:
    """Request the assistant's reply from its endpoint."""
    request = urllib.request.Request(
        os.environ["SHOP_URL"],
        data=json.dumps({"messages": messages}).encode(),
        headers={"Content-Type": "application/json", "X-Session-Id": session.conversation},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return str(json.load(response)["reply"])
    except urllib.error.HTTPError as error:
        if error.code == 429 or error.code >= 500:
            raise ConnectionError(f"the shop answers {error.code}") from error
        raise
    except (urllib.error.URLError, http.client.IncompleteRead) as error:
        raise ConnectionError(f"the shop cannot be reached: {error}") from error

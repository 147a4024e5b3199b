"""Embedding models as backends, such as `embed:openai/text-embedding-3-small`, with calls recorded in the ledger.

As with other calls, a run that is killed and resumed does not pay twice for an embedding. The messages of a request are
the texts to embed. The reply's text is `{"vectors": [...]}`; each vector is the base64 of its little-endian float32
values.
"""

from __future__ import annotations

import json

from dialoom.roles.binding import OFFLINE
from dialoom.roles.errors import BindingError, PermanentProviderError

from .calls import Completion, Request
from .exchange import Exchange, exchanging
from .failures import classified
from .litellm_backend import TIMEOUT, ensure_known, load_litellm


class EmbeddingBackend:
    """A backend that requests one vector per message from LiteLLM; the gateway retries.

    Args:
        model: The model, as LiteLLM names it.

    Raises:
        BindingError: If LiteLLM does not know the provider.
    """

    def __init__(self, model: str) -> None:
        if model.startswith(OFFLINE):
            raise BindingError(
                f"'embed:{model}': offline models make no embeddings; use 'lexical', which needs no model"
            )
        ensure_known(model)
        self.model = model

    async def complete(self, request: Request, key: str) -> Completion:  # noqa: ARG002
        """Request embeddings once.

        Raises:
            TransientProviderError: For a rate limit, overload, time-out, or lost connection.
            PermanentProviderError: For any other rejection by the provider, or a response without embeddings.
        """
        from dialoom.personas.similarity import packed  # imported here, as few runs use embeddings

        texts = [message["content"] for message in request.messages]
        exchange = Exchange()
        try:
            with exchanging(exchange):
                response = await load_litellm().aembedding(
                    model=self.model,
                    input=texts,
                    encoding_format="float",
                    api_base=request.api_base,
                    timeout=request.timeout or TIMEOUT,
                    drop_params=True,
                    max_retries=0,
                    num_retries=0,
                )
        except Exception as error:
            exchange.ensure_accepted(self.model)
            raise classified(error, self.model, request, exchange.answer) from None
        try:
            vectors = [packed(each["embedding"]) for each in sorted(response.data, key=lambda each: each["index"])]
        except (TypeError, KeyError, ValueError) as error:
            raise PermanentProviderError(f"{self.model}: the response contains no embeddings ({error})") from error
        if len(vectors) != len(texts):
            raise PermanentProviderError(
                f"{self.model}: {len(vectors)} embeddings were returned for {len(texts)} texts"
            )
        return Completion(
            text=json.dumps({"vectors": vectors}),
            input_tokens=getattr(getattr(response, "usage", None), "prompt_tokens", None),
            output_tokens=0,
            cost=(response._hidden_params or {}).get("response_cost"),
        )

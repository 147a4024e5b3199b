"""OpenTelemetry spans of calls, named by the GenAI conventions. The packages are an optional dependency.

A span covers a role's call with all its attempts. It contains no messages, because traces have more readers than runs.
"""

from __future__ import annotations

import importlib.util
import time
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from dialoom.roles.binding import EMBEDDING_PREFIX
from dialoom.roles.errors import BindingError, ProviderError
from dialoom.version import __version__

from .calls import CallPlace, Completion, Request
from .model_facts import provider_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_MISSING_MESSAGE = "otel needs OpenTelemetry, which is not installed: pip install 'dialoom[otel]'"
_REQUIRED_MODULES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")
_NANOSECONDS = 1_000_000_000


class Tracing:
    """A tracer that records a span for each call that was sent.

    Args:
        provider: The destination of the spans.
    """

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace import SpanKind

        self._provider = provider
        self._tracer = provider.get_tracer("dialoom", __version__)
        self._kind = SpanKind.CLIENT

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._provider.shutdown()  # sends the remaining spans

    def record_call(
        self,
        request: Request,
        place: CallPlace,
        result: Completion | ProviderError,
        attempts: int,
        latency: float,
    ) -> None:
        """Record a call that has just ended.

        Args:
            request: The request.
            place: The call's place in the run.
            result: The completion or the error.
            attempts: Number of attempts.
            latency: Seconds, including pauses between attempts.
        """
        from opentelemetry.trace import Status, StatusCode

        ended = time.time_ns()
        operation = "embeddings" if request.model.startswith(EMBEDDING_PREFIX) else "chat"
        sampled = {
            f"gen_ai.request.{name}": request.params.get(name)
            for name in ("top_p", "top_k", "frequency_penalty", "presence_penalty")
        }
        address = urlsplit(request.api_base or "")
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": provider_of(request.model),
            "gen_ai.request.model": request.model,
            "gen_ai.request.seed": request.seed,
            "gen_ai.output.type": "text" if request.reply_type is None else "json",
            "gen_ai.request.temperature": request.temperature,
            "gen_ai.request.max_tokens": request.max_reply,
            **sampled,
            "server.address": address.hostname or None,
            "server.port": address.port or None,
            "gen_ai.conversation.id": place.scenario,
            "dialoom.scenario": place.scenario,
            "dialoom.node": place.node,
            "dialoom.step": place.step,
            "dialoom.role": request.role,
            "dialoom.prompt": request.prompt_id,
            "dialoom.ask": place.ask,
            "dialoom.attempts": attempts,
        }
        if isinstance(result, Completion):
            reason = result.finish_reason
            attributes |= {
                "gen_ai.usage.input_tokens": result.input_tokens,
                "gen_ai.usage.output_tokens": result.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": result.cached_tokens,
                "dialoom.cost": result.cost,
                "gen_ai.response.finish_reasons": None if reason is None else (reason,),
            }
        else:
            attributes["error.type"] = type(result).__name__
        known = {name: value for name, value in attributes.items() if value is not None}
        started = ended - int(latency * _NANOSECONDS)
        span = self._tracer.start_span(
            f"{operation} {request.model}", kind=self._kind, attributes=known, start_time=started
        )
        if not isinstance(result, Completion):
            # A provider's error message may quote the request.
            span.set_status(Status(StatusCode.ERROR, type(result).__name__))
        span.end(ended)


def check_tracing() -> None:
    """Check that OpenTelemetry is installed, without importing it.

    Raises:
        BindingError: If it is not installed.
    """
    try:
        specs = [importlib.util.find_spec(name) for name in _REQUIRED_MODULES]
    except ModuleNotFoundError:  # the parent package is missing as well
        specs = [None]
    if None in specs:
        raise BindingError(_MISSING_MESSAGE, setting="otel")


def open_tracing() -> Tracing:
    """Return a tracer that sends to the address in the `OTEL_EXPORTER_OTLP_...` variables (default: a local collector).

    Raises:
        BindingError: If OpenTelemetry is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise BindingError(_MISSING_MESSAGE, setting="otel") from error
    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override these attributes.
    resource = Resource({"service.name": "dialoom", "service.version": __version__})
    provider = TracerProvider(resource=resource.merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider)

"""Spans of calls, with the names of OpenTelemetry's GenAI conventions and without any message text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dialoom.roles import BindingError, Completion, Gateway, PermanentProviderError
from dialoom.roles.gateway.gateway import GatewaySettings
from dialoom.roles.gateway.tracing import Tracing, open_tracing
from tests.ledgers import MemoryLedger, make_place, make_request
from tests.server import Answer, completion, error, serving

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode


@pytest.fixture
def spans() -> Iterator[tuple[Tracing, InMemorySpanExporter]]:
    """Return tracing with an in-memory exporter."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with Tracing(provider) as tracing:
        yield tracing, exporter


async def spans_of(
    spans: tuple[Tracing, InMemorySpanExporter], monkeypatch: pytest.MonkeyPatch, *answers: Answer, calls: int = 1
) -> list[ReadableSpan]:
    """Return the spans of equal calls to a server with the given answers."""
    tracing, exporter = spans
    with serving(lambda _body, number: answers[number - 1]) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing-to-hide")
        gateway = Gateway(MemoryLedger(), GatewaySettings(max_backoff=0.01), tracing=tracing)
        for _ in range(calls):
            try:
                await gateway.complete(make_request(text="A secret of hers."), make_place())
            except PermanentProviderError:
                assert answers[-1][0] != 200
    return list(exporter.get_finished_spans())


async def test_call_is_a_span_with_conventional_names(
    spans: tuple[Tracing, InMemorySpanExporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    (span,) = await spans_of(spans, monkeypatch, error(503, "later"), completion("He knows.", 20, 3), calls=2)
    attributes: dict[str, Any] = dict(span.attributes or {})
    assert span.name == "chat openai/gpt-4o-mini"
    assert span.kind is SpanKind.CLIENT
    assert span.status.status_code is StatusCode.UNSET
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.provider.name"] == "openai"
    assert attributes["gen_ai.request.model"] == "openai/gpt-4o-mini"
    assert attributes["gen_ai.request.temperature"] == 0.7
    assert attributes["gen_ai.output.type"] == "text"
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (20, 3)
    assert attributes["dialoom.role"] == "user"
    assert attributes["dialoom.scenario"] == attributes["gen_ai.conversation.id"] == "s1"
    assert (attributes["dialoom.node"], attributes["dialoom.attempts"]) == ("speak", 2)
    assert "error.type" not in attributes
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.start_time < span.end_time


async def test_span_has_no_message_text(
    spans: tuple[Tracing, InMemorySpanExporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    (span,) = await spans_of(spans, monkeypatch, completion("He knows."))
    assert "secret" not in span.to_json()
    assert "He knows" not in span.to_json()


async def test_failed_call_has_its_kind_of_error_only(
    spans: tuple[Tracing, InMemorySpanExporter], monkeypatch: pytest.MonkeyPatch
) -> None:
    (span,) = await spans_of(spans, monkeypatch, error(401, "who are you? you said: A secret of hers."))
    attributes: dict[str, Any] = dict(span.attributes or {})
    assert attributes["error.type"] == "PermanentProviderError"
    assert attributes["dialoom.attempts"] == 1
    assert "gen_ai.usage.input_tokens" not in attributes
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "PermanentProviderError"
    assert "secret" not in span.to_json()


def test_opentelemetry_is_imported_only_when_it_is_used() -> None:
    script = "import sys, dialoom.roles.gateway.tracing; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_missing_extra_is_named_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(BindingError, match=r"pip install 'dialoom\[otel\]'"):
        open_tracing()


def test_spans_reach_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    import http.server
    import threading

    received: list[tuple[str, bytes]] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            """Log nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Collector) as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_address[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        with open_tracing() as tracing:
            tracing.record_call(make_request("offline/attentive"), make_place(), Completion("Good morning."), 1, 0.5)
        collector.shutdown()
        thread.join()
    ((path, body),) = received
    assert path == "/v1/traces"
    assert b"dialoom" in body
    assert b"chat offline/attentive" in body

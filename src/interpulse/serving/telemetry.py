"""OpenTelemetry providers of programs, configured by OpenTelemetry's environment variables (PIP-320).

As with Pulsar's servers, everything is off unless ``OTEL_SDK_DISABLED=false``. Then the standard variables apply:
``OTEL_METRICS_EXPORTER`` and ``OTEL_TRACES_EXPORTER``, ``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_SERVICE_NAME``, and those
that exporters read themselves. OpenTelemetry is imported only if it is on.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from interpulse import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

_SWITCH: Final = "OTEL_SDK_DISABLED"
_OTLP: Final = {"grpc": ("otlp_proto_grpc",), "http/protobuf": ("otlp_proto_http",)}
_OTLP_ANY: Final = ("otlp_proto_http", "otlp_proto_grpc")


class TelemetryUnusable(Exception):
    """Failure to start OpenTelemetry although it is on. ``str()`` is the sentence for the user."""


def meter_provider(environment: Mapping[str, str], *, service: str, cluster: str) -> MeterProvider | None:
    """Return the provider of a program's metrics; None if it is off. Raise TelemetryUnusable."""
    exporters = _exporters(environment, "metrics")
    if exporters is None:
        return None
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    made = [create() for create in exporters]
    readers = [
        exporter if isinstance(exporter, MetricReader) else PeriodicExportingMetricReader(exporter) for exporter in made
    ]
    return MeterProvider(readers, resource=_resource(service, cluster), shutdown_on_exit=False)


def tracer_provider(environment: Mapping[str, str], *, service: str, cluster: str) -> TracerProvider | None:
    """Return the provider of a program's spans; None if it is off. Raise TelemetryUnusable."""
    exporters = _exporters(environment, "traces")
    if exporters is None:
        return None
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=_resource(service, cluster), shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter()))
    return provider


def _resource(service: str, cluster: str) -> Resource:
    """Return the resource of the program. Attributes from the environment take precedence."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    attributes = {"service.name": service, "service.version": __version__, "pulsar.cluster": cluster}
    return Resource.create(attributes).merge(OTELResourceDetector().detect())


def _exporters(environment: Mapping[str, str], signal: str) -> list[Any] | None:
    """Return the classes that export a signal; None if it is off."""
    if environment.get(_SWITCH, "true").strip().lower() != "false":
        return None
    wanted = environment.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp")
    names = [name.strip() for name in wanted.split(",") if name.strip() not in ("", "none")]
    if not names:
        return None
    try:
        import opentelemetry.sdk
    except ImportError as error:
        raise TelemetryUnusable(
            f"{_SWITCH}=false needs OpenTelemetry's SDK: pip install opentelemetry-sdk opentelemetry-exporter-otlp"
        ) from error
    del opentelemetry
    return [_exporter(name, environment, signal) for name in names]


def _exporter(name: str, environment: Mapping[str, str], signal: str) -> Any:
    of_signal = environment.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL")
    protocol = of_signal or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
    candidates = _OTLP.get(protocol, _OTLP_ANY) if name == "otlp" else (name,)
    for candidate in candidates:
        for entry_point in entry_points(group=f"opentelemetry_{signal}_exporter", name=candidate):
            return entry_point.load()
    raise TelemetryUnusable(
        f"OTEL_{signal.upper()}_EXPORTER={name} is not installed: pip install opentelemetry-exporter-{name}, or set it "
        f"to console or none"
    )

"""The providers of programs, by their environment."""

import sys

import pytest

from interpulse.serving.telemetry import TelemetryUnusable, meter_provider, tracer_provider

OWN = {"service": "pulsar-broker", "cluster": "east"}
ON = {"OTEL_SDK_DISABLED": "false"}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SDK_DISABLED": "true", "OTEL_METRICS_EXPORTER": "console"},
        {"OTEL_SDK_DISABLED": ""},
        ON | {"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_provider_when_off_then_is_none(environment: dict[str, str]) -> None:
    assert meter_provider(environment, **OWN) is None
    assert tracer_provider(environment, **OWN) is None


def test_provider_when_on_then_has_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "pulsar.cluster=renamed,rack=7")
    for provider in (
        meter_provider(ON | {"OTEL_METRICS_EXPORTER": "console,none"}, **OWN),
        tracer_provider(ON | {"OTEL_TRACES_EXPORTER": "console"}, **OWN),
    ):
        assert provider is not None
        resource = provider._sdk_config.resource if hasattr(provider, "_sdk_config") else provider.resource
        said = dict(resource.attributes)
        assert (said["service.name"], said["pulsar.cluster"], said["rack"]) == ("pulsar-broker", "renamed", "7")
        provider.shutdown()


@pytest.mark.parametrize("environment", [ON, ON | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}])
def test_provider_when_its_exporter_is_missing_then_the_error_names_it(environment: dict[str, str]) -> None:
    with pytest.raises(TelemetryUnusable, match="OTEL_METRICS_EXPORTER=otlp is not installed: pip install opentelemet"):
        meter_provider(environment, **OWN)


def test_provider_when_the_sdk_is_missing_then_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(TelemetryUnusable, match="OTEL_SDK_DISABLED=false needs OpenTelemetry's SDK: pip install"):
        tracer_provider(ON, **OWN)

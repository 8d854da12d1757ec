"""The page for Prometheus."""

from __future__ import annotations

from interpulse.proxy.meter import ProxyMeter
from interpulse.wire import pulsar_api_pb2 as pb


def test_page_when_things_were_counted_then_has_pulsars_names() -> None:
    meter = ProxyMeter()
    meter.active_connections, meter.new_connections, meter.rejected_connections = 1, 2, 3
    meter.moved(100)
    meter.moved(11)
    meter.requests[pb.BaseCommand.LOOKUP] += 4
    meter.rejected[pb.BaseCommand.PARTITIONED_METADATA] += 5
    lines = [line for line in meter.page(2).decode().splitlines() if not line.startswith("#")]
    figures = {name: float(value) for name, value in (line.split() for line in lines)}
    assert {name: value for name, value in figures.items() if value} == {
        "pulsar_proxy_active_connections": 1,
        "pulsar_proxy_new_connections": 2,
        "pulsar_proxy_rejected_connections": 3,
        "pulsar_proxy_binary_ops": 2,
        "pulsar_proxy_binary_bytes": 111,
        "pulsar_proxy_lookup_requests": 4,
        "pulsar_proxy_rejected_partitions_metadata_requests": 5,
        "pulsar_proxy_brokers": 2,
    }

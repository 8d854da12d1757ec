"""Metrics of the broker by OpenTelemetry."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from interpulse.broker.app import BrokerApp
from interpulse.broker.config.broker_config import BrokerConfig
from interpulse.client import Client
from tests.support.rest_client import call
from tests.support.spans import metered, points_of

TOPIC = "persistent://public/default/t"
PLAIN = """
import asyncio, sys
from interpulse.broker.app import BrokerApp
from interpulse.broker.config.broker_config import BrokerConfig
async def main():
    app = BrokerApp(BrokerConfig(data_dir=sys.argv[1], broker_service_port=0, web_service_port=0))
    await app.start()
    await app.stop()
asyncio.run(main())
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


async def test_broker_when_it_exports_then_says_the_same_as_its_page_for_prometheus(tmp_path: Path) -> None:
    provider, reader = metered()
    config = BrokerConfig(data_dir=str(tmp_path), broker_service_port=0, web_service_port=0)
    app = BrokerApp(config, meter_provider=provider)
    await app.start()
    try:
        async with Client(app.service_url) as client, await client.create_producer(TOPIC) as producer:
            consumer = await client.subscribe(TOPIC, "s", initial_position="earliest")
            for _ in range(3):
                await producer.send(b"x")
            for _ in range(3):
                await consumer.receive(60_000)
            first = await asyncio.to_thread(points_of, reader)
            await producer.send(b"x")
            await consumer.receive(60_000)
            second = await asyncio.to_thread(points_of, reader)
            page = (await call(app.web_url, "GET", "/metrics")).body.decode()
    finally:
        await app.stop()
    which = {
        "pulsar.domain": "persistent",
        "pulsar.tenant": "public",
        "pulsar.namespace": "public/default",
        "pulsar.topic": TOPIC,
    }
    incoming = "pulsar.broker.topic.message.incoming.count"
    assert [points[incoming] for points in (first, second)] == [[(which, 3)], [(which, 4)]]
    assert second["pulsar.broker.topic.message.outgoing.count"] == [(which, 4)]
    assert f'pulsar_in_messages_total{{cluster="standalone",namespace="public/default",topic="{TOPIC}"}} 4' in page
    assert ({"pulsar.connection.status": "active"}, 1) in second["pulsar.broker.connection.count"]
    assert second["pulsar.broker.request.topic.lookup.concurrent.limit"] == [({}, config.max_concurrent_lookup_request)]
    assert points_of(reader) == {}, "a broker that has stopped has no figures"


def test_broker_when_nothing_asks_for_it_then_loads_nothing_of_opentelemetry(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PLAIN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_program_when_its_environment_asks_for_it_then_exports(tmp_path: Path) -> None:
    """At the latest when it ends."""
    asked = {"OTEL_SDK_DISABLED": "false", "OTEL_METRICS_EXPORTER": "console"}
    command = [sys.executable, "-m", "interpulse.cli", "standalone", "--port", "0", "--http-port", "0"]
    process = subprocess.Popen(
        [*command, "--data-dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **asked},
    )
    assert process.stdout is not None
    while process.stdout.readline() not in ("ready\n", ""):
        continue
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert '"name": "pulsar.broker.connection.count"' in said
    assert '"service.name": "pulsar-broker"' in said


def test_program_when_the_exporter_is_missing_then_says_what_to_install(tmp_path: Path) -> None:
    asked = {"OTEL_SDK_DISABLED": "false"}
    done = subprocess.run(
        [sys.executable, "-m", "interpulse.cli", "standalone", "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, **asked},
        timeout=60,
    )
    assert done.returncode == 2
    assert "OTEL_METRICS_EXPORTER=otlp is not installed: pip install opentelemetry-exporter-otlp" in done.stderr

"""A program with the official client that is redirected: ``redirected_client.py SERVICE_URL TOPIC``.

For every line of its input it publishes the line, receives one message and prints what it received. It runs in a
process of its own with a plain logger: on TOPIC_MIGRATED the client of release 3.13 aborts its process if it logs to a
logger of Python, or logs what it does in detail.
"""

from __future__ import annotations

import sys

import pulsar

SECONDS_MAX = 120


def main(service_url: str, topic: str) -> None:
    """Echo lines through the topic until the input ends."""
    client = pulsar.Client(service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe(topic, "s", initial_position=pulsar.InitialPosition.Earliest)
    producer = client.create_producer(topic, send_timeout_millis=SECONDS_MAX * 1000)
    _report("open")
    for line in sys.stdin:
        producer.send(line.strip().encode())
        message = consumer.receive(SECONDS_MAX * 1000)
        consumer.acknowledge(message)
        _report(message.data().decode())
    client.close()


def _report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

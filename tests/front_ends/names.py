"""Names that are none, as the binary protocol and REST refuse them; and where real Pulsar does not."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from interpulse.wire import pulsar_api_pb2 as pb
from tests.support import commands
from tests.support.raw_client import RawClient


@dataclass(frozen=True)
class Name:
    """A text that is no topic name. ``of_real`` says what real Pulsar does with it instead of refusing it."""

    id: str
    text: str
    of_real: str = ""


NAMES: Final = (
    Name("empty", ""),
    Name("two-parts", "a/b"),
    Name("four-parts", "a/b/c/d"),
    Name("with-a-cluster", "persistent://a/b/c/d"),
    Name("without-a-tenant", "persistent:///b/c"),
    Name("without-a-topic", "persistent://a/b/"),
    Name("without-a-namespace", "persistent://a/b"),
    Name("blank-topic", "persistent://a/b/ "),
    Name("slash-in-the-topic", "persistent://a/b//c"),
    Name("unknown-domain", "kafka://a/b/c"),
    Name("no-domain", "://x"),
    Name("tenant-with-another-character", "persistent://a!/b/c"),
    Name("namespace-with-another-character", "persistent://a/b!/c"),
    Name("segment-of-a-scalable-topic", "segment://a/b/c"),
    Name("scalable-topic", "topic://a/b/c", of_real="has such topics"),
    Name("partition-of-a-blank-topic", "-partition-3", of_real="gives no answer, and never gives the permit back"),
)

PATHS: Final = (
    Name("blank-topic", "persistent/public/default/%20"),
    Name("slash-in-the-topic", "persistent/public/default/a%2Fb"),
    Name("tenant-with-another-character", "persistent/a!/b/c"),
    Name("partition-of-a-blank-topic", "persistent/public/default/-partition-3", of_real="answers 500"),
)


def refusals_of_name(service_url: str, text: str) -> Iterator[tuple[str, int, str]]:
    """What each command that names a topic is answered: the type of the answer, the code and the first words."""
    frames = (
        commands.partitioned_metadata(1, text),
        commands.partitioned_metadata(1, text, create=False),
        commands.lookup(1, text),
        commands.producer(1, 1, text),
        commands.subscribe(1, 1, text, "s"),
    )
    for frame in frames:
        with RawClient(service_url) as client:
            answer = client.ask(frame)
        yield type(answer).__name__, answer.error, answer.message[:20]


REFUSALS: Final = [
    (kind.__name__, pb.InvalidTopicName, "Invalid topic name: ")
    for kind in (
        pb.CommandPartitionedTopicMetadataResponse,
        pb.CommandPartitionedTopicMetadataResponse,
        pb.CommandLookupTopicResponse,
        pb.CommandError,
        pb.CommandError,
    )
]
"""What `refusals_of_name` must be: the type of the answer follows the type of the request."""


def statuses_of_path(web_url: str, path: str) -> list[int]:
    """The status of each call about the topic."""
    address = urlsplit(web_url)
    assert address.hostname is not None
    statuses = []
    for method, suffix in (("GET", "/partitions"), ("GET", "/partitions?checkAllowAutoCreation=true"), ("PUT", "")):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        connection.request(method, f"/admin/v2/{path}{suffix}")
        statuses.append(connection.getresponse().status)
        connection.close()
    return statuses

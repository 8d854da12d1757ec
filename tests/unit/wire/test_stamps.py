"""Schema versions of entries that are sent to another cluster; the marks of copies: tests/unit/replication."""

from __future__ import annotations

import pytest

from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.entries import build_entry, parse_entry, verify_checksum
from interpulse.wire.stamps import with_schema_version


def entry(version: bytes | None) -> bytes:
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=7, publish_time=1, schema_version=version)
    return build_entry(metadata.SerializeToString(), b"payload")


@pytest.mark.parametrize(
    ("version", "before", "after", "expected"),
    [(b"\x01", b"\x01", b"\x02", b"\x02"), (b"\x01", b"\x01", b"", b""), (b"\x03", b"\x01", b"\x02", b"\x03")],
    ids=["another", "none", "not that of the producer"],
)
def test_version_when_the_schema_has_another_number_elsewhere(
    version: bytes, before: bytes, after: bytes, expected: bytes
) -> None:
    changed = with_schema_version(entry(version), before, after)
    parsed = parse_entry(changed)
    assert verify_checksum(changed)
    assert (parsed.metadata.schema_version, parsed.metadata.sequence_id) == (expected, 7)
    assert bytes(parsed.payload) == b"payload"

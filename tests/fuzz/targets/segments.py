"""Files of the log, damaged in ways that their checksums do not show: what is read is whole, or refused as damaged."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack

from crc32c import crc32c

from interpulse.storage.logs.journal import Run
from interpulse.storage.segments.records import (
    RECORD_HEAD,
    DamagedRecord,
    Row,
    check_body,
    encode_chunk,
    encode_record,
    find_record,
    location,
    pack_index_head,
    pack_segment_head,
    parse_entries,
    parse_index,
    parse_record_head,
    segment_head_version,
)

NUMBER = 1
OFFSET = 32
BODY_CHECKSUM_AT = 32


def one(data: bytes) -> None:
    segment_head_version(data)
    at = find_record(data, NUMBER, 0, 0)
    assert at < len(data)
    read(signed_record(data))
    parse_index(data, NUMBER)
    index = parse_index(signed_index(data), NUMBER)
    assert len(list(index.plain_rows())) == len(index.rows)


def read(content: bytes) -> None:
    try:
        head = parse_record_head(content, location(NUMBER, OFFSET))
        check_body(head, content)
        entries = parse_entries(head, content[: head.length], 0, head.entries)
        assert len(entries) == head.entries
        assert sum(map(len, entries)) + 4 * head.entries == head.body_length
    except DamagedRecord as error:
        assert str(error)


def signed_record(data: bytes) -> bytes:
    """The same with right checksums, as of a writer that went wrong."""
    head, body = data[:BODY_CHECKSUM_AT].ljust(BODY_CHECKSUM_AT, b"\0"), data[RECORD_HEAD:]
    length = int.from_bytes(head[24:28], "little")
    head = head[:BODY_CHECKSUM_AT] + pack("<I", crc32c(body[:length]))
    return head + pack("<I", crc32c(head, location(NUMBER, OFFSET))) + body


def signed_index(data: bytes) -> bytes:
    """One chunk of the index, with a right checksum."""
    chunk = encode_chunk([], 0)
    rest = data[8:].ljust(len(chunk) - 8, b"\0")
    return pack_index_head(NUMBER) + chunk[:4] + pack("<I", crc32c(rest)) + rest


def seeds() -> Iterator[bytes]:
    yield b"".join(encode_record(Run(7, 0, [b"a", b"", b"ccc"]), 0, location(NUMBER, OFFSET)))
    yield pack_segment_head(NUMBER) + b"".join(encode_record(Run(2**40, 5, [b"x" * 99]), 0, location(NUMBER, OFFSET)))
    yield encode_chunk([Row(7, 0, 3, OFFSET, 60)], 92, sealed=True)
    yield pack_index_head(NUMBER) + encode_chunk([Row(7, 0, 3, OFFSET, 60)], 92)

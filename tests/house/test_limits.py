"""The page of limits: its keys and defaults are those of the broker."""

from __future__ import annotations

import re

import pytest

from interpulse.broker.config.broker_config import settings_by_key
from interpulse.serving.settings import as_text
from tests.house.sources import ROOT

UNIT = "tests/unit"
BINARY, LIVE = f"{UNIT}/broker/binary", f"{UNIT}/broker/live"
CONNECTION = f"{BINARY}/transport/test_connection.py"
WEB = "tests/integration/test_web_limits.py"

TESTED = {
    "connections to the binary ports": f"{BINARY}/test_server.py::test_connections_when_at_the_limit",
    "connections from one address": f"{BINARY}/test_server.py::test_connections_when_at_the_limit",
    "connections to the web ports": f"{WEB}::test_connections_when_at_the_limit",
    "connections to all ports": f"{UNIT}/serving/test_admission.py::test_quota_when_several_services_share_one",
    "time until a client of the binary port completes the handshake": (
        f"{UNIT}/wire/test_server.py::test_tick_when_the_greeting"
    ),
    "time until a client completes the TLS handshake": f"{UNIT}/serving/test_tls.py::test_handshake_when",
    "time until an HTTP request is complete, and its answer is read": f"{WEB}::test_client_when_it_sends_a_byte",
    "time without progress in a streamed answer: a stream of events, an export, a long list": (
        f"{UNIT}/serving/test_web_connections.py::test_stream_when_its_reader_never_reads"
    ),
    "concurrent lookups and metadata queries": f"{BINARY}/test_topics.py::test_metadata_when_no_permit_is_left",
    "names in one batch lookup": f"{UNIT}/broker/topics/lookup/test_lookup.py::test_batch_when",
    "topics that load at the same time": f"{LIVE}/registry/test_load_permits.py::test_loads_when_at_the_limit",
    "concurrent requests of one connection": f"{CONNECTION}::test_requests_when_at_the_limit",
    "commands before a client is authenticated": f"{UNIT}/wire/test_server.py::test_commands_when_too_many_wait",
    "concurrent calls of the web service": f"{WEB}::test_calls_when_as_many_are_under_way_as_allowed",
    "calls of the web service per second": f"{WEB}::test_requests_when_there_are_more_than_allowed",
    "header fields, path and query of a call": f"{WEB}::test_request_when_as_large_as_allowed",
    "charts and followed topics in the console": (
        f"{UNIT}/console/test_sampling.py::test_room_when_as_many_watch_as_may"
    ),
    "body of a call": f"{WEB}::test_request_when_as_large_as_allowed",
    "size of a message; a frame may have 10 KiB more": f"{UNIT}/wire/test_frames.py::test_frame_when_as_large_as",
    "unanswered entries of a connection": f"{CONNECTION}::test_publishes_when_limit_is_reached",
    "unanswered bytes of a connection": f"{CONNECTION}::test_publishes_when_byte_limit_is_reached",
    "unanswered bytes of all connections": f"{CONNECTION}::test_publishes_when_all_connections_together",
    "bytes that wait for a client to read": f"{CONNECTION}::test_output_when_above_the_high_water_mark",
    "bytes that wait, including answers to requests": f"{CONNECTION}::test_output_when_client_does_not_read",
    "size of a decompressed payload": f"{UNIT}/wire/test_compression.py::test_bomb_when_decompressed",
    "topics of a namespace": f"{UNIT}/rules/test_topic_view.py::test_",
    "partitions of a topic": f"{UNIT}/rules/test_topics.py::test_",
    "producers of a topic": f"{LIVE}/topic/test_topic_clients.py::test_producers",
    "consumers of a topic": f"{LIVE}/topic/test_topic_clients.py::test_consumers_of_a_topic",
    "consumers of a subscription": f"{LIVE}/topic/test_topic_clients.py::test_consumers_of_a_subscription",
    "subscriptions of a topic": f"{LIVE}/topic/test_topic_clients.py::test_subscriptions",
    "length of a new name, in a URL": f"{UNIT}/model/test_names.py::test_name_when_too_long",
    "length of a topic pattern": f"{BINARY}/test_topics.py::test_watcher_when_pattern_is_as_long_as",
    "topic list watchers of one connection": f"{BINARY}/test_topics.py::test_watchers_when_there",
    "depth of a schema definition": (
        f"{UNIT}/rules/schema_compatibility/test_avro_types.py::test_definition_when_nested_to_the_limit"
    ),
    "size of a schema definition": f"{UNIT}/wire/test_frames.py::test_frame_when_as_large_as",
}
"""Where each is tried at the limit, and one above."""

LINES = (ROOT / "docs/reference/limits.md").read_text().splitlines()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES if line.startswith("| ")]
LIMITS = [row for row in ROWS if row[0] not in ("limit", "---")]


@pytest.mark.parametrize("row", LIMITS, ids=[row[0] for row in LIMITS])
def test_limit_when_it_has_a_key_then_its_default_is_that_of_the_broker(row: list[str]) -> None:
    fields = settings_by_key()
    keys = re.findall(r"`([^`]+)`", row[1])
    assert set(keys) <= set(fields)
    if keys:
        [default] = re.findall(r"`([^`]+)`", row[2])
        assert as_text(fields[keys[0]].default) == default

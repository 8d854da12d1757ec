"""The Java client's pattern consumer is told of topics, by our broker as by a real one."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest

from interpulse.testing import InProcessBroker
from tests.interop.real_pulsar import Address

pytestmark = [pytest.mark.interop, pytest.mark.slow]

EXPECTED = {
    "early": "early",
    "late": "late",
    "late partitioned": "parts",
    "others go on": "after deletion",
    "left": "[f-early, f-parts-partition-0, f-parts-partition-1, other]",
    "created again": "again",
    "pattern that RE2 does not know": "late",
    "topics of a consumer with properties": "2",
}


def check(java_check: Callable[..., str], service_url: str, web_url: str, *, listed: str) -> None:
    """``listed`` are the topics with the properties that are asked for: without a plug-in a real broker lists all."""
    expected = EXPECTED | {"listed by properties": listed}
    printed = java_check("TopicWatching.java", service_url, web_url, f"public/{uuid4().hex[:8]}")
    said = dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)
    assert {name: said.get(name) for name in expected} == expected


def test_java_pattern_consumer_when_topics_come_and_go_then_our_broker_tells_it(
    pulsar_broker: InProcessBroker, java_check: Callable[..., str]
) -> None:
    check(java_check, pulsar_broker.service_url, pulsar_broker.web_url, listed="[p-chosen]")


def test_java_pattern_consumer_when_topics_come_and_go_then_a_real_broker_tells_it(
    real_pulsar: Address, java_check: Callable[..., str]
) -> None:
    check(java_check, real_pulsar.service_url, real_pulsar.web_url, listed="[p-chosen, p-other]")

"""Topics that the options of a read name, existing or not."""

from __future__ import annotations

import pytest

from interpulse.spark.options.option import Purpose
from interpulse.spark.reading.read_options import parse_read_options


@pytest.mark.parametrize(
    ("options", "named", "others"),
    [
        ({"topics": "t/ns/a,b"}, ["t/ns/a", "t/ns/a-partition-3", "public/default/b"], ["t/ns/b", "t/ns/aa"]),
        ({"topics": "t/ns/a-partition-1"}, ["t/ns/a-partition-1"], ["t/ns/a-partition-2", "t/ns/a"]),
        ({"assign": '{"t/ns/a": [1]}'}, ["t/ns/a-partition-1"], ["t/ns/a-partition-0"]),
        ({"topicsPattern": "t/ns/a.*"}, ["t/ns/a", "t/ns/ab-partition-0"], ["t/ns/b", "t/other/a"]),
        ({"topicsPattern": "persistent://t/ns/.*"}, ["t/ns/a"], ["t/ns/__change_events"]),
        ({"topicsPattern": "t/ns/.*", "includeSystemTopics": "true"}, ["t/ns/__change_events"], []),
        ({"topicsPattern": "t/ns/.*", "topicsExclude": "x$"}, ["t/ns/a"], ["t/ns/ax", "t/ns/ax-partition-0"]),
        ({"topics": "t/ns/a,t/ns/b-partition-1", "topicsExclude": "-1$"}, ["t/ns/a"], ["t/ns/b-partition-1"]),
    ],
    ids=["list", "partition", "assigned", "pattern", "complete-pattern", "system", "excluded", "excluded-partition"],
)
def test_topic_is_named(options, named, others):
    parsed = parse_read_options({"service.url": "pulsar://x:1", **options}, Purpose.STREAM_READ)
    assert [name for name in named if not parsed.names(name)] == []
    assert [name for name in others if parsed.names(name)] == []

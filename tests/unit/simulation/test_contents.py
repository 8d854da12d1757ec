"""Contents that differ from what a broker was filled with."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.simulation.contents import Seen, differences, of_subscription

TOPIC = "persistent://a/b/c"
FIRST, SECOND, THIRD = (Seen(b"c/%d" % number, "k", (), "named", number, 1000, 0, -1) for number in range(3))


@pytest.mark.parametrize(
    ("read", "broken"),
    [
        ([FIRST, SECOND], []),
        ([SECOND], ["L1"]),
        ([FIRST, SECOND, THIRD], ["L4"]),
        ([FIRST, SECOND._replace(published_ms=1001)], ["L1", "L4"]),
        ([FIRST, SECOND, SECOND], ["L2"]),
        ([SECOND, FIRST], ["L3"]),
    ],
    ids=["equal", "lost", "new", "changed", "doubled", "reordered"],
)
def test_topic_when_it_differs_then_the_broken_property_is_named(read: Sequence[Seen], broken: list[str]) -> None:
    assert [finding.property for finding in differences(TOPIC, [FIRST, SECOND], read)] == broken


@pytest.mark.parametrize(
    ("received", "broken"),
    [
        ([b"c/1", b"c/2"], []),
        ([b"c/2"], ["S1"]),
        ([b"c/0", b"c/1", b"c/2"], ["S2"]),
        ([b"c/2", b"c/1"], ["S4"]),
    ],
    ids=["equal", "cursor ahead", "cursor behind", "reordered"],
)
def test_subscription_when_it_gets_other_messages_then_the_broken_property_is_named(
    received: Sequence[bytes], broken: list[str]
) -> None:
    found = of_subscription(TOPIC, "s", [b"c/1", b"c/2"], received)
    assert [finding.property for finding in found] == broken

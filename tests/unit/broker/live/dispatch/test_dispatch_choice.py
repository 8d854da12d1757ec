"""Which consumers can be beside each other, and which stand in the way."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import KeyRange, KeySharing, SubscribeRequest, SubType
from interpulse.broker.live.dispatch.dispatch_choice import fits, make_way
from interpulse.model.errors import ConsumerBusy

STICKY, STICKY_TOO = KeySharing((KeyRange(0, 9),)), KeySharing((KeyRange(10, 19),))
ANY_ORDER = KeySharing((), True)


def request(sub_type: SubType, sharing: KeySharing = KeySharing()) -> SubscribeRequest:  # noqa: B008  # frozen
    return SubscribeRequest(1, "s", sub_type, key_sharing=sharing)


class Connected:
    """A consumer whose client is gone."""

    def __init__(self, first: SubscribeRequest) -> None:
        self.request = first
        self.sink = self
        self.closed = False

    async def is_alive(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("coming", "there", "why"),
    [
        (request(SubType.SHARED), request(SubType.SHARED), ""),
        (request(SubType.SHARED, ANY_ORDER), request(SubType.SHARED), ""),
        (request(SubType.KEY_SHARED, STICKY), request(SubType.KEY_SHARED, STICKY_TOO), ""),
        (request(SubType.KEY_SHARED, ANY_ORDER), request(SubType.KEY_SHARED, ANY_ORDER), ""),
        (
            request(SubType.FAILOVER),
            request(SubType.EXCLUSIVE),
            "type of 'Exclusive' is different than the connecting consumer's type 'Failover'.",
        ),
        (
            request(SubType.KEY_SHARED),
            request(SubType.KEY_SHARED, STICKY),
            "key_shared mode of 'STICKY' is different than the connecting consumer's key_shared mode 'AUTO_SPLIT'.",
        ),
        (
            request(SubType.KEY_SHARED, ANY_ORDER),
            request(SubType.KEY_SHARED),
            "does not allow out of order delivery while the connecting consumer allows it.",
        ),
        (
            request(SubType.KEY_SHARED),
            request(SubType.KEY_SHARED, ANY_ORDER),
            "allows out of order delivery while the connecting consumer does not allow it.",
        ),
    ],
)
async def test_consumers_fit_together_or_learn_why_not(
    coming: SubscribeRequest, there: SubscribeRequest, why: str
) -> None:
    assert fits(coming, there) is (why == "")
    connected: Any = [Connected(there)]
    if not why:
        await make_way(coming, connected)
        return
    with pytest.raises(ConsumerBusy) as refused:
        await make_way(coming, connected)
    assert str(refused.value) == f"Subscription is of different type. Active subscription {why}"


@pytest.mark.parametrize(
    ("sub_type", "wanted", "taken", "expected"),
    [
        (SubType.EXCLUSIVE, KeySharing(), KeySharing(), True),
        (SubType.SHARED, KeySharing(), KeySharing(), False),
        (SubType.SHARED, STICKY, STICKY, False),
        (SubType.KEY_SHARED, STICKY, STICKY, True),
        (SubType.KEY_SHARED, STICKY, STICKY_TOO, False),
        (SubType.KEY_SHARED, KeySharing(), KeySharing(), False),
    ],
)
async def test_consumers_in_the_way_close_if_their_client_is_gone(
    sub_type: SubType, wanted: KeySharing, taken: KeySharing, expected: bool
) -> None:
    connected: Any = [Connected(request(sub_type, taken))]
    await make_way(request(sub_type, wanted), connected)
    assert connected[0].closed is expected

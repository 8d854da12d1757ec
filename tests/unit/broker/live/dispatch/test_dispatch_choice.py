"""Which consumers can be beside each other, and which stand in the way."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.broker.live.api import KeyRange, KeySharing, SubscribeRequest, SubType
from interpulse.broker.live.dispatch.dispatch_choice import check_fitting, fits, in_the_way
from interpulse.model.errors import ConsumerBusy

STICKY, STICKY_TOO = KeySharing((KeyRange(0, 9),)), KeySharing((KeyRange(10, 19),))
ANY_ORDER = KeySharing((), True)


def request(sub_type: SubType, sharing: KeySharing = KeySharing()) -> SubscribeRequest:  # noqa: B008  # frozen
    return SubscribeRequest(1, "s", sub_type, key_sharing=sharing)


class Connected:
    def __init__(self, sub_type: SubType, sharing: KeySharing) -> None:
        self.request = request(sub_type, sharing)


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
def test_consumers_fit_together_or_are_told_why_not(
    coming: SubscribeRequest, there: SubscribeRequest, why: str
) -> None:
    assert fits(coming, there) is (why == "")
    if not why:
        return check_fitting(coming, there)
    with pytest.raises(ConsumerBusy) as refused:
        check_fitting(coming, there)
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
def test_consumers_in_the_way_hold_what_another_one_needs_alone(
    sub_type: SubType, wanted: KeySharing, taken: KeySharing, expected: bool
) -> None:
    there: Any = [Connected(sub_type, taken)]
    assert in_the_way(request(sub_type, wanted), there) is expected
    assert not in_the_way(request(sub_type, wanted), [])

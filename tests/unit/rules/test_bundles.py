"""Naming a bundle."""

import pytest

from interpulse.model.errors import PreconditionFailed
from interpulse.rules.bundles import checked_bundle

BOUNDARIES = ("0x00000000", "0x80000000", "0xffffffff")


@pytest.mark.parametrize("text", ["0x00000000_0x80000000", "0X80000000_0XFFFFFFFF"])
def test_bundle_when_it_is_one_then_is_taken(text: str) -> None:
    assert checked_bundle(text, BOUNDARIES) == text.lower()


@pytest.mark.parametrize(
    "text", ["", "half", "0x00000000", "0x00000000_0xffffffff", "0x80000000_0x00000000", "x" * 9999]
)
def test_bundle_when_it_is_none_then_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(PreconditionFailed, match="there is 0x00000000_0x80000000, 0x80000000_0xffffffff") as refused:
        checked_bundle(text, BOUNDARIES)
    assert len(str(refused.value)) < 1000

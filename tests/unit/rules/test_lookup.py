"""Bundles, checked against what a real Pulsar 5.0 answers."""

from __future__ import annotations

from itertools import pairwise

import pytest

from interpulse.model.names import TopicName
from interpulse.rules.lookup import BUNDLES_DEFAULT, bundle_boundaries, bundle_of

QUARTERS = ("0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff")


def test_boundaries_are_pulsars() -> None:
    assert bundle_boundaries(BUNDLES_DEFAULT) == QUARTERS
    assert bundle_boundaries(1) == ("0x00000000", "0xffffffff")


def test_bundle_is_the_one_a_real_broker_names() -> None:
    assert bundle_of(TopicName.parse("persistent://demo/a/t"), QUARTERS) == "0x00000000_0x40000000"


@pytest.mark.parametrize("bundles", [1, 2, 3, 4, 7, 64])
def test_every_topic_has_one_bundle(bundles: int) -> None:
    boundaries = bundle_boundaries(bundles)
    found = {bundle_of(TopicName.parse(f"t{number}"), boundaries) for number in range(500)}
    assert found == {f"{lower}_{upper}" for lower, upper in pairwise(boundaries)}

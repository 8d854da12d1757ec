"""Naming a bundle, and dividing one."""

import pytest

from interpulse.model.errors import InvalidRequest, NotFound, PreconditionFailed
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.bundles import (
    ONE_BUNDLE,
    boundaries_of,
    bundle_boundaries,
    bundle_hash,
    bundles_of_new_namespace,
    checked_bundle,
    named_bundle,
    split_at,
    split_positions,
)

BOUNDARIES = ("0x00000000", "0x80000000", "0xffffffff")


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param(None, ONE_BUNDLE, id="no-policies"),
        pytest.param(NamespacePolicies(), ONE_BUNDLE, id="none-stored"),
        pytest.param(NamespacePolicies(other={"bundles": {"numBundles": 1}}), ONE_BUNDLE, id="a-count-alone"),
        pytest.param(NamespacePolicies(other={"bundles": {"boundaries": list(BOUNDARIES)}}), BOUNDARIES, id="stored"),
    ],
)
def test_boundaries_are_those_that_are_stored(policies: NamespacePolicies | None, expected: tuple[str, ...]) -> None:
    assert boundaries_of(policies) == expected


def test_bundles_are_as_wide_as_a_whole_part_of_all_hashes() -> None:
    # 641 divides 2**32 + 1, where there are 2**32 hashes.
    assert bundle_boundaries(641)[1] == f"0x{2**32 // 641:08x}" == "0x00663d80"


def test_bundles_of_a_new_namespace_are_65536_at_most() -> None:
    assert bundles_of_new_namespace({"numBundles": 65_536})["numBundles"] == 65_536
    with pytest.raises(InvalidRequest, match="1 to 65536"):
        bundles_of_new_namespace({"numBundles": 65_537})


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


FIVE = sorted((TopicName.parse(f"t/e2/x{number}") for number in range(1, 6)), key=bundle_hash)
"""They lie at 09dd42e1, 7eda7277, 90d4135b, 97b9d742 and e0bee7d4."""


@pytest.mark.parametrize(
    ("bundle", "algorithm", "topics", "positions", "expected"),
    [
        pytest.param("0x00000000_0x40000000", "range_equally_divide", [], [], [0x20000000], id="middle"),
        pytest.param("0xc0000000_0xffffffff", "range_equally_divide", [], [], [0xDFFFFFFF], id="middle-of-the-last"),
        pytest.param("0x00000000_0x00000001", "range_equally_divide", [], [], [], id="nothing-in-between"),
        pytest.param(
            "0x00000000_0x9446f54e", "topic_count_equally_divide", FIVE[:3], [], [0x445BDAAC], id="odd-as-measured"
        ),
        pytest.param("0x00000000_0xffffffff", "topic_count_equally_divide", FIVE[:4], [], [0x87D742E9], id="even"),
        pytest.param("0x00000000_0xffffffff", "topic_count_equally_divide", FIVE[:2], [], [0x445BDAAC], id="two"),
        pytest.param("0x00000000_0xffffffff", "topic_count_equally_divide", FIVE[2:4], [], [0x9446F54E], id="uneven"),
        pytest.param("0x00000000_0xffffffff", "topic_count_equally_divide", FIVE[:1], [], [], id="one-topic"),
        pytest.param("0x00000000_0xffffffff", "topic_count_equally_divide", [], [], [], id="no-topic"),
        pytest.param(
            "0x00000010_0x00000020", "specified_positions_divide", [], [0x20, 0x18, 0x10, 0x18, 0x11, 0], [0x11, 0x18],
            id="those-inside",
        ),
    ],
)  # fmt: skip
def test_bundle_when_divided_then_at(
    bundle: str, algorithm: str, topics: list[TopicName], positions: list[int], expected: list[int]
) -> None:
    assert split_positions(bundle, algorithm=algorithm, topics=topics, positions=positions) == expected


@pytest.mark.parametrize(
    ("algorithm", "positions", "words"),
    [
        (
            "nonsense",
            [],
            "Unsupported namespace bundle split algorithm 'nonsense', supported algorithms are "
            r"\[range_equally_divide, topic_count_equally_divide, specified_positions_divide\]",
        ),
        ("flow_or_qps_equally_divide", [], "Unsupported"),
        ("specified_positions_divide", [], "splitBoundaries must not be empty"),
        ("specified_positions_divide", [0x10, 0x21], "in bundle 0x00000010_0x00000020: they are numbers from 17 to 31"),
    ],
)
def test_bundle_when_it_cannot_be_divided_so_then_refused(algorithm: str, positions: list[int], words: str) -> None:
    with pytest.raises(PreconditionFailed, match=words):
        split_positions("0x00000010_0x00000020", algorithm=algorithm, topics=FIVE, positions=positions)


def test_boundaries_when_split_then_are_sorted_and_limited() -> None:
    assert split_at(BOUNDARIES, [0x40000000, 0xC0000000]) == (
        "0x00000000",
        "0x40000000",
        "0x80000000",
        "0xc0000000",
        "0xffffffff",
    )
    assert len(split_at(BOUNDARIES, range(1, 65_535))) == 65_537
    with pytest.raises(PreconditionFailed, match="65536 bundles; this would make 65537"):
        split_at(BOUNDARIES, range(1, 65_536))


def test_largest_bundle_is_the_first_with_most_topics() -> None:
    assert named_bundle("LARGEST", BOUNDARIES, FIVE) == "0x80000000_0xffffffff"
    assert named_bundle("LARGEST", BOUNDARIES, FIVE[1:3]) == "0x00000000_0x80000000"
    assert named_bundle("0X00000000_0x80000000", BOUNDARIES, []) == "0x00000000_0x80000000"
    for text in ("LARGEST", "HOT"):
        with pytest.raises(NotFound, match=f"Bundle range {text} not found"):
            named_bundle(text, BOUNDARIES, [])

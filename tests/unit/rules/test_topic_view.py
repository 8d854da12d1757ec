"""The predicates of topics: the rows of PIP-344 about what exists and may be created."""

from __future__ import annotations

import pytest

from interpulse.model.topics import Existence, TopicKind
from interpulse.rules.topic_view import (
    NamespaceStanding,
    Part,
    TopicView,
    existence,
    first_part,
    looked_at,
    looks_at,
    may_create,
    metadata_names,
)
from tests.unit.rules.topic_world import HEARTBEAT, OFF, topic, view_of


class TestExistence:
    @pytest.mark.parametrize(
        ("view", "expected"),
        [
            pytest.param(view_of("x", 3), Existence(TopicKind.PARTITIONED, 3), id="base-with-metadata"),
            pytest.param(view_of("x", 3, recorded=True), Existence(TopicKind.PARTITIONED, 3), id="base-with-both"),
            pytest.param(view_of("x", recorded=True), Existence(TopicKind.NON_PARTITIONED), id="base-with-record"),
            pytest.param(view_of("x"), Existence(TopicKind.ABSENT), id="nothing"),
            pytest.param(view_of("x-partition-1", 3), Existence(TopicKind.ABSENT), id="partition-without-record"),
            pytest.param(
                view_of("x-partition-1", 3, recorded=True), Existence(TopicKind.NON_PARTITIONED), id="partition"
            ),
            pytest.param(
                view_of("x-partition-7", 3, recorded=True), Existence(TopicKind.NON_PARTITIONED), id="orphan-partition"
            ),
            pytest.param(
                view_of("non-persistent://public/default/x-partition-1", 3),
                Existence(TopicKind.NON_PARTITIONED),
                id="non-persistent-partition-inside",
            ),
            pytest.param(
                view_of("non-persistent://public/default/x-partition-3", 3, recorded=True),
                Existence(TopicKind.ABSENT),
                id="non-persistent-partition-outside",
            ),
            pytest.param(
                view_of("non-persistent://public/default/x", recorded=True),
                Existence(TopicKind.NON_PARTITIONED),
                id="non-persistent-loaded",
            ),
            pytest.param(
                view_of(HEARTBEAT, namespace=NamespaceStanding.MISSING),
                Existence(TopicKind.NON_PARTITIONED),
                id="heartbeat",
            ),
        ],
    )
    def test_existence(self, view: TopicView, expected: Existence) -> None:
        assert existence(view) == expected


class TestMayCreate:
    """The first row that fits gives the answer."""

    @pytest.mark.parametrize(
        ("view", "expected"),
        [
            pytest.param(view_of("x", namespace=NamespaceStanding.DELETED), False, id="row1-namespace-being-deleted"),
            pytest.param(
                view_of("__change_events", namespace=NamespaceStanding.DELETED), False, id="row1-beats-system-topic"
            ),
            pytest.param(view_of("x "), False, id="row2-name-with-a-trailing-blank"),
            pytest.param(view_of("__change_events", auto_creation=OFF), True, id="row4-system-topic"),
            pytest.param(
                view_of("__change_events", auto_creation=OFF, system_topics_enabled=False),
                False,
                id="row4-system-topics-off",
            ),
            pytest.param(view_of("x-partition-1", 3, deleted=True), False, id="row5-partition-being-deleted"),
            pytest.param(view_of("x-partition-1", 3, auto_creation=OFF), True, id="row6-inside-whatever-the-policy"),
            pytest.param(view_of("x-partition-3", 3), False, id="row6-outside-whatever-the-policy"),
            pytest.param(view_of("x-partition-1"), True, id="row7-partition-name-without-metadata"),
            pytest.param(view_of("x"), True, id="row7-allowed"),
            pytest.param(view_of("x", auto_creation=OFF), False, id="row7-not-allowed"),
        ],
    )
    def test_may_create(self, view: TopicView, expected: bool) -> None:
        assert may_create(view) is expected


class TestMetadataNames:
    @pytest.mark.parametrize(
        ("local", "expected"),
        [
            ("x", ["x"]),
            ("x-partition-1", ["x-partition-1", "x"]),
            ("x-partition-01", ["x-partition-01", "x"]),
            ("a-partition-1-partition-2", ["a-partition-1-partition-2", "a-partition-1", "a"]),
            ("-partition-abc", ["-partition-abc"]),
        ],
    )
    def test_metadata_names(self, local: str, expected: list[str]) -> None:
        assert [name.local_name for name in metadata_names(topic(local))] == expected

    @pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
    def test_first_part_is_of_the_same_namespace(self, domain: str) -> None:
        assert first_part(topic(f"{domain}://t/ns/a-partition-1-partition-2")) == topic(f"{domain}://t/ns/a")


def test_rule_declares_what_it_looks_at() -> None:
    @looks_at(Part.PARTITION_RECORDS, Part.RELATED_METADATA)
    def rule(view: TopicView) -> None: ...

    assert looked_at(rule) == (Part.PARTITION_RECORDS, Part.RELATED_METADATA)
    assert looked_at(existence) == ()

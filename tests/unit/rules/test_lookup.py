"""Bundles, checked against what a real Pulsar 5.0 answers; who serves a topic; and batches of topics (PIP-35)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpulse.model.errors import (
    InvalidRequest,
    InvalidTopicName,
    MetadataError,
    NamespaceElsewhere,
    NamespaceNotFound,
    PersistenceError,
    PulsarError,
    RequestTooLarge,
    ServerError,
    ServiceNotReady,
    TopicNotFound,
    Unauthorized,
)
from interpulse.model.names import NamespaceName, TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.bundles import (
    BUNDLES_DEFAULT,
    boundaries_of,
    bundle_boundaries,
    bundle_hash,
    bundle_of,
    bundles_of_new_namespace,
)
from interpulse.rules.lookup import (
    BatchAnswer,
    LookupTarget,
    NamespaceView,
    Owner,
    bundle_places,
    check_batch_size,
    find_owner,
    find_peer,
    requested_topics,
    sort_by_existence,
    sort_by_namespace,
    sort_by_owner,
    sort_by_permission,
)
from interpulse.rules.topic_view import NamespaceStanding

QUARTERS = ("0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff")
HERE = LookupTarget("pulsar://here:6650", web_url="http://here:8080", broker_id="here:8080")
THERE = LookupTarget("pulsar://there:6650", redirect=True, authoritative=False)
PEER = LookupTarget("pulsar://peer:6650", redirect=True)
A = NamespaceName("t", "a")


def quartered(name: NamespaceName) -> NamespaceView:
    return NamespaceView(name, boundaries=QUARTERS)


VIEW = quartered(A)


def find_target(topic: TopicName, namespace: NamespaceView, owner: Owner) -> LookupTarget:
    """Where the client of a topic is sent."""
    if not namespace.serves(topic):
        return find_peer(namespace)
    return find_owner(namespace, namespace.bundle_index(topic), owner)


# --- bundles


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


@given(st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1).filter(str.strip))
def test_bundle_holds_the_hash_of_its_topic(local_name: str) -> None:
    topic = TopicName.of("persistent", "t", "a", local_name + "x")
    lower, upper = (int(end, 16) for end in bundle_of(topic, QUARTERS).split("_"))
    assert lower <= bundle_hash(topic) <= upper


def test_boundaries_of_a_namespace_are_its_policies() -> None:
    stored = NamespacePolicies(other={"bundles": {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}})
    assert boundaries_of(stored) == ("0x00000000", "0xffffffff")
    assert boundaries_of(NamespacePolicies()) == boundaries_of(None) == ("0x00000000", "0xffffffff")


@pytest.mark.parametrize(
    ("requested", "boundaries"),
    [
        pytest.param(None, QUARTERS, id="nothing"),
        pytest.param({"numBundles": 0}, QUARTERS, id="zero"),
        pytest.param({"numBundles": -1}, QUARTERS, id="negative"),
        pytest.param({"numBundles": 2}, ("0x00000000", "0x80000000", "0xffffffff"), id="count"),
        pytest.param({"numBundles": 2, "boundaries": []}, ("0x00000000", "0x80000000", "0xffffffff"), id="empty"),
        pytest.param(
            {"numBundles": 7, "boundaries": ["0x10000000", "0x00000000", "0xffffffff", "0x10000000"]},
            ("0x00000000", "0x10000000", "0xffffffff"),
            id="boundaries-win-over-the-count-sorted-and-once",
        ),
        pytest.param({"boundaries": ["0x00000000", "0xffffffff"]}, QUARTERS, id="boundaries-without-count"),
    ],
)
def test_new_namespace_gets_the_bundles_asked_for(requested: Any, boundaries: Sequence[str]) -> None:
    expected = {"boundaries": list(boundaries), "numBundles": len(boundaries) - 1}
    assert bundles_of_new_namespace(requested) == expected


@pytest.mark.parametrize(
    "requested",
    [
        {"numBundles": 2**32},
        {"numBundles": 10**30},
        {"numBundles": 1, "boundaries": ["0x00000000", "0x80000000"]},
        {"numBundles": 1, "boundaries": ["0x00000001", "0xffffffff"]},
        {"numBundles": 1, "boundaries": ["0x00000000", "oops"]},
        {"numBundles": 1, "boundaries": [0, 1]},
        {"numBundles": 1, "boundaries": 5},
    ],
)
def test_bundles_that_cannot_be_are_refused(requested: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"[Bb]undle"):
        bundles_of_new_namespace(requested)


# --- one topic

OWNERS: dict[str, LookupTarget | PulsarError] = {
    "0x00000000_0x40000000": HERE,
    "0x40000000_0x80000000": THERE,
    "0x80000000_0xc0000000": MetadataError("bundle is being unloaded"),
    "0xc0000000_0xffffffff": ServiceNotReady("no broker is available"),
}


def owned_by(owners: dict[str, LookupTarget | PulsarError]) -> Owner:
    def owner(namespace: NamespaceName, bundle: str) -> LookupTarget:
        found = owners[bundle]
        if isinstance(found, PulsarError):
            raise found
        return found

    return owner


def all_owned(namespace: NamespaceName, bundle: str) -> LookupTarget:
    return HERE


def topics_in(quarter: int, count: int, namespace: NamespaceName = A) -> list[str]:
    """Names that lie in one quarter of the hashes."""
    names = (f"persistent://{namespace}/{number}" for number in range(1000))
    found = [name for name in names if bundle_hash(TopicName.parse(name)) >> 30 == quarter]
    return found[:count]


def outcome(call: Callable[[], LookupTarget]) -> LookupTarget | tuple[type[PulsarError], str]:
    try:
        return call()
    except PulsarError as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    ("quarter", "expected"),
    [
        pytest.param(0, HERE, id="row-6-connect"),
        pytest.param(1, THERE, id="row-6-redirect-with-its-authority"),
        pytest.param(2, (MetadataError, "bundle is being unloaded"), id="row-7-unloading"),
        pytest.param(3, (ServiceNotReady, "no broker is available"), id="row-7-no-broker"),
    ],
)
def test_lookup_follows_the_owner_of_the_bundle(quarter: int, expected: Any) -> None:
    (name,) = topics_in(quarter, 1)
    topic = TopicName.parse(name)
    assert outcome(lambda: find_target(topic, VIEW, owned_by(OWNERS))) == expected


def test_lookup_when_the_owner_cannot_be_found_for_another_reason_then_the_client_asks_again() -> None:
    def owner(namespace: NamespaceName, bundle: str) -> LookupTarget:
        raise PersistenceError("disk is on fire")

    topic = TopicName.parse("persistent://t/a/x")
    assert outcome(lambda: find_target(topic, VIEW, owner)) == (ServiceNotReady, "disk is on fire")


ORDINARY, SYSTEM = TopicName.parse("persistent://t/a/x"), TopicName.parse("persistent://t/a/__change_events")
HEARTBEAT = TopicName.parse("persistent://pulsar/host:8080/x")


@pytest.mark.parametrize(
    ("topic", "standing", "peer", "expected"),
    [
        pytest.param(ORDINARY, NamespaceStanding.SERVED, None, HERE, id="served"),
        pytest.param(ORDINARY, NamespaceStanding.SERVED, PEER, HERE, id="served-whatever-the-peer"),
        pytest.param(ORDINARY, NamespaceStanding.MISSING, None, NamespaceNotFound, id="missing"),
        pytest.param(HEARTBEAT, NamespaceStanding.MISSING, None, HERE, id="heartbeat"),
        pytest.param(ORDINARY, NamespaceStanding.DELETED, None, NamespaceNotFound, id="deleted"),
        pytest.param(SYSTEM, NamespaceStanding.DELETED, None, HERE, id="deleted-system-topic"),
        pytest.param(ORDINARY, NamespaceStanding.NOT_SERVED, None, NamespaceElsewhere, id="no-cluster"),
        pytest.param(ORDINARY, NamespaceStanding.NOT_SERVED, PEER, PEER, id="peer"),
        pytest.param(
            ORDINARY,
            NamespaceStanding.NOT_SERVED,
            LookupTarget("", redirect=True),
            MetadataError,
            id="peer-without-url",
        ),
        pytest.param(
            ORDINARY,
            NamespaceStanding.NOT_SERVED,
            LookupTarget("", "pulsar+ssl://peer:6651", redirect=True),
            LookupTarget("", "pulsar+ssl://peer:6651", redirect=True),
            id="peer-with-tls-alone",
        ),
    ],
)
def test_lookup_asks_first_who_serves_the_namespace(
    topic: TopicName, standing: NamespaceStanding, peer: LookupTarget | None, expected: Any
) -> None:
    view = NamespaceView(topic.namespace_name, standing, peer=peer)
    found = outcome(lambda: find_target(topic, view, all_owned))
    assert found == expected if isinstance(expected, LookupTarget) else found[0] is expected  # type: ignore[index]
    assert answered([str(topic)], {topic.namespace_name: view}, all_owned)[str(topic)] == found


# --- many topics


def batch(
    names: Sequence[str], namespaces: dict[NamespaceName, NamespaceView | PulsarError], owner: Owner
) -> BatchAnswer:
    answer = BatchAnswer()
    topics = sort_by_namespace(requested_topics(names, answer), namespaces, answer)
    views = {name: view for name, view in namespaces.items() if isinstance(view, NamespaceView)}
    sort_by_owner(topics, bundle_places(topics, views), owner, answer)
    return answer


def flat(answer: BatchAnswer) -> list[tuple[str, Any]]:
    """Every topic of an answer with what it got."""
    served = [(topic, target) for target, topics in answer.groups.items() for topic in topics]
    failed = [(topic, (type(each.error), str(each.error))) for each in answer.failures for topic in each.topics]
    return served + failed


def answered(
    names: Sequence[str], namespaces: dict[NamespaceName, NamespaceView | PulsarError], owner: Owner
) -> dict[str, Any]:
    return dict(flat(batch(names, namespaces, owner)))


@pytest.mark.parametrize("topics", [0, 11])
def test_batch_when_empty_or_too_long_then_refused_as_a_whole(topics: int) -> None:
    with pytest.raises((InvalidRequest, RequestTooLarge)) as caught:
        check_batch_size(topics, 10)
    assert caught.value.wire_code == ServerError.NotAllowedError
    assert caught.value.http_status == (400 if topics == 0 else 413)
    assert topics == 0 or "at most 10" in str(caught.value)


def test_batch_when_its_size_is_the_limit_then_taken() -> None:
    check_batch_size(1, 1)
    check_batch_size(10, 10)


def test_batch_when_owners_differ_then_groups_and_failures_by_what_they_share() -> None:
    quarters = [topics_in(quarter, 3) for quarter in range(4)]
    names = [name for three in zip(*quarters, strict=True) for name in three]
    answer = batch(names, {A: VIEW}, owned_by(OWNERS))
    assert answer.groups == {HERE: quarters[0], THERE: quarters[1]}
    assert [(str(each.error), each.topics) for each in answer.failures] == [
        ("bundle is being unloaded", quarters[2]),
        ("no broker is available", quarters[3]),
    ]


def test_batch_when_bundles_share_a_broker_then_one_group_in_the_order_asked() -> None:
    names = [f"persistent://t/a/{number}" for number in range(50)] + ["persistent://t/b/x"]
    b = NamespaceName("t", "b")
    answer = batch(names, {A: NamespaceView(A), b: quartered(b)}, all_owned)
    assert answer.groups == {HERE: names}


def test_batch_when_targets_differ_in_one_field_then_groups_stay_apart() -> None:
    targets = [
        HERE,
        LookupTarget(HERE.service_url),
        LookupTarget(HERE.service_url, redirect=True),
        LookupTarget(HERE.service_url, proxy_through_service_url=True),
    ]
    owners: dict[str, LookupTarget | PulsarError] = dict(zip(OWNERS, targets, strict=True))
    names = [name for quarter in range(4) for name in topics_in(quarter, 2)]
    assert list(batch(names, {A: VIEW}, owned_by(owners)).groups) == targets


def test_batch_asks_for_the_owner_of_each_bundle_once() -> None:
    asked: list[tuple[NamespaceName, str]] = []

    def owner(namespace: NamespaceName, bundle: str) -> LookupTarget:
        asked.append((namespace, bundle))
        return owned_by(OWNERS)(namespace, bundle)

    b = NamespaceName("t", "b")
    names = [f"persistent://t/{local}/{number}" for number in range(100) for local in "ab"]
    batch(names, {A: VIEW, b: quartered(b)}, owner)
    assert len(asked) == len(set(asked)) == 8
    assert {namespace for namespace, _ in asked} == {A, b}


def test_batch_when_names_repeat_then_each_is_answered_once_as_it_was_written() -> None:
    default = NamespaceName("public", "default")
    names = ["x", "persistent://public/default/x", "x"]
    answer = batch(names, {default: NamespaceView(default)}, all_owned)
    assert answer.groups == {HERE: ["x", "persistent://public/default/x"]}


def test_batch_when_a_name_is_none_then_only_it_fails_with_17() -> None:
    default = NamespaceName("public", "default")
    answer = batch(["a/b", "x", "://y"], {default: NamespaceView(default)}, all_owned)
    assert answer.groups == {HERE: ["x"]}
    assert [each.topics for each in answer.failures] == [["a/b"], ["://y"]]
    assert {each.error.wire_code for each in answer.failures} == {ServerError.InvalidTopicName}


def test_batch_when_a_reason_is_longer_than_300_characters_then_it_is_cut() -> None:
    answer = BatchAnswer()
    answer.fail("fits", MetadataError("a" * 300))
    answer.fail("long", MetadataError("b" * 301))
    assert [str(each.error) for each in answer.failures] == ["a" * 300, "b" * 300 + "..."]


def test_batch_when_errors_of_two_types_have_one_text_then_they_are_two_failures() -> None:
    answer = BatchAnswer()
    for name, error in (("x", MetadataError("no")), ("y", ServiceNotReady("no")), ("z", MetadataError("no"))):
        answer.fail(name, error)
    assert [(type(each.error), each.topics) for each in answer.failures] == [
        (MetadataError, ["x", "z"]),
        (ServiceNotReady, ["y"]),
    ]


def test_batch_when_a_topic_may_not_be_looked_up_then_only_it_fails() -> None:
    answer = BatchAnswer()
    topics = parsed("x", "y", "z")
    assert sort_by_permission(topics, {"y": Unauthorized("not yours")}, answer) == parsed("x", "z")
    assert flat(answer) == [("y", (Unauthorized, "not yours"))]


def test_batch_when_a_name_is_very_long_then_its_reason_is_cut() -> None:
    (failure,) = batch(["a/" + "b" * 60_000], {}, all_owned).failures
    assert isinstance(failure.error, InvalidTopicName)
    assert len(str(failure.error)) < 400


def test_batch_when_a_namespace_cannot_be_read_then_only_its_topics_fail() -> None:
    b = NamespaceName("t", "b")
    names = ["persistent://t/a/1", "persistent://t/b/1", "persistent://t/a/2"]
    answer = batch(names, {A: MetadataError("store is gone"), b: quartered(b)}, all_owned)
    assert answer.groups == {HERE: ["persistent://t/b/1"]}
    assert [(str(each.error), each.topics) for each in answer.failures] == [("store is gone", [names[0], names[2]])]


BOUNDARIES = {count: bundle_boundaries(count) for count in (1, 4, 7)}
VIEWS = st.sampled_from(
    [
        VIEW,
        NamespaceView(A, boundaries=bundle_boundaries(7)),
        NamespaceView(A, NamespaceStanding.MISSING),
        NamespaceView(A, NamespaceStanding.DELETED),
        NamespaceView(A, NamespaceStanding.NOT_SERVED),
        NamespaceView(A, NamespaceStanding.NOT_SERVED, peer=PEER),
        MetadataError("unreadable"),
    ]
)
LOCAL_NAMES = st.sampled_from(["x", "y", "z", "__change_events", "p-partition-0", "", "-partition-1"])
NAMES = st.builds("persistent://t/{}/{}".format, st.sampled_from("abc"), LOCAL_NAMES) | st.sampled_from(
    ["", "a/b", "x"]
)
TARGETS = st.sampled_from([HERE, THERE, MetadataError("unloading"), ServiceNotReady("none"), TopicNotFound("odd")])


@given(st.lists(NAMES), st.dictionaries(st.sampled_from("abc"), VIEWS), st.lists(TARGETS, min_size=1, max_size=9))
def test_batch_answers_every_topic_exactly_once_and_as_a_single_lookup(
    names: list[str], views: dict[str, NamespaceView | PulsarError], targets: list[LookupTarget | PulsarError]
) -> None:
    """One failing bundle fails no other one, and order is kept within each group and failure."""

    def owner(namespace: NamespaceName, bundle: str) -> LookupTarget:
        found = targets[(sum(map(ord, str(namespace))) + int(bundle[:10], 16) // 1000) % len(targets)]
        if isinstance(found, PulsarError):
            raise found
        return found

    namespaces: dict[NamespaceName, NamespaceView | PulsarError] = {}
    for tenant, local in (("t", "a"), ("t", "b"), ("t", "c"), ("public", "default")):
        name = NamespaceName(tenant, local)
        view = views.get(local, VIEW)
        if isinstance(view, NamespaceView):
            view = NamespaceView(name, view.standing, boundaries=BOUNDARIES[len(view.bundles)], peer=view.peer)
        namespaces[name] = view

    def single(text: str) -> LookupTarget:
        topic = TopicName.parse(text)
        view = namespaces[topic.namespace_name]
        if isinstance(view, PulsarError):
            raise view
        return find_target(topic, view, owner)

    answer = batch(names, namespaces, owner)
    assert Counter(topic for topic, _ in flat(answer)) == Counter(set(names))
    assert dict(flat(answer)) == {name: outcome(lambda name=name: single(name)) for name in names}  # type: ignore[misc]
    first_seen = list(dict.fromkeys(names))
    for topics in [*answer.groups.values(), *(each.topics for each in answer.failures)]:
        assert topics == sorted(topics, key=first_seen.index)
        assert topics


# --- existence and partitions


_PARTITION_CHARS = len("persistent://public/default/p-partition-4")


def parsed(*names: str) -> dict[str, TopicName]:
    return {name: TopicName.parse(name) for name in names}


def test_existence_when_a_topic_is_missing_then_it_fails_and_the_others_stay() -> None:
    answer = BatchAnswer()
    wanted = sort_by_existence(parsed("x", "y"), {"x": TopicNotFound("gone"), "y": 3}, answer)
    assert wanted == parsed("y")
    assert dict(flat(answer)) == {"x": (TopicNotFound, "gone")}
    assert answer.partitions == {}


def test_expansion_when_a_topic_is_partitioned_then_its_partitions_stand_for_it() -> None:
    answer = BatchAnswer()
    counts: dict[str, int | PulsarError] = {"p": 2, "p-partition-1": 0}
    topics = parsed("p", "plain", "p-partition-1", "q-partition-7")
    wanted = sort_by_existence(topics, counts, answer, expanded_chars_max=1000)
    base = "persistent://public/default/p"
    assert list(wanted) == [f"{base}-partition-0", f"{base}-partition-1", "plain", "p-partition-1", "q-partition-7"]
    assert answer.partitions == {"p": 2, "plain": 0}


def test_expansion_when_partitions_fill_the_answer_then_topics_without_any_are_answered_all_the_same() -> None:
    answer = BatchAnswer()
    counts: dict[str, int | PulsarError] = {"p": 4, "q": 0, "r": 0, "s": 1}
    wanted = sort_by_existence(parsed("p", "q", "r", "s"), counts, answer, expanded_chars_max=4 * _PARTITION_CHARS)
    assert list(wanted)[4:] == ["q", "r"]
    assert [each.topics for each in answer.failures] == [["s"]]


def test_expansion_when_partitions_do_not_fit_then_that_topic_fails_and_says_so() -> None:
    answer = BatchAnswer()
    counts: dict[str, int | PulsarError] = {"p": 3, "q": 3, "r": 1}
    wanted = sort_by_existence(parsed("p", "q", "r"), counts, answer, expanded_chars_max=4 * _PARTITION_CHARS)
    assert len(wanted) == 4
    (failure,) = answer.failures
    assert (failure.topics, failure.error.wire_code) == (["q"], ServerError.NotAllowedError)
    assert str(failure.error).startswith("The 3 partitions of persistent://public/default/q do not fit the answer")
    assert "ask for fewer topics at once" in str(failure.error)
    assert answer.partitions == {"p": 3, "r": 1}

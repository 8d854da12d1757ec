"""Roles of a namespace: their stored form, the order of their epochs, and the clients that each serves."""

from __future__ import annotations

from typing import Any

import pytest

from interpulse.model.clusters import ClusterMigration
from interpulse.model.errors import Conflict, InvalidRequest
from interpulse.model.names import TopicName
from interpulse.model.policies.policy_documents import NamespacePolicies
from interpulse.rules.failover_role import (
    ACTIVE,
    MIGRATED_FIELD,
    ROLE_PROPERTY,
    SERVING,
    URL_PROPERTY,
    FailoverRole,
    Role,
    Treatment,
    after_peer,
    effective_role,
    is_exempt,
    is_lane,
    is_lane_from,
    make_role,
    parse_role,
    stored_role,
    suspended_creation,
    unconfirmed,
    with_migrated,
    with_role,
)
from interpulse.spark.lanes import lane_name, merged_lane_name, sink_lane_name

WEST, WEST_TLS = "pulsar://west.example:6650", "pulsar+ssl://west.example:6651"
TOPIC = TopicName.parse("persistent://public/default/orders")
MIGRATION = ClusterMigration(True, broker_service_url=WEST, broker_service_url_tls=WEST_TLS)
SINCE = "2026-11-30T15:00:00.000Z"

STORED: list[tuple[str, FailoverRole]] = [
    ("active;epoch=4", FailoverRole(Role.ACTIVE, 4)),
    ("fenced;epoch=4", FailoverRole(Role.FENCED, 4)),
    ("standby;epoch=0", FailoverRole(Role.STANDBY, 0)),
    (f"moved;epoch=4;url={WEST}", FailoverRole(Role.MOVED, 4, WEST)),
    (f"moved;epoch=4;url={WEST_TLS}", FailoverRole(Role.MOVED, 4, "", WEST_TLS)),
    (f"moved;epoch=4;url={WEST};urlTls={WEST_TLS}", FailoverRole(Role.MOVED, 4, WEST, WEST_TLS)),
    ("active;epoch=5;lanesFrom=east:closed", FailoverRole(Role.ACTIVE, 5, closed_to="east")),
    (f"moved;epoch=4;url={WEST};lanesFrom=a:b:closed", FailoverRole(Role.MOVED, 4, WEST, closed_to="a:b")),
    (f"active;epoch=5;consumersFrom={SINCE}", FailoverRole(Role.ACTIVE, 5, consumers_from=SINCE)),
]
MALFORMED = [
    ("", "'' is none of active, fenced, standby, moved"),
    ("fence;epoch=4", "'fence' is none of"),
    ("Fenced;epoch=4", "'Fenced' is none of"),
    ("fenced", "epoch must be an integer"),
    ("fenced;epoch=", "epoch must be an integer"),
    ("fenced;epoch=-1", "epoch must be an integer"),
    ("fenced;epoch=9223372036854775808", "epoch must be an integer"),
    ("fenced;epoch", "'epoch' is not name=value"),
    ("moved;epoch=4", "moved needs a url"),
    ("moved;epoch=4;url=http://west.example", "url must be pulsar://host:port"),
    (f"fenced;epoch=4;url={WEST}", "only moved has a url, not fenced"),
    ("active;epoch=4;lanesFrom=east", "lanesFrom must be a cluster name followed by :closed"),
    ("active;epoch=4;lanesFrom=:closed", "lanesFrom must be a cluster name followed by :closed"),
    ("active;epoch=4;consumersFrom=soon", "consumersFrom must be a time in UTC such as"),
    (f"moved;epoch=4;url={WEST};subscriptionsReady=yes", "subscriptionsReady must be true or false"),
]


def policies(role: str | None = None, *, url: str | None = None, migrated: bool = False) -> NamespacePolicies:
    properties = {ROLE_PROPERTY: role, URL_PROPERTY: url, "team": "shop"}
    set_ones = {key: value for key, value in properties.items() if value is not None}
    return NamespacePolicies(properties=set_ones, other={MIGRATED_FIELD: migrated})


@pytest.mark.parametrize(("text", "role"), STORED)
def test_role_when_stored_then_read_again(text: str, role: FailoverRole) -> None:
    assert (parse_role(text), str(role)) == (role, text)


def test_role_when_it_has_more_fields_then_they_are_kept_or_ignored() -> None:
    text = f"moved;epoch=4;url={WEST};subscriptionsReady=true;since={SINCE}"
    role = parse_role(f"{text};later=1")
    assert (role.subscriptions_ready, role.since, role.stored()) == (True, SINCE, text)
    assert parse_role(f"fenced;epoch=4;since={SINCE}") == parse_role("fenced;epoch=4")


@pytest.mark.parametrize(("text", "problem"), MALFORMED)
def test_role_when_malformed_then_the_error_names_property_value_and_remedy(text: str, problem: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_role(text)
    sentence = str(caught.value)
    assert f"interpulse.failover.role has the value {text!r}, but " in sentence
    assert problem in sentence
    assert sentence.endswith("set it like fenced;epoch=4 or remove it")
    assert stored_role({ROLE_PROPERTY: text}) == (ACTIVE, sentence)


def test_role_when_not_stored_then_is_active_with_epoch_0() -> None:
    assert stored_role({}) == (FailoverRole(Role.ACTIVE, 0), "")


def test_role_when_closed_to_no_cluster_name_then_refused() -> None:
    assert str(make_role(Role.ACTIVE, 5, closed_to="east")) == "active;epoch=5;lanesFrom=east:closed"
    with pytest.raises(InvalidRequest, match=r"closedTo must be the name of a cluster, not 'a;b'"):
        make_role(Role.ACTIVE, 5, closed_to="a;b")


def test_consumers_when_held_then_refused_until_that_time() -> None:
    role = FailoverRole(Role.ACTIVE, 5, consumers_from=SINCE)
    times = ("2026-11-30T14:59:59.999Z", SINCE, "2026-11-30T15:00:00.001Z")
    assert [role.holds_consumers(time) for time in times] == [True, False, False]
    assert not ACTIVE.holds_consumers(SINCE)


def test_lane_when_from_a_cluster_then_recognised_by_its_name() -> None:
    lane = lane_name("shop.eu", "east", "west", 1)
    assert is_lane_from(lane, "east")
    assert is_lane_from(merged_lane_name(lane, "t"), "east")
    assert not is_lane_from(lane, "west")
    assert not is_lane_from(lane, "ast")
    assert not is_lane_from("local.east-->west.e0", "east")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((Role.MOVED, 1), "moved needs a url"),
        ((Role.FENCED, 1, WEST), "only moved has a url"),
        ((Role.MOVED, 1, "west:6650"), "url must be"),
    ],
)
def test_role_when_made_of_what_does_not_fit_then_refused(arguments: tuple[Any, ...], problem: str) -> None:
    role, epoch, *url = arguments
    with pytest.raises(InvalidRequest, match=f"The role {role} cannot be set: .*{problem}"):
        make_role(role, epoch, url="".join(url))


S, REFUSED, REDIRECTED = Treatment.SERVED, Treatment.REFUSED, Treatment.REDIRECTED


@pytest.mark.parametrize(
    ("role", "serving"),
    [
        (Role.ACTIVE, (S, S, True)),
        (Role.FENCED, (REFUSED, S, False)),
        (Role.STANDBY, (REFUSED, S, False)),
        (Role.MOVED, (REDIRECTED, REDIRECTED, True)),
    ],
)
def test_role_when_a_client_comes_then_it_is_treated_as_the_table_says(role: Role, serving: tuple[Any, ...]) -> None:
    assert SERVING[role] == serving


@pytest.mark.parametrize(
    ("stored", "url", "migrated", "cluster", "expected"),
    [
        (None, None, False, None, "active;epoch=0"),
        ("fenced;epoch=3", None, True, MIGRATION, "fenced;epoch=3"),
        (None, None, True, MIGRATION, f"moved;epoch=0;url={WEST};urlTls={WEST_TLS}"),
        (None, None, False, MIGRATION, f"moved;epoch=0;url={WEST};urlTls={WEST_TLS}"),
        ("active;epoch=7", None, True, MIGRATION, f"moved;epoch=7;url={WEST};urlTls={WEST_TLS}"),
        (None, None, True, ClusterMigration(False, broker_service_url=WEST), f"moved;epoch=0;url={WEST}"),
        (None, None, False, ClusterMigration(False, broker_service_url=WEST), "active;epoch=0"),
        (None, None, True, None, "active;epoch=0"),
        (None, "pulsar://own:1", True, MIGRATION, "moved;epoch=0;url=pulsar://own:1"),
        (None, "pulsar://own:1", True, None, "moved;epoch=0;url=pulsar://own:1"),
        (None, "pulsar://own:1", False, None, "active;epoch=0"),
    ],
)
def test_role_when_namespace_and_cluster_are_joined_then_own_one_wins_unless_active(
    stored: str | None, url: str | None, migrated: bool, cluster: ClusterMigration | None, expected: str
) -> None:
    role, problem = effective_role(policies(stored, url=url, migrated=migrated), cluster)
    assert (str(role), problem) == (expected, "")


def test_url_when_malformed_then_reported_and_that_of_the_cluster_counts() -> None:
    role, problem = effective_role(policies(url="own", migrated=True), MIGRATION)
    assert role.service_url == WEST
    assert problem == "interpulse.failover.url has the value 'own'; set it like pulsar://host:port or remove it"


@pytest.mark.parametrize("epoch", [5, 6])
def test_epoch_when_not_lower_than_the_stored_one_then_accepted(epoch: int) -> None:
    changed = with_role(policies("fenced;epoch=5"), FailoverRole(Role.ACTIVE, epoch), SINCE)
    assert changed.properties == {ROLE_PROPERTY: f"active;epoch={epoch};since={SINCE}", "team": "shop"}


def test_epoch_when_lower_than_the_stored_one_then_conflict_with_both() -> None:
    with pytest.raises(Conflict, match=r"has epoch 5 \(fenced;epoch=5\), so epoch 4 comes too late"):
        with_role(policies("fenced;epoch=5"), FailoverRole(Role.ACTIVE, 4), SINCE)


def test_role_when_set_again_then_its_time_stays() -> None:
    before = with_role(policies(), FailoverRole(Role.FENCED, 1), SINCE)
    assert with_role(before, FailoverRole(Role.FENCED, 1), "later") is before
    assert ROLE_PROPERTY in with_role(policies(), ACTIVE, SINCE).properties
    assert with_role(policies("rubbish"), ACTIVE, "").properties[ROLE_PROPERTY] == "active;epoch=0"


def test_migration_when_marked_then_redirects_and_can_be_taken_back() -> None:
    marked = with_migrated(policies(), MIGRATION, migrated=True)
    assert marked.to_json()["migrated"] is True
    assert with_migrated(marked, None, migrated=False).to_json()["migrated"] is False


@pytest.mark.parametrize(
    ("before", "migration", "problem"),
    [
        (policies(), None, "There is no cluster to redirect to: .*update-cluster-migration.*interpulse.failover.url"),
        (policies("fenced;epoch=1"), MIGRATION, "The namespace has the role fenced;epoch=1: .* active namespace only"),
    ],
)
def test_migration_when_it_would_do_nothing_then_conflict(
    before: NamespacePolicies, migration: ClusterMigration | None, problem: str
) -> None:
    with pytest.raises(Conflict, match=problem):
        with_migrated(before, migration, migrated=True)


@pytest.mark.parametrize(
    ("local_name", "exempt"),
    [
        ("orders", False),
        ("interpulse-failover", False),
        ("interpulse-failover-shop", True),
        ("interpulse-failover-shop-partition-0", True),
        ("__change_events", True),
    ],
)
def test_topic_when_it_is_of_a_system_or_of_a_failover_then_exempt(local_name: str, exempt: bool) -> None:
    topic = TopicName.parse(f"persistent://public/default/{local_name}")
    assert is_exempt(topic) is exempt
    assert bool(suspended_creation(topic, policies("standby;epoch=2"))) is not exempt


@pytest.mark.parametrize("role", list(Role))
def test_creation_when_the_role_suspends_it_then_says_why(role: Role) -> None:
    text = f"{role};epoch=2" + (f";url={WEST}" if role is Role.MOVED else "")
    reason = suspended_creation(TOPIC, policies(text))
    assert bool(reason) is (role in (Role.FENCED, Role.STANDBY))
    assert not reason or reason.startswith(f"Namespace public/default is {role}")
    assert suspended_creation(TOPIC, None) == ""


@pytest.mark.parametrize(
    ("name", "lane"),
    [
        (lane_name("shop", "east", "west"), True),
        (lane_name("shop.eu", "east-1", "west", 12), True),
        (merged_lane_name(lane_name("shop", "east", "west"), "persistent://a/b/c"), True),
        (sink_lane_name(None, "query", 0), False),
        ("interpulse.shop.east-->west", False),
        ("shop.east-->west.e0", False),
        ("", False),
    ],
)
def test_producer_when_named_like_a_lane_then_is_one(name: str, lane: bool) -> None:
    assert is_lane(name) is lane


@pytest.mark.parametrize(
    ("own", "peer_epoch", "expected"),
    [
        (FailoverRole(Role.ACTIVE, 4), 4, None),
        (FailoverRole(Role.ACTIVE, 4), 3, None),
        (FailoverRole(Role.ACTIVE, 4), 5, FailoverRole(Role.STANDBY, 5)),
        (FailoverRole(Role.FENCED, 4), 4, None),
        (FailoverRole(Role.FENCED, 4), 5, FailoverRole(Role.STANDBY, 5)),
        (FailoverRole(Role.STANDBY, 4), 5, None),
        (FailoverRole(Role.MOVED, 4, WEST), 5, None),
    ],
)
def test_role_after_an_answer_of_the_peer(own: FailoverRole, peer_epoch: int, expected: FailoverRole | None) -> None:
    later = after_peer(own, peer_epoch)
    assert later == expected if expected else later is own


@pytest.mark.parametrize(
    ("role", "url", "in_force"),
    [
        (Role.ACTIVE, "", Role.FENCED),
        (Role.FENCED, "", Role.FENCED),
        (Role.STANDBY, "", Role.STANDBY),
        (Role.MOVED, WEST, Role.MOVED),
    ],
)
def test_role_while_the_peer_has_not_confirmed_it(role: Role, url: str, in_force: Role) -> None:
    waiting = unconfirmed(FailoverRole(role, 4, url), "west")
    assert (waiting.role, waiting.epoch, waiting.service_url) == (in_force, 4, url)
    about = "Namespace public/default waits for the role at west, epoch 4"
    assert (waiting.about(TOPIC) == about) is (role is Role.ACTIVE)

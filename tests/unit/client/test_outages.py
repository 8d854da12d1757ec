"""For what a client waits while its cluster does not answer, how long, and what it tells."""

import pytest

from interpulse.client.outages import Outages, ResolvedOutage, remedy_for
from interpulse.model.errors import (
    AuthenticationError,
    AuthorizationError,
    IncompatibleSchema,
    MetadataError,
    NoRoomLeft,
    NotConnected,
    OperationTimeout,
    PersistenceError,
    QuotaExceededError,
    ServiceNotReady,
    TopicNotFound,
    TopicTerminated,
    UnknownListener,
)

GONE = NotConnected("no route")


@pytest.mark.parametrize(
    ("error", "heals"),
    [
        (NotConnected, True),
        (OperationTimeout, True),
        (ServiceNotReady, True),
        (PersistenceError, True),
        (NoRoomLeft, True),
        (QuotaExceededError, True),
        (AuthenticationError, False),
        (AuthorizationError, False),
        (IncompatibleSchema, False),
        (TopicTerminated, False),
        (TopicNotFound, False),
        (MetadataError, False),
        (UnknownListener, False),
    ],
)
def test_only_what_heals_by_itself_is_waited_for(error, heals):
    assert Outages("x").may_resolve(error("why")) is heals


def test_expired_token_heals_where_it_is_read_again():
    assert Outages("x", rereads_credentials=True).may_resolve(AuthenticationError("expired"))


def test_full_topic_heals_only_where_others_do_not_wait_for_it():
    assert not Outages("x", waits_for_room=False).may_resolve(NoRoomLeft("full"))


def test_outage_of_an_hour_is_told_once_a_minute_with_its_length_and_its_end(caplog):
    outages = Outages("pulsar://a:1")
    for second in range(3601):
        outages.note(GONE, float(second))
    outages.over(3601.0)
    told = [record.getMessage() for record in caplog.records]
    assert told[0] == (
        "cluster does not answer, waiting for it place=pulsar://a:1 seconds=5 limit_s=none error=no route"
    )
    assert len(told) == 61
    assert told[-1] == "cluster answers again place=pulsar://a:1 after_s=3601"
    assert outages.waiting(3602.0) is None


def test_short_loss_of_a_connection_is_not_worth_a_line(caplog):
    outages = Outages("x")
    outages.note(GONE, 0.0)
    outages.note(GONE, 4.0)
    outages.over(4.5)
    assert caplog.records == []


def test_outage_that_the_last_waiter_gave_up_is_no_part_of_one_an_hour_later():
    outages = Outages("x")
    outages.note(GONE, 0.0, waiter="a")
    outages.note(GONE, 1.0, waiter="b")
    outages.given_up("a")
    assert outages.waiting(2.0) == ("no route", 2.0)
    outages.given_up("b")
    assert outages.waiting(3.0) is None
    outages.note(GONE, 3600.0, waiter="a")
    outages.over(3600.5)
    outages.given_up("a")
    assert outages.take_resolved() == [ResolvedOutage("x", "no route", 1, 0.5)]


def test_outage_goes_on_for_the_waiters_that_are_left():
    outages = Outages("x")
    outages.note(GONE, 0.0, waiter="a")
    outages.note(GONE, 1.0, waiter="b")
    outages.given_up("a")
    outages.over(5.0)
    assert outages.take_resolved() == [ResolvedOutage("x", "no route", 1, 5.0)]


def test_outage_counts_from_where_its_first_attempt_began():
    outages = Outages("x", timeout_ms=60_000)
    outages.note(GONE, 30.0, began=0.0)
    assert outages.waiting(31.0) == ("no route", 31.0)
    assert (outages.is_too_long(60.0), outages.is_too_long(61.0)) == (False, True)


def test_what_healed_is_counted_by_its_reason_until_it_is_taken():
    outages = Outages("pulsar://a:1")
    for begin, error in ((0.0, GONE), (10.0, ServiceNotReady("moved")), (20.0, GONE)):
        outages.note(error, begin)
        outages.over(begin + 1.5)
    outages.over(30.0)
    assert outages.take_resolved() == [
        ResolvedOutage("pulsar://a:1", "no route", 2, 3.0),
        ResolvedOutage("pulsar://a:1", "moved", 1, 1.5),
    ]
    assert outages.take_resolved() == []


def test_of_very_many_reasons_only_some_are_kept():
    outages = Outages("x")
    for number in range(1000):
        outages.note(NotConnected(f"topic {number}"), float(number))
        outages.over(float(number))
    assert 0 < len(outages.take_resolved()) < 100


@pytest.mark.parametrize(
    ("told", "remedy"),
    [
        ("interpulse.model.errors.NotConnected: no route", "start the cluster"),
        ("the source gives no answer", "start the cluster"),
        ("The broker is out of room and takes no messages until there is", "free disk space"),
        ("QuotaExceededException: Cannot create producer on topic with backlog quota exceeded", "consume or clear"),
        ("AuthenticationError: Failed to authenticate", "renew the credentials"),
        ("Token has expired", "renew the credentials"),
        ("The topic t is fenced: no room left in /log: No space left on device", "free disk space"),
        ("Exceed maximum message size: 153 bytes (maxMessageSize=1)", "raise the limit for the topic"),
        ("Partition metadata not found for the partitioned topic: t", "create the topic"),
        ("AuthorizationError: Client is not authorized to Produce", "grant the role"),
        ("it is terminated", "the topic is terminated"),
        ("IncompatibleSchema: schema auto updating is disabled", "allow the schema on the topic"),
        ("LaneInUse: t: producer", "stop the other writer"),
        ("Messages must be encrypted (encryptionRequired=true)", "encrypt the messages"),
        ("Encryption is required in persistent://t/ns/x", "encrypt the messages"),
    ],
)
def test_refusals_have_a_remedy(told, remedy):
    assert (remedy_for(told) or "").startswith(remedy)


def test_what_is_not_known_has_none():
    assert remedy_for("something else") is None

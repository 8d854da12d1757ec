from interpulse.failover.history.events import Fence, Release, RoleSeen
from interpulse.failover.history.roles import epochs, fenced
from tests.unit.failover.history.histories import TOPIC, Pair, at

NAMESPACE = "public/default"


def test_fenced_when_only_copies_follow_then_clean() -> None:
    pair = Pair()
    pair.published(0)
    pair.note(Fence, "east", TOPIC, at("east", 0))
    pair.published(1, site="west")
    pair.copied(source="west")
    assert not [*fenced(pair.history())]


def test_fenced_when_a_client_publishes_behind_it_then_named_until_the_release() -> None:
    pair = Pair()
    pair.published(0)
    pair.note(Fence, "east", TOPIC, at("east", 0))
    pair.published(1)
    pair.note(Release, "east", TOPIC, at("east", 1))
    pair.published(2)
    (violation,) = fenced(pair.history())
    assert violation.sentence == f"message 1 of p on {TOPIC} at 3:1 of east is behind the fence at 3:0"


def test_fenced_when_the_holder_was_away_then_its_gap_is_allowed() -> None:
    pair = Pair()
    pair.published(0, 1, 2)
    pair.note(Fence, "east", TOPIC, at("east", 0), ((at("east", 0), at("east", 1)),))
    assert [violation.sentence[:9] for violation in fenced(pair.history())] == ["message 2"]


def test_epochs_when_they_rise_then_clean() -> None:
    pair = Pair()
    for site, role, epoch in (
        ("east", "active", 4),
        ("east", "fenced", 5),
        ("east", "active", 4),
        ("east", "fenced", 5),
        ("west", "active", 5),
        ("east", "standby", 5),
        ("east", "active", 6),
    ):
        pair.note(RoleSeen, site, NAMESPACE, role, epoch)
    assert not [*epochs(pair.history())]


def test_epochs_when_two_sites_are_active_in_one_then_named() -> None:
    pair = Pair()
    pair.note(RoleSeen, "east", NAMESPACE, "active", 5)
    pair.note(RoleSeen, "west", "public/other", "active", 5)
    pair.note(RoleSeen, "west", NAMESPACE, "active", 5)
    (violation,) = epochs(pair.history())
    assert violation.sentence == "west and east are both active for public/default in epoch 5, at 3 ms and 1 ms"


def test_epochs_when_an_older_one_is_active_again_then_named() -> None:
    pair = Pair()
    pair.note(RoleSeen, "west", NAMESPACE, "active", 5)
    pair.note(RoleSeen, "east", NAMESPACE, "active", 4)
    (violation,) = epochs(pair.history())
    assert violation.sentence == "east is active for public/default in epoch 4 at 2 ms, after west in epoch 5"

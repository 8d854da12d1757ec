"""The commands of ``topics`` that are about subscriptions."""

import time
from typing import Any

import pytest

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin, SentBy

ROOT = "/admin/v2/persistent/t/ns/a/subscription/s"
LATEST = {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1, "partitionIndex": -1, "batchIndex": -1}
EARLIEST = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1, "batchIndex": -1}
GIVEN = {"ledgerId": 3, "entryId": 4, "partitionIndex": -1, "batchIndex": -1}


@pytest.mark.parametrize(
    ("arguments", "method", "target", "body"),
    [
        ("create-subscription t/ns/a -s s", "PUT", f"{ROOT}?replicated=false", LATEST),
        ("create-subscription t/ns/a -s s -m earliest -r", "PUT", f"{ROOT}?replicated=true", EARLIEST),
        (
            "create-subscription t/ns/a -s s --messageId 3:4 -p a=b -p c=d",
            "PUT",
            f"{ROOT}?replicated=false",
            GIVEN | {"properties": {"a": "b", "c": "d"}},
        ),
        ("unsubscribe t/ns/a -s s", "DELETE", f"{ROOT}?force=false", None),
        ("unsubscribe t/ns/a --subscription s --force", "DELETE", f"{ROOT}?force=true", None),
        ("reset-cursor t/ns/a -s s -m latest", "POST", f"{ROOT}/resetcursor", LATEST | {"excluded": False}),
        ("reset-cursor t/ns/a -s s -m 3:4 -e", "POST", f"{ROOT}/resetcursor", GIVEN | {"excluded": True}),
        ("expire-messages t/ns/a -s s -t 2m", "POST", f"{ROOT}/expireMessages/120", None),
        ("expire-messages t/ns/a -s s -p 3:4", "POST", f"{ROOT}/expireMessages", GIVEN | {"excluded": False}),
        ("expire-messages t/ns/a -s s -p 3:4 -e", "POST", f"{ROOT}/expireMessages", GIVEN | {"excluded": True}),
        (
            "expire-messages-all-subscriptions t/ns/a --expireTime 90",
            "POST",
            "/admin/v2/persistent/t/ns/a/all_subscription/expireMessages/90",
            None,
        ),
        ("update-subscription-properties t/ns/a -s s -p a=b -p c=d", "PUT", f"{ROOT}/properties", {"a": "b", "c": "d"}),
        ("update-subscription-properties t/ns/a -s s -c", "PUT", f"{ROOT}/properties", {}),
        ("skip t/ns/a -s s -n 9", "POST", f"{ROOT}/skip/9", None),
        ("clear-backlog t/ns/a -s s", "POST", f"{ROOT}/skip_all", None),
        ("skip-all t/ns/a -s s", "POST", f"{ROOT}/skip_all", None),
        ("set-replicated-subscription-status t/ns/a -s s -e", "POST", f"{ROOT}/replicatedSubscriptionStatus", True),
        (
            "set-replicated-subscription-status t/ns/a -s s --disable",
            "POST",
            f"{ROOT}/replicatedSubscriptionStatus",
            False,
        ),
    ],
)
def test_change_when_typed_then_is_asked_for(
    sent_by: SentBy, arguments: str, method: str, target: str, body: Any
) -> None:
    assert sent_by("topics", *arguments.split()) == (method, target, body)


def test_reset_when_a_time_is_given_then_goes_back_by_it(web: StubWeb, run_admin: RunAdmin) -> None:
    before_ms = int(time.time() * 1000) - 3 * 3_600_000
    assert run_admin("topics", "reset-cursor", "t/ns/a", "-s", "s", "-t", "3h").exit_code == 0
    path, _, time_ms = web.last.target.rpartition("/")
    assert path == f"{ROOT}/resetcursor"
    assert before_ms <= int(time_ms) <= int(time.time() * 1000) - 3 * 3_600_000


def test_reset_when_no_target_is_given_then_is_wrong_usage(web: StubWeb, run_admin: RunAdmin) -> None:
    result = run_admin("topics", "reset-cursor", "t/ns/a", "-s", "s")
    assert (result.exit_code, web.asked) == (2, [])
    assert "Either --time or --messageId" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("expire-messages t/ns/a -s s", "Either time (--expireTime) or message position (--position)"),
        ("expire-messages t/ns/a -s s -t 1 -p 3:4", "Can't expire message by time and by message position"),
        ("expire-messages t/ns/a -s s -t -1", "--expireTime must be 0 or more, not -1"),
        ("expire-messages-all-subscriptions t/ns/a", "Missing option"),
        ("update-subscription-properties t/ns/a -s s", "Either --property or --clear"),
        ("update-subscription-properties t/ns/a -s s -p a=b -c", "Either --property or --clear"),
        ("set-replicated-subscription-status t/ns/a -s s", "either --enable or --disable"),
        ("set-replicated-subscription-status t/ns/a -s s -e -d", "either --enable or --disable"),
        ("skip t/ns/a -s s -n 9 --nonsense", "No such option"),
    ],
)
def test_change_when_arguments_do_not_fit_then_nothing_is_asked(
    web: StubWeb, run_admin: RunAdmin, arguments: str, words: str
) -> None:
    result = run_admin("topics", *arguments.split())
    assert (result.exit_code, web.asked) == (2, [])
    assert words in result.stderr


def test_subscription_properties_when_asked_for_then_are_one_line_of_json(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/properties", {"a": "b", "c": "d"})
    assert run_admin("topics", "get-subscription-properties", "t/ns/a", "-s", "s").stdout == '{"a":"b","c":"d"}\n'


def test_replicated_status_when_asked_for_then_is_that_of_each_partition(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", f"{ROOT}/replicatedSubscriptionStatus", {"persistent://t/ns/a": True})
    printed = run_admin("topics", "get-replicated-subscription-status", "t/ns/a", "-s", "s").stdout
    assert printed == '{\n  "persistent://t/ns/a" : true\n}\n'


def test_subscriptions_when_listed_then_come_one_per_line(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("GET", "/admin/v2/persistent/t/ns/a/subscriptions", ["s", "t u"])
    assert run_admin("topics", "subscriptions", "t/ns/a").stdout == "s\nt u\n"


def test_backlog_when_analyzed_then_counts_are_printed(web: StubWeb, run_admin: RunAdmin) -> None:
    web.answer("POST", f"{ROOT}/analyzeBacklog", {"entries": 4, "aborted": False})
    printed = run_admin("topics", "analyze-backlog", "t/ns/a", "-s", "s").stdout
    assert printed == '{\n  "entries" : 4,\n  "aborted" : false\n}\n'
    assert web.last.body is None
    assert run_admin("topics", "analyze-backlog", "t/ns/a", "-s", "s", "-p", "3:4").exit_code == 0
    assert web.last.body == GIVEN

"""Permissions of namespaces, topics and subscriptions on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stub_web import StubWeb
from tests.unit.cli.conftest import RunAdmin, SentBy

NAMESPACE = "/admin/v2/namespaces/acme/app"
TOPIC = "/admin/v2/persistent/acme/app/t"


@pytest.mark.parametrize(
    ("line", "method", "path", "body"),
    [
        ("namespaces grant-permission acme/app --role me --actions produce,consume", "POST",
         f"{NAMESPACE}/permissions/me", ["produce", "consume"]),
        ("namespaces grant-permission acme/app --role spiffe://a/b --actions produce", "POST",
         f"{NAMESPACE}/permissions/spiffe%3A%2F%2Fa%2Fb", ["produce"]),
        ("namespaces revoke-permission acme/app --role me", "DELETE", f"{NAMESPACE}/permissions/me", None),
        ("namespaces grant-subscription-permission acme/app -s s -rs me,you", "POST",
         f"{NAMESPACE}/permissions/subscription/s", ["me", "you"]),
        ("namespaces revoke-subscription-permission acme/app -s s -r me", "DELETE",
         f"{NAMESPACE}/permissions/s/me", None),
        ("namespaces set-subscription-auth-mode acme/app -m Prefix", "POST",
         f"{NAMESPACE}/subscriptionAuthMode", "Prefix"),
        ("topics grant-permission acme/app/t -r me -a consume", "POST",
         f"{TOPIC}/permissions/me", ["consume"]),
        ("topics revoke-permission acme/app/t --role me", "DELETE", f"{TOPIC}/permissions/me", None),
    ],
)  # fmt: skip
def test_change_when_asked_for_then_is_sent(sent_by: SentBy, line: str, method: str, path: str, body: Any) -> None:
    assert sent_by(*line.split()) == (method, path, body)


def test_permissions_when_printed_then_one_role_per_line(web: StubWeb, run_admin: RunAdmin) -> None:
    granted = {"b": ["produce", "consume"], "a": ["consume"]}
    web.answer("GET", f"{NAMESPACE}/permissions", granted)
    web.answer("GET", f"{TOPIC}/permissions", granted)
    web.answer("GET", f"{NAMESPACE}/permissions/subscription", {"s": ["me"]})
    web.answer("GET", f"{NAMESPACE}/subscriptionAuthMode", "Prefix")
    expected = "a    [consume]\nb    [consume, produce]\n"
    assert run_admin("namespaces", "permissions", "acme/app").stdout == expected
    assert run_admin("topics", "permissions", "acme/app/t").stdout == expected
    assert run_admin("namespaces", "subscription-permission", "acme/app").stdout == "s    [me]\n"
    assert run_admin("namespaces", "get-subscription-auth-mode", "acme/app").stdout == "Prefix\n"


def test_mode_when_it_is_none_then_the_choice_is_told(run_admin: RunAdmin) -> None:
    result = run_admin("namespaces", "set-subscription-auth-mode", "acme/app", "-m", "prefix")
    assert result.exit_code == 2
    assert "'None', 'Prefix'" in result.stderr

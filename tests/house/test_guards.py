"""Nothing gets past the guards because somebody forgot it: every route and every command says what it needs."""

from __future__ import annotations

from interpulse.broker.binary.authorization_filter import CHECKS
from interpulse.broker.binary.handlers import AWAITING
from interpulse.broker.rest.http.required_permissions import NEEDS, OPEN, is_declared, need_of
from interpulse.broker.rest.server import ROUTES
from interpulse.wire import pulsar_api_pb2 as pb

WITHOUT_CREDENTIALS = {"GET /livez", "GET /readyz", "GET /metrics", "GET /metrics/"}
NOT_OFFERED_YET = {  # of real Pulsar: who adds such a route finds its line
    "compaction",
    "offload",
    "metadata",
    "analyzeBacklog",
    "replicatedSubscriptionStatus",
    "backlogSize",
}


def test_routes_when_they_are_offered_then_say_what_they_need() -> None:
    """Without a line in broker/rest/http/required_permissions.py a route is for super users alone."""
    assert not [f"{route.method} {route.path}" for route in ROUTES if not is_declared(route)]


def test_route_when_it_needs_no_credentials_then_is_one_of_these() -> None:
    assert {f"{route.method} {route.path}" for route in ROUTES if need_of(route) is OPEN} == WITHOUT_CREDENTIALS


def test_need_when_declared_then_there_is_such_a_route() -> None:
    offered = {f"{route.method} {route.path}" for route in ROUTES}
    left_over = {line for line in set(NEEDS) - offered if not NOT_OFFERED_YET & set(line.split("/"))}
    assert not left_over


def test_command_when_it_is_handled_then_says_what_it_needs() -> None:
    assert {pb.BaseCommand.Type.Name(kind) for kind in AWAITING} == {pb.BaseCommand.Type.Name(kind) for kind in CHECKS}

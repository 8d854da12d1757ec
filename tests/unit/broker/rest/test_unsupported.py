"""What Pulsar offers and this broker does not."""

from __future__ import annotations

from interpulse.broker.rest.http.routing import MethodNotAllowed, Router
from interpulse.broker.rest.server import ROUTES
from interpulse.model.errors import NotFound
from tests.scripts.rest_player import CONVERSATIONS

CALLS = (CONVERSATIONS[0].parents[1] / "admin_calls.txt").read_text().splitlines()
"""Every administrative call of a broker of Apache Pulsar 5.0.0-M1; {} stands for one part."""

ROUTER = Router(ROUTES)


def is_known(call: str) -> bool:
    method, path = call.split()
    path = path.replace("/lookup/v2/topic/{}/", "/lookup/v2/topic/persistent/")
    try:
        ROUTER.find(method, path.replace("{}", "x"))
    except (NotFound, MethodNotAllowed):
        return False
    return True


def test_every_call_of_pulsar_is_answered_or_refused_with_a_reason() -> None:
    assert [call for call in CALLS if not is_known(call)] == []


def test_a_call_that_pulsar_does_not_have_is_not_known() -> None:
    assert not is_known("GET /admin/v2/namespaces/{}/{}/nothing")
    assert not is_known("POST /admin/v2/brokers/version")

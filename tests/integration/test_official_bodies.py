"""Every body that an official client writes is taken; what has no effect is named in the answer."""

from __future__ import annotations

from interpulse.broker.rest.http.admin_calls import IGNORED_FIELDS_HEADER
from tests.official_bodies import played
from tests.support.rest_broker import rest_broker

IGNORED = {"maxDelayInMillis"}
"""Go calls maxDeliveryDelayInMillis so."""


async def test_bodies_of_official_clients_are_taken() -> None:
    async with rest_broker() as broker:
        replies = await played(broker.web_url)
    assert not [(sent, reply.status, reply.body) for sent, reply in replies if reply.status >= 300]
    assert {reply.headers[IGNORED_FIELDS_HEADER] for _, reply in replies if IGNORED_FIELDS_HEADER in reply.headers} == (
        IGNORED
    )

"""Refusals begin with the sentences of a real Pulsar."""

from __future__ import annotations

from tests.scripts.sentences import LIMITED, LIMITED_BY, PREPARED, SENTENCES, unlike
from tests.support.rest_broker import rest_broker
from tests.support.rest_client import call


async def test_refusal_begins_with_the_sentence_of_a_real_pulsar() -> None:
    namespace, wrong = "public/default", []
    async with rest_broker() as broker:
        for method, path, body in PREPARED:
            assert (await call(broker.web_url, method, f"persistent/{namespace}/{path}", body)).status == 204
        wrong += await unlike(broker.web_url, namespace, SENTENCES)
        assert (await call(broker.web_url, "POST", f"{LIMITED_BY}/4")).status == 204
        wrong += await unlike(broker.web_url, namespace, LIMITED)
    assert not wrong, "\n".join(wrong)

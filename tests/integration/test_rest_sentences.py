"""Refusals begin with the sentences of a real Pulsar."""

from __future__ import annotations

from tests.integration.rest_broker import rest_broker
from tests.integration.rest_client import call
from tests.scripts.sentences import ALONE, PREPARED, SENTENCES


async def test_refusal_begins_with_the_sentence_of_a_real_pulsar() -> None:
    wrong = []
    async with rest_broker() as broker:
        for method, path, body in PREPARED:
            assert (await call(broker.web_url, method, f"persistent/public/default/{path}", body)).status == 204
        for method, path, body, status, sentence in SENTENCES:
            reply = await call(broker.web_url, method, path.format(namespace="public/default"), body)
            begin = sentence.format(topics="persistent://public/default")
            same = reply.reason == begin if sentence in ALONE else reply.reason.startswith(begin)
            if reply.status != status or not same:
                wrong.append(f"{method} {path}: {reply.status} {reply.reason} instead of {status} {begin}")
    assert not wrong, "\n".join(wrong)

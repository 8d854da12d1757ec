"""The sentences that are written down are those of a real Pulsar."""

from __future__ import annotations

import uuid

import pytest

from tests.integration.rest_client import call
from tests.interop.real_pulsar import Address
from tests.scripts.sentences import ALONE, PREPARED, SENTENCES

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def test_real_pulsar_says_so(real_pulsar: Address) -> None:
    namespace = f"public/sentences-{uuid.uuid4().hex[:8]}"
    web_url, wrong = real_pulsar.web_url, []
    assert (await call(web_url, "PUT", f"namespaces/{namespace}")).status == 204
    for method, path, body in PREPARED:
        assert (await call(web_url, method, f"persistent/{namespace}/{path}", body)).status == 204
    for method, path, body, status, sentence in SENTENCES:
        reply = await call(web_url, method, path.format(namespace=namespace), body)
        begin = sentence.format(topics=f"persistent://{namespace}")
        same = reply.reason == begin if sentence in ALONE else reply.reason.startswith(begin)
        if reply.status != status or not same:
            wrong.append(f"{method} {path}: {reply.status} {reply.reason} instead of {status} {begin}")
    assert not wrong, "\n".join(wrong)

"""The sentences that are written down are those of a real Pulsar."""

from __future__ import annotations

import asyncio
import json
import urllib.request
import uuid

import pytest

from tests.interop.real_pulsar import Address
from tests.interop.replicated_pairs import until
from tests.scripts.sentences import LIMITED, LIMITED_BY, PREPARED, SENTENCES, unlike
from tests.support.rest_client import call, call_real

pytestmark = [pytest.mark.interop, pytest.mark.slow]


async def test_real_pulsar_says_so(real_pulsar: Address) -> None:
    namespace = f"public/sentences-{uuid.uuid4().hex[:8]}"
    web_url = real_pulsar.web_url
    assert (await call(web_url, "PUT", f"namespaces/{namespace}")).status == 204
    for method, path, body in PREPARED:
        assert (await call_real(web_url, method, f"persistent/{namespace}/{path}", body, expected=())).status == 204
    wrong = await unlike(web_url, namespace, SENTENCES, real=True)
    assert not wrong, "\n".join(wrong)


async def test_real_pulsar_says_so_of_a_maximum(real_pulsar: Address) -> None:
    namespace = f"public/sentences-{uuid.uuid4().hex[:8]}"
    web_url = real_pulsar.web_url
    assert (await call(web_url, "PUT", f"namespaces/{namespace}")).status == 204
    for method, path, body in PREPARED:
        assert (await call_real(web_url, method, f"persistent/{namespace}/{path}", body, expected=())).status == 204
    assert (await call(web_url, "POST", f"{LIMITED_BY}/4")).status == 200
    try:
        await asyncio.to_thread(until, lambda: _limit(web_url), "4")
        wrong = await unlike(web_url, namespace, LIMITED, real=True)
    finally:
        assert (await call(web_url, "DELETE", LIMITED_BY)).status == 200
    assert not wrong, "\n".join(wrong)


def _limit(web_url: str) -> str | None:
    path, _, key = LIMITED_BY.rpartition("/")
    with urllib.request.urlopen(f"{web_url}/admin/v2/{path}/values", timeout=60) as answer:
        return json.load(answer).get(key)

"""What this broker refuses to web pages, a real Pulsar does."""

from __future__ import annotations

import urllib.request
import uuid

import pytest

from tests.interop.real_pulsar import Address

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize(
    "page",
    [
        {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "application/json"},
        {"Host": "evil.example:8080", "Content-Type": "application/json"},
    ],
    ids=["foreign origin", "rebound name"],
)
def test_real_pulsar_when_a_web_page_calls_then_does_what_it_asks(real_pulsar: Address, page: dict[str, str]) -> None:
    url = f"{real_pulsar.web_url}/admin/v2/persistent/public/default/{uuid.uuid4().hex}"
    with urllib.request.urlopen(urllib.request.Request(url, b"", page, method="PUT"), timeout=60) as answer:
        assert answer.status == 204
        assert "X-Content-Type-Options" not in answer.headers

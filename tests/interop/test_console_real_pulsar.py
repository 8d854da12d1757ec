"""``interpulse console`` shows a real Pulsar as it shows one of ours."""

from __future__ import annotations

import pytest

from interpulse.sync import AdminClient
from tests.interop.real_pulsar import Address
from tests.support.remote_console import console_of, walk

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_console_when_walked_then_shows_topics_and_does_what_it_is_told(real_pulsar: Address) -> None:
    with AdminClient(real_pulsar.web_url) as admin:
        admin.namespaces.create("public/console")
    with console_of(real_pulsar.web_url, "--actions") as browser:
        walk(browser, real_pulsar.service_url, real_pulsar.web_url, "public/console")

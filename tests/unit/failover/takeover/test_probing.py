"""Probes of a site that is said to be lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from interpulse.client.failover.auto import Health
from interpulse.client.failover.probe import SiteProbe
from interpulse.failover.pair_config import PairLimits, parse_pair_config
from interpulse.failover.site import SiteAccess
from interpulse.failover.takeover.probing import Probing, probed
from interpulse.model.errors import AuthenticationError, NotConnected, PulsarError

SERVICE, ADMIN = "pulsar://127.0.0.1:1", "http://127.0.0.1:2"
LIMITS = PairLimits(probes=3, probe_s=0)


@pytest.fixture
def access() -> SiteAccess:
    sites = {name: {"cluster": name, "service_url": SERVICE, "admin_url": ADMIN} for name in ("east", "west")}
    sites["west"] = {**sites["west"], "service_url": "pulsar://127.0.0.1:3"}
    pair = {"name": "p", "sites": ["east", "west"], "namespaces": ["a/b"], "state": "s"}
    return SiteAccess.of(parse_pair_config({"pair": pair, **sites}), "east")


def answers(monkeypatch: pytest.MonkeyPatch, admin: Callable[[], str], binary: Health) -> None:
    async def kind(self: SiteAccess) -> str:
        return admin()

    async def health(self: SiteProbe, topic: object) -> Health:
        return binary

    monkeypatch.setattr(SiteAccess, "kind", kind)
    monkeypatch.setattr(SiteProbe, "health", health)
    monkeypatch.setattr(asyncio, "timeout", lambda seconds, timeout=asyncio.timeout: timeout(60))


def raising(error: PulsarError) -> Callable[[], str]:
    def call() -> str:
        raise error

    return call


GONE, REFUSED = raising(NotConnected("gone")), raising(AuthenticationError("who are you"))


@pytest.mark.parametrize(
    ("admin", "binary", "found"),
    [
        (GONE, Health.DEAD, Probing(3)),
        (GONE, Health.WELL, Probing(1, SERVICE)),
        (GONE, Health.REFUSED, Probing(1, SERVICE)),
        (REFUSED, Health.DEAD, Probing(1, ADMIN)),
        (lambda: "ours", Health.DEAD, Probing(1, ADMIN)),
    ],
)
async def test_site_when_probed_then_is_lost_if_no_address_answers(
    access: SiteAccess, monkeypatch: pytest.MonkeyPatch, admin: Callable[[], str], binary: Health, found: Probing
) -> None:
    answers(monkeypatch, admin, binary)
    assert await probed(access, LIMITS) == found
    await access.close()


async def test_site_when_nothing_listens_then_is_lost(access: SiteAccess) -> None:
    assert await probed(access, PairLimits(probes=1)) == Probing(1)
    await access.close()

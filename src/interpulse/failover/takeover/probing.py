"""Probes of a site: it counts as lost when neither of its addresses answers several times in a row."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from interpulse.client.failover.auto import Health
from interpulse.client.failover.probe import SiteProbe, health_after
from interpulse.client.failover.sites import Site
from interpulse.failover.pair_config import PairLimits
from interpulse.failover.site import SiteAccess
from interpulse.model.errors import PulsarError


@dataclass(frozen=True)
class Probing:
    """Result of probes. ``answered`` is the address that answered; "" if the site is lost."""

    probes: int
    answered: str = ""


async def probed(access: SiteAccess, limits: PairLimits) -> Probing:
    """Probe both addresses of a site until one answers, at most ``probes`` times. A refusal is an answer."""
    loop = asyncio.get_running_loop()
    address = access.address
    site = Site(address.service_url, credentials=address.credentials, tls=address.tls)
    binary = SiteProbe(access.client.config, site, timeout_s=limits.probe_s)
    try:
        for number in range(1, limits.probes + 1):
            next_at = loop.time() + limits.probe_s
            healths = await asyncio.gather(_admin_health(access, limits.probe_s), binary.health(None))
            named = zip((address.admin_url, address.service_url), healths, strict=True)
            answered = next((url for url, health in named if health is not Health.DEAD), "")
            if answered or number == limits.probes:
                return Probing(number, answered)
            await asyncio.sleep(next_at - loop.time())
    finally:
        await binary.close()
    return Probing(0)


async def _admin_health(access: SiteAccess, timeout_s: float) -> Health:
    try:
        async with asyncio.timeout(timeout_s):
            await access.kind()
    except TimeoutError:
        return Health.DEAD
    except PulsarError as error:
        return health_after(error)
    return Health.WELL

"""Background work of a client with several sites: probes or readings, and the changes that follow from them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol

from interpulse.client.config import ClientConfig
from interpulse.client.failover.auto import AutoFailover, AutoRules, Health
from interpulse.client.failover.controlled import ControlledFailover, site_from_document
from interpulse.client.failover.probe import SiteProbe
from interpulse.client.failover.sites import Site
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName

Failover = AutoFailover | ControlledFailover
_log = logging.getLogger(__name__)


class Moved(Protocol):
    """Session of a client, as the watch over its sites sees it."""

    config: ClientConfig
    topic_in_use: TopicName | None
    site_lost: asyncio.Event
    """Set when a connection to the present site is lost."""

    @property
    def silent_s(self) -> float:
        """Seconds for which a producer or consumer has had no connection; 0 if all have one."""

    def change_site(self, site: Site, reason: str, *, silent_s: float) -> None:
        """Leave the present site for another one."""


def first_site(service_url: str, config: ClientConfig, failover: Failover) -> Site:
    """Return the site at which a client starts. Raise ValueError if its settings contradict its sites."""
    if isinstance(failover, ControlledFailover):
        return Site.of_config(config)
    if config.credentials is not None or config.tls is not None:
        raise ValueError("credentials and tls belong to the sites of AutoFailover: give each Site its own")
    for site in failover.listed:
        site.applied_to(config)  # refused here if the client cannot use it
    first = failover.listed[0]
    if service_url != first.service_url:
        raise ValueError(f"the client starts at the first of its sites: {first}, and not at another address")
    return first


def watch_sites(session: Moved, failover: Failover, site: Site) -> Coroutine[Any, Any, None]:
    """Return the coroutine that watches the sites of a session until it is cancelled."""
    if isinstance(failover, AutoFailover):
        return AutoWatch(session, failover).run()
    return ControlledWatch(session, failover, site).run()


class AutoWatch:
    """Probes the sites of a list, and changes by the rules of :class:`AutoFailover`."""

    def __init__(self, session: Moved, options: AutoFailover) -> None:
        self._session = session
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._rules = AutoRules(options, self._loop.time())
        self._probes = {site: SiteProbe(session.config, site, timeout_s=options.timeout_s) for site in options.listed}
        self._refusals_logged: set[Site] = set()

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._options.interval_s)
                try:
                    await self._look()
                except Exception:  # noqa: BLE001  # a fault of one round must not end the watch
                    _log.exception("sites could not be probed, trying again")
        finally:
            await asyncio.gather(*(probe.close() for probe in self._probes.values()))

    async def _look(self) -> None:
        topic, sites = self._topic(), list(self._rules.probed)
        answers = await asyncio.gather(*(self._probes[site].health(topic) for site in sites))
        outcomes = dict(zip(sites, answers, strict=True))
        self._log_refusals(outcomes)
        now = self._loop.time()
        decision = self._rules.note(outcomes, now)
        if decision is not None:
            self._session.change_site(decision.site, decision.reason, silent_s=self._rules.silent_s(now))
            self._rules.changed(decision.site, now)

    def _topic(self) -> TopicName | None:
        if self._options.probe == "connect":
            return None
        topic = self._options.probe_topic
        return self._session.topic_in_use or (None if topic is None else TopicName.parse(topic))

    def _log_refusals(self, outcomes: dict[Site, Health]) -> None:
        for site, health in outcomes.items():
            if health is not Health.REFUSED:
                self._refusals_logged.discard(site)
            elif site not in self._refusals_logged:
                self._refusals_logged.add(site)
                _log.warning("site answers and refuses the credentials of this client site=%s", site)


class ControlledWatch:
    """Reads the document of :class:`ControlledFailover`, and changes to the site that it names."""

    def __init__(self, session: Moved, options: ControlledFailover, site: Site) -> None:
        self._session = session
        self._options = options
        self._site = site
        self._loop = asyncio.get_running_loop()
        self._problem = ""

    async def run(self) -> None:
        while True:
            try:
                await self._look()
            except Exception:  # noqa: BLE001  # a fault of one round must not end the watch
                _log.exception("site could not be changed, trying again source=%s", self._options.source)
            try:
                async with asyncio.timeout(self._options.interval_s):
                    await self._session.site_lost.wait()
            except TimeoutError:
                pass
            self._session.site_lost.clear()

    async def _look(self) -> None:
        """Read the document and follow it. One that cannot be read or followed changes nothing."""
        try:
            site = site_from_document(await self._document(), self._site)
            if site == self._site:
                self._problem = ""
                return
            health = await self._health(site)
        except (PulsarError, ValueError, OSError) as error:
            self._log_once(f"source cannot be used: {error}")
            return
        if health is not Health.WELL:
            reason = "does not answer" if health is Health.DEAD else "refuses the credentials of this client"
            self._log_once(f"new site {site} {reason}")
            return
        self._problem = ""
        reason = f"{self._options.source} names it"
        self._session.change_site(site, reason, silent_s=self._session.silent_s)
        self._site = site

    async def _document(self) -> dict[str, Any]:
        if self._options.is_address:
            from interpulse.client.transport.json_documents import (
                JsonDocuments,
            )  # imported here: a file needs no HTTP library

            limit_ms = max(int(self._options.timeout_s * 1000), 1)
            return await JsonDocuments(connect_timeout_ms=limit_ms, timeout_ms=limit_ms).get(self._options.source)
        text = await asyncio.to_thread(Path(self._options.path).read_text, encoding="utf-8")
        document = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError("it is no JSON object")
        return document

    async def _health(self, site: Site) -> Health:
        probe = SiteProbe(self._session.config, site, timeout_s=self._options.timeout_s)
        try:
            return await probe.health(self._session.topic_in_use)
        finally:
            await probe.close()

    def _log_once(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            _log.warning("client stays at its site site=%s reason=%s", self._site, problem)

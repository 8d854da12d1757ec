"""The service that writes reports: it looks at the site that serves, and stores what has changed at both sites."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

from interpulse.client.producing.producer import Producer
from interpulse.clock import iso_time, now_ms
from interpulse.failover.pair_config import PairConfig
from interpulse.failover.preflight.gathering import serving_site
from interpulse.failover.reporting.reporter import Reporter
from interpulse.failover.reporting.stored import (
    TOTALS,
    compact_reports,
    key_of,
    prepare_reports_topic,
    reports_topic,
)
from interpulse.failover.site import SiteAccess
from interpulse.model.errors import PulsarError
from interpulse.model.names import TopicName

_SEND_TIMEOUT_MS: Final = 5000
_TOTALS_MS: Final = 60_000
_ROLES_MS: Final = 5000

Records = dict[str, Mapping[str, Any] | None]
"""Reports by their keys; None for those of topic-partitions that are gone."""

Say = Callable[[str], None]
"""Function that prints a line."""


class Watch:
    """Reports of a pair, until `run` is stopped.

    A site that goes away, or stores no reports, is said once, and once when it is back.
    """

    def __init__(self, config: PairConfig, say: Say, clock: Callable[[], int] = now_ms) -> None:
        self._config = config
        self._say = say
        self._clock = clock
        self._sites = {name: SiteAccess.of(config, name) for name in config.sites}
        self._stores = {name: ReportStore(site, reports_topic(config)) for name, site in self._sites.items()}
        self._away: dict[str, int] = {}
        self._unstored: dict[str, int] = {}
        self._returning: dict[str, asyncio.Task[None]] = {}
        self._reporter: Reporter | None = None
        self._roles_ms = self._totals_ms = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Report each ``report_interval_ms``, or as often as the request rate allows, until ``stop`` is set."""
        reporting = asyncio.create_task(self._report_on())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([reporting, stopping], return_when=asyncio.FIRST_COMPLETED)
            if reporting.done():
                reporting.result()
        finally:
            await _end([reporting, stopping, *self._returning.values()])
            await self._close()

    async def _report_on(self) -> None:
        pause_s, loop = self._config.limits.report_interval_ms / 1000, asyncio.get_running_loop()
        while True:
            next_at = loop.time() + pause_s
            await self.round()
            await asyncio.sleep(next_at - loop.time())

    async def round(self) -> None:
        """Look once, and store what has changed."""
        reporter = await self._reporter_now()
        reporter.asks_copies = await self._answers(self._config.other(reporter.site.name))
        try:
            changed = await reporter.look()
        except PulsarError as error:
            self._note_away(reporter.site.name, error)
            return
        self._note_back(reporter.site.name)
        records: Records = {key_of(topic): each.to_json() for topic, each in changed.items()}
        records |= {key_of(topic): None for topic in reporter.gone}
        is_minute = self._clock() - self._totals_ms >= _TOTALS_MS
        if is_minute:
            self._totals_ms = self._clock()
            records[TOTALS] = reporter.totals().to_json()
        if records:
            await asyncio.gather(*(self._store(name, records, is_minute=is_minute) for name in self._sites))

    async def _answers(self, name: str) -> bool:
        """Return True if a site answers. Lookups of many topics would wait long for one that does not."""
        try:
            await self._sites[name].admin.brokers.version()
        except PulsarError as error:
            self._note_away(name, error)
        return name not in self._away

    async def _reporter_now(self) -> Reporter:
        """Return the reporter of the site that serves. While the roles cannot be read, it stays as it was."""
        if self._reporter is None or self._clock() - self._roles_ms >= _ROLES_MS:
            self._roles_ms = self._clock()
            name = self._config.sites[0] if self._reporter is None else self._reporter.site.name
            with suppress(PulsarError):  # the look or the store says which site is away
                name = await serving_site(self._config, self._sites.values())
            if self._reporter is None or self._reporter.site.name != name:
                self._reporter = self._new_reporter(name)
                self._totals_ms = 0
        return self._reporter

    def _new_reporter(self, name: str) -> Reporter:
        site, other = self._sites[name], self._sites[self._config.other(name)]
        self._say(f"{self._config.name}: {name} serves; what {other.name} has not copied is reported")
        return Reporter(site, other, self._config.limits.requests_per_second, self._clock)

    async def _store(self, name: str, records: Records, *, is_minute: bool) -> None:
        """Store records at a site. One that was away gets all reports, as soon as it takes them."""
        if name in self._away or name in self._unstored:
            before = self._returning.get(name)
            if before is None or before.done():
                if before is not None:
                    before.result()
                self._returning[name] = asyncio.create_task(self._bring_back(name))
            return
        try:
            await self._stores[name].write(records)
            if is_minute:
                await self._stores[name].compact()
        except PulsarError as error:
            await self._note_refusal(name, error)

    async def _bring_back(self, name: str) -> None:
        assert self._reporter is not None, "it has made the records"
        reports = {key_of(topic): each.to_json() for topic, each in self._reporter.reports.items()}
        try:
            await self._stores[name].write({**reports, TOTALS: self._reporter.totals().to_json()})
        except PulsarError as error:
            await self._note_refusal(name, error)
            return
        self._note_back(name)
        since = self._unstored.pop(name, None)
        if since is not None:
            self._say(f"{self._config.name}: {name} stores reports again after {(self._clock() - since) / 1000:.0f} s")

    async def _note_refusal(self, name: str, error: PulsarError) -> None:
        """Say that a site is away, or that it answers and does not store reports."""
        try:
            await self._sites[name].admin.brokers.version()
        except PulsarError as silence:
            self._note_away(name, silence)
            return
        self._note_back(name)
        if name not in self._unstored:
            self._unstored[name] = self._clock()
            self._say(f"{self._config.name}: {name} stores no reports since {iso_time(self._clock())}: {error}")

    def _note_away(self, name: str, error: PulsarError) -> None:
        if name not in self._away:
            self._away[name] = self._clock()
            self._say(f"{self._config.name}: {name} does not answer since {iso_time(self._clock())}: {error}")

    def _note_back(self, name: str) -> None:
        since = self._away.pop(name, None)
        if since is not None:
            self._say(f"{self._config.name}: {name} answers again after {(self._clock() - since) / 1000:.0f} s")

    async def _close(self) -> None:
        async with AsyncExitStack() as closing:
            for site in self._sites.values():
                closing.push_async_callback(site.close)
            for store in self._stores.values():
                closing.push_async_callback(store.close)


class ReportStore:
    """The topic of the reports at one site, with a producer that is opened when it is needed."""

    def __init__(self, site: SiteAccess, topic: TopicName) -> None:
        self._site = site
        self._topic = topic
        self._producer: Producer | None = None

    async def write(self, records: Records) -> None:
        """Store records under their keys, and tombstones for those that are None.

        Raise the site's error; the next call opens the producer again.
        """
        try:
            if self._producer is None:
                await prepare_reports_topic(self._site, self._topic)
                self._producer = await self._site.client.create_producer(
                    str(self._topic), send_timeout_ms=_SEND_TIMEOUT_MS
                )
            bodies = {key: None if body is None else json.dumps(body) for key, body in records.items()}
            sends = [self._producer.send(body, key=key) for key, body in bodies.items()]
            await asyncio.gather(*sends)
        except PulsarError:
            await self.close()
            raise

    async def compact(self) -> None:
        """Let the broker drop reports that newer ones replace."""
        await compact_reports(self._site, self._topic)

    async def close(self) -> None:
        """Close the producer. What it could not send is lost: the next report replaces it."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(PulsarError):
                await producer.close()


async def _end(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for them."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

"""The peer of this cluster in a pair: a site that was down learns from it that the other one serves.

With ``failoverPeer`` set, this broker asks the peer for the role of each namespace that has one: when the role is first
needed, and every few seconds from then on. If the peer has a higher epoch, the namespace becomes standby here. A role
that was set before this broker started is not trusted until the peer has answered: the namespace is fenced for
``failoverPeerWait``, or with ``failoverWithoutPeer=hold`` until the peer answers.

Nothing is changed at the peer. Source: docs/reference/administration.md#a-site-that-comes-back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from interpulse.broker.periodic import run_periodically
from interpulse.clock import Clock, iso_time
from interpulse.in_turns import concurrently
from interpulse.model.errors import NotFound, PulsarError, RemoteClusterUnavailable
from interpulse.model.names import NamespaceName
from interpulse.rules.failover_role import FailoverRole, after_peer, unconfirmed

log = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 1.0
_PAUSE_ONCE_TRUSTED_MS: Final = 5000
_AT_ONCE: Final = 16


class PeerRole(NamedTuple):
    """The role of a namespace at the peer."""

    role: str
    epoch: int
    asked_at: str
    """ISO time of the answer, by the clock of this broker."""

    def to_json(self) -> dict[str, Any]:
        """Return the members for the admin API."""
        return {"role": self.role, "epoch": self.epoch, "askedAt": self.asked_at}


AskPeer = Callable[[NamespaceName], Awaitable[dict[str, Any]]]
"""A question to the peer for a role. Raises NotFound if it has none, and the errors of a failed call."""


class Roles(Protocol):
    """The roles that this cluster stores."""

    async def stored(self, namespace: NamespaceName) -> FailoverRole | None:
        """Return the stored role; None without one."""

    async def stand_by_after(self, namespace: NamespaceName, peer_epoch: int) -> FailoverRole | None:
        """Store standby if `after_peer` says so for the role that is stored then, and return it; None otherwise."""


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """The settings ``failoverPeer``, ``failoverPeerWait`` in seconds, and ``failoverWithoutPeer``."""

    cluster: str
    wait_seconds: float
    holds_without_peer: bool


@dataclass(slots=True)
class _Followed:
    since_ms: int
    """Time of the first look."""
    asked_ms: int = 0
    trusted: bool = False
    """True once the stored role may be in force."""
    silent: bool = False
    """True after a question without an answer."""
    peer: PeerRole | None = None


class FailoverPeer:
    """The looks at the peer; see the module. `start` when the registry of topics has started."""

    def __init__(self, settings: PeerSettings, ask: AskPeer, clock: Clock) -> None:
        self.cluster = settings.cluster
        self._settings = settings
        self._ask = ask
        self._clock = clock
        self._started = iso_time(clock.now_ms())
        self._followed: dict[NamespaceName, _Followed] = {}
        self._roles: Roles | None = None
        self._spawn: Callable[[Coroutine[Any, Any, None]], None] = lambda work: work.close()
        self._apply: Callable[[NamespaceName], None] = lambda namespace: None

    def start(
        self,
        roles: Roles,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        apply: Callable[[NamespaceName], None],
    ) -> None:
        """Start to ask. ``spawn`` owns the tasks; ``apply`` applies a role that the peer has confirmed."""
        self._roles, self._spawn, self._apply = roles, spawn, apply
        spawn(run_periodically("roles of the peer", lambda: _PAUSE_SECONDS, self._ask_for_all))
        for namespace in self._followed:
            spawn(self._ask_for(namespace))

    def in_force(self, namespace: NamespaceName, stored: FailoverRole) -> FailoverRole:
        """Return the role in force for a stored one, and follow the namespace from now on."""
        followed = self._followed.get(namespace)
        if followed is None:
            followed = self._followed[namespace] = _Followed(self._clock.now_ms())
            self._spawn(self._ask_for(namespace))
        if followed.trusted or stored.since >= self._started:
            return stored
        return unconfirmed(stored, self.cluster)

    def seen(self, namespace: NamespaceName) -> PeerRole | None:
        """Return the last answer of the peer; None without one, or if it has no role."""
        followed = self._followed.get(namespace)
        return None if followed is None else followed.peer

    async def _ask_for_all(self) -> None:
        latest_ms = self._clock.now_ms() - _PAUSE_ONCE_TRUSTED_MS
        due = [name for name, each in self._followed.items() if not each.trusted or each.asked_ms <= latest_ms]
        await concurrently(self._ask_for, due, limit=_AT_ONCE)

    async def _ask_for(self, namespace: NamespaceName) -> None:
        followed = self._followed.get(namespace)
        if followed is None:
            return
        followed.asked_ms = self._clock.now_ms()
        try:
            async with asyncio.timeout(self._settings.wait_seconds):
                followed.peer = self._peer_role(await self._ask(namespace))
        except NotFound:  # the peer has no such namespace, or is a cluster of Apache Pulsar
            followed.peer = None
        except (PulsarError, TimeoutError) as error:
            self._note_silence(namespace, followed, str(error) or "no answer in time")
            return
        followed.silent = False
        try:
            await self._compare(namespace, followed)
        except PulsarError as error:
            log.warning("role not compared with the peer, retrying namespace=%s error=%s", namespace, error)

    def _peer_role(self, answer: dict[str, Any]) -> PeerRole:
        epoch = answer.get("epoch")
        if not isinstance(epoch, int):
            raise RemoteClusterUnavailable(f"Its answer has no epoch: {str(answer)[:200]}")
        return PeerRole(str(answer.get("role")), epoch, iso_time(self._clock.now_ms()))

    async def _compare(self, namespace: NamespaceName, followed: _Followed) -> None:
        assert self._roles is not None  # nothing is asked before the start
        stored = await self._roles.stored(namespace)
        if stored is None:
            self._followed.pop(namespace, None)
            return
        if followed.peer is not None and after_peer(stored, followed.peer.epoch) is not stored:
            later = await self._roles.stand_by_after(namespace, followed.peer.epoch)
            if later is not None:
                log.warning(
                    "namespace is standby, as the peer has a higher epoch namespace=%s role=%s peer=%s peer_role=%s",
                    *(namespace, stored, self.cluster, followed.peer.role),
                )
        self._trust(namespace, followed)

    def _note_silence(self, namespace: NamespaceName, followed: _Followed, problem: str) -> None:
        waited_ms = self._clock.now_ms() - followed.since_ms
        ends = not self._settings.holds_without_peer and waited_ms >= self._settings.wait_seconds * 1000
        if not followed.silent or (ends and not followed.trusted):
            state = "served as it was" if ends or followed.trusted else "fenced until it answers"
            log.warning(
                "the peer does not answer for its role namespace=%s peer=%s state=%s error=%s",
                *(namespace, self.cluster, state, problem),
            )
        followed.silent = True
        if ends:
            self._trust(namespace, followed)

    def _trust(self, namespace: NamespaceName, followed: _Followed) -> None:
        if not followed.trusted:
            followed.trusted = True
            self._apply(namespace)

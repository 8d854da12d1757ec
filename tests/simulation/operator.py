"""An operator: a program that changes and reads things over HTTP, and judges each answer by what may be true."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from interpulse.client.admin.admin_client import AdminClient
from interpulse.model.errors import PulsarError
from tests.simulation.administered import Administered, Request
from tests.simulation.judge import Finding, Interval
from tests.simulation.nodes import Node
from tests.simulation.possible import Possible
from tests.simulation.workload import until_done
from tests.simulation.world import World

_TIMEOUT_MS: Final = 5_000
CLOSED_SECONDS: Final = 1.0
"""The time after which nothing of a closed client may be left."""
_RETRY: Final = (408, 429)
"""Refusals that say nothing about the request."""
_TRY_AGAIN: Final = "meanwhile, try again"
"""What a broker says when another one is faster, for example in taking a bundle that is to be collected."""


def status_of(error: PulsarError) -> int:
    """Return the HTTP status of the answer; 0 if there was none."""
    notes = [note.split() for note in getattr(error, "__notes__", ())]
    return next((int(words[1]) for words in notes if len(words) > 1 and words[0] == "HTTP"), 0)


class Operator:
    """Changes these things of a broker, which no other program changes."""

    def __init__(self, world: World, name: str, web_url: str, broker: Node, *, pause_seconds_max: float = 0.1) -> None:
        """``pause_seconds_max`` is the longest pause between requests."""
        self.findings: list[Finding] = []
        self.working = True
        """False = no more requests."""
        self._world = world
        self._chance = world.stream(f"operator/{name}")
        self._web_url = web_url
        self._broker = broker
        self._pause_seconds_max = pause_seconds_max
        self._things: list[tuple[Administered, Possible]] = []
        self._failures: list[tuple[float, str]] = []

    def take(self, things: Sequence[Administered]) -> None:
        """Administer these things, which have their initial values."""
        self._things = [(thing, Possible(thing.name, thing.initial, lambda: self._world.seconds)) for thing in things]

    def possible(self, name: str) -> Possible:
        """Return the values of a thing."""
        return next(possible for thing, possible in self._things if thing.name == name)

    async def work(self, node: Node) -> None:
        """Send requests with one client after the other, until `working` ends."""
        while self.working:
            async with AdminClient(self._web_url, timeout_ms=_TIMEOUT_MS) as admin:
                for _ in range(self._chance.randint(1, 8)):
                    await asyncio.sleep(self._chance.uniform(0, self._pause_seconds_max))
                    thing, possible = self._chance.choice(self._things)
                    possible.forget_lost(self._broker.life)
                    if self._chance.random() < 0.3:
                        await self._look(admin, thing, possible)
                    else:
                        await self._change(admin, thing.draw(self._chance), possible)
            await asyncio.sleep(CLOSED_SECONDS)
            self.findings += left_of_client(node)

    async def look_at_all(self, node: Node) -> None:
        """Read everything, once no request is under way any more."""
        async with AdminClient(self._web_url, timeout_ms=_TIMEOUT_MS) as admin:
            for thing, possible in self._things:
                possible.forget_lost(self._broker.life + 1)
                value = await until_done(lambda thing=thing: thing.read(admin))  # type: ignore[misc]
                self._judge_seen(possible, value)

    def judge(self, excuses: Sequence[Interval]) -> list[Finding]:
        """Return what was wrong. ``excuses`` are the times in which the broker may fail."""
        return self.findings + [
            Finding("T2", text)
            for at, text in self._failures
            if not any(excuse.begin <= at <= excuse.end for excuse in excuses)
        ]

    async def _change(self, admin: AdminClient, request: Request, possible: Possible) -> None:
        text = f"{possible.name}: {request.text}"
        life = self._broker.life + request.is_resumed
        before = possible.values
        possible.sent(request.effect)
        try:
            async with asyncio.timeout(self._patience()):
                await request.send(admin)
        except TimeoutError:
            possible.lost(request.effect, life)
            self._note(text, "given up")
        except PulsarError as error:
            status = status_of(error)
            if _TRY_AGAIN in str(error):
                possible.lost(request.effect, life)
            elif 400 <= status < 500 and status not in _RETRY:
                self._expect(possible.refused(request.effect), f"{text} was refused, of {before}: {status} {error}")
            else:
                possible.lost(request.effect, life)
                self._note_failure(text, status, error)
            self._note(text, f"{status} {error}")
        else:
            self._expect(possible.done(request.effect), f"{text} was done, of {before}")
            self._note(text, "done")

    async def _look(self, admin: AdminClient, thing: Administered, possible: Possible) -> None:
        try:
            value = await thing.read(admin)
        except PulsarError as error:
            self._note_failure(f"read {thing.name}", status_of(error), error)
        else:
            self._judge_seen(possible, value)

    def _judge_seen(self, possible: Possible, value: object) -> None:
        before = possible.values
        self._expect(possible.seen(value), f"{possible.name} is {value!r}, possible was {before}")
        self._note(possible.name, f"is {value!r}")

    def _patience(self) -> float | None:
        """Draw the seconds after which the operator gives up; None = never."""
        return self._chance.uniform(0, 0.01) if self._chance.random() < 0.1 else None

    def _note_failure(self, text: str, status: int, error: PulsarError) -> None:
        if status >= 500 and status != 503:
            self._failures.append((self._world.seconds, f"{text} was answered {status} {error}"))

    def _expect(self, fulfilled: bool, text: str) -> None:
        if not fulfilled:
            self.findings.append(Finding("T2", f"{self._world.seconds:.3f} {text}"))

    def _note(self, *parts: object) -> None:
        self._world.note("operator", *parts)


def left_of_client(node: Node) -> list[Finding]:
    """Return what a closed client has left on its node, whose current task is the only one that may be there."""
    tasks = [task for task in asyncio.all_tasks(node.loop) if task is not asyncio.current_task()]
    timers = [timer for timer in node.loop._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
    connections = [each for each in node.world.network.connections if each.node is node]
    left = {"tasks": len(tasks), "timers": len(timers), "connections": len(connections)}
    return [Finding("C1", f"{node.name}: {count} {what} left after close") for what, count in left.items() if count]

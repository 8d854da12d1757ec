"""Running of a command: opens the client, waits for the answer, turns failures into one line and an exit code.

Exit codes are the same everywhere: 0 done; 1 failed, or a comparison found differences; 2 wrong usage, including a file
or setting that cannot be used, or nothing could be checked; 3 conflicts that only an operator can solve; 4 not allowed;
5 not reachable; 6 not offered.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.model.errors import (
    AuthenticationError,
    AuthorizationError,
    Forbidden,
    NotConnected,
    NotImplementedYet,
    OperationTimeout,
    PulsarError,
)
from interpulse.terminal.output import format_option

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

FAILED = 1
UNUSABLE = 2
CONFLICT = 3
NOT_ALLOWED = 4
UNREACHABLE = 5
NOT_OFFERED = 6

P = ParamSpec("P")


class CommandFailed(click.ClickException):
    """One sentence on standard error and an exit code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it from the instance


def failure(error: PulsarError) -> CommandFailed:
    """Return the message of an error, with REST's status line appended."""
    sentence = " ".join(str(error).split()) or type(error).__name__
    notes = "; ".join(getattr(error, "__notes__", ()))
    return CommandFailed(f"{sentence} ({notes})" if notes else sentence, _exit_code(error))


def _exit_code(error: PulsarError) -> int:
    if isinstance(error, (NotConnected, OperationTimeout)):
        return UNREACHABLE
    if isinstance(error, (AuthenticationError, AuthorizationError)) and not isinstance(error, Forbidden):
        return NOT_ALLOWED
    if isinstance(error, NotImplementedYet):
        return NOT_OFFERED
    return FAILED


def admin_command(command: Callable[Concatenate[AdminClient, P], Awaitable[None]]) -> Callable[..., Any]:
    """Make a click callback of a coroutine function whose first argument is an admin client.

    The command also takes ``--output`` for everything it prints.
    """

    @format_option(hidden=True)
    @click.pass_obj
    @functools.wraps(command)
    def run(settings: ConnectionSettings, /, *args: P.args, **kwargs: P.kwargs) -> None:
        import asyncio

        try:
            asyncio.run(_with_client(settings, lambda admin: command(admin, *args, **kwargs)))
        except PulsarError as error:
            raise failure(error) from error

    return run


async def _with_client(settings: ConnectionSettings, call: Callable[[AdminClient], Awaitable[None]]) -> None:
    async with open_admin(settings, settings.admin_url) as admin:
        await call(admin)


def open_admin(settings: ConnectionSettings, web_url: str) -> AdminClient:
    """Open a client for a cluster, with the user's credentials and timeouts. Raise UsageError for a bad address."""
    from interpulse.client.admin.admin_client import AdminClient

    try:
        return AdminClient(
            web_url,
            credentials=settings.credentials(),
            timeout_ms=settings.request_timeout_ms,
            tls=settings.tls(),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error

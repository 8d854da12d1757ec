"""Names of a cluster for shell completion: quick or none at all, and never any other output."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_PATIENCE_S: Final = 1.5
_SHOWN_MAX: Final = 200
_NAMESPACES_LISTED_MAX: Final = 5
_SCHEMES: Final = ("persistent://", "non-persistent://")


def complete_tenants(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the tenants that begin with the text."""
    return _completed(ctx, lambda admin: admin.tenants.list(), incomplete)


def complete_namespaces(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return the namespaces that begin with the text."""
    return _completed(ctx, lambda admin: _namespaces(admin, incomplete), incomplete)


def complete_topics(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return the topics that begin with the text, partitioned ones by their own name.

    Topics come from the first matching namespaces. Without a slash, short names in public/default match as well.
    """
    return _completed(ctx, lambda admin: _topics(admin, incomplete), incomplete)


async def _namespaces(admin: AdminClient, incomplete: str) -> list[str]:
    tenant, slash, _ = incomplete.partition("/")
    tenants = [tenant] if slash else [name for name in await admin.tenants.list() if name.startswith(tenant)]
    return [name for tenant in tenants[:_NAMESPACES_LISTED_MAX] for name in await admin.namespaces.list(tenant)]


async def _topics(admin: AdminClient, incomplete: str) -> list[str]:
    from interpulse.model.names import PUBLIC_DEFAULT, TopicName

    scheme = next((name for name in _SCHEMES if incomplete.startswith(name)), "")
    rest = incomplete.removeprefix(scheme)
    place = "/".join(rest.split("/")[:2])
    if rest.count("/") >= 2:
        namespaces = [place]
    else:
        namespaces = [name for name in await _namespaces(admin, place) if name.startswith(place)]
    listed = [name for namespace in namespaces[:_NAMESPACES_LISTED_MAX] for name in await admin.topics.list(namespace)]
    bases = [str(TopicName.parse(name).base) for name in listed]
    names = [name if scheme else name.partition("://")[2] for name in bases if name.startswith(scheme)]
    if not scheme and "/" not in rest:
        short = f"{PUBLIC_DEFAULT}/"
        of_default = await admin.topics.list(str(PUBLIC_DEFAULT), domains=("persistent",))
        names += [str(TopicName.parse(name).base).partition("://")[2].removeprefix(short) for name in of_default]
    return names


def _completed(
    ctx: click.Context, ask: Callable[[AdminClient], Awaitable[list[str]]], incomplete: str
) -> list[CompletionItem]:
    import asyncio  # only here: help starts without it

    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            names = asyncio.run(_asked(_flags(ctx), ask))
    except (Exception, SystemExit):  # noqa: BLE001  # a shell that completes shows no errors
        return []
    finally:
        logging.disable(logging.NOTSET)
    fitting = sorted({name for name in names if name.startswith(incomplete)})
    return [CompletionItem(name) for name in fitting[:_SHOWN_MAX]]


async def _asked(flags: dict[str, Any], ask: Callable[[AdminClient], Awaitable[list[str]]]) -> list[str]:
    import asyncio

    from interpulse.cli.support.connection.settings import ConnectionSettings
    from interpulse.cli.support.running import open_admin

    settings = ConnectionSettings.resolve(flags)
    async with open_admin(settings, settings.admin_url) as admin, asyncio.timeout(_PATIENCE_S):
        return list(await ask(admin))


def _flags(ctx: click.Context) -> dict[str, Any]:
    flags: dict[str, Any] = {}
    context: click.Context | None = ctx
    while context is not None:
        flags = {**{name: value for name, value in context.params.items() if value is not None}, **flags}
        context = context.parent
    return flags

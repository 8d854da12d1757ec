"""Command ``interpulse console``: the web console for any cluster, over its admin API."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.admin.admin import connection_options
from interpulse.cli.programs.serving import CannotStart, announce, run, stop_signal
from interpulse.cli.support.connection.settings import ConnectionSettings
from interpulse.model.clusters import shown_address
from interpulse.terminal.option_groups import flag, option

if TYPE_CHECKING:
    from interpulse.client.transport.http_session import HttpSession

_HOST: Final = "127.0.0.1"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@option("--admin-url webServiceUrl", "Web service URL, http://localhost:8080 unless configured.")
@option("--port", "Port on loopback, 0 = a free one.", int, 8090)
@flag("--actions", "Offer actions too; without it, the pages change nothing.")
@flag("--open opened", "Open the browser.")
@connection_options
def console(port: int, actions: bool, opened: bool, **flags: Any) -> None:
    """Show a cluster in the browser, one of ours or of Apache Pulsar.

    Shows topics, subscriptions, messages, schemas and inconsistencies, as far as the admin API reports them. The pages
    are for users of this machine: every user who can connect to its loopback address sees what the given credentials
    may see. Our brokers have their own console, with more pages, at /console.

    Prints the line "ready" when the pages are available.
    """
    settings = ConnectionSettings.resolve(flags)
    run(_serve(settings, port, actions=actions, opened=opened))


async def _serve(settings: ConnectionSettings, port: int, *, actions: bool, opened: bool) -> None:
    from interpulse.console.host import MISSING_EXTRA, extra_installed
    from interpulse.serving.listening import CannotListen, ServiceAddress

    if not extra_installed():
        raise CannotStart(MISSING_EXTRA)
    from interpulse.console.remote import RemoteConsole

    stopping = stop_signal()
    async with _session(settings) as session:
        cluster = shown_address(settings.admin_url)
        pages = RemoteConsole(session, cluster, read_only=not actions)
        try:
            bound = ServiceAddress("console", _HOST, port).bind()
            url = f"http://{_HOST}:{bound.getsockname()[1]}/console"
            await pages.start(bound)
        except CannotListen as error:
            raise CannotStart(str(error)) from error
        try:
            announce(f"console of {cluster}: {url}")
            if opened:
                webbrowser.open(url)
            await stopping.wait()
        finally:
            await pages.stop()


def _session(settings: ConnectionSettings) -> HttpSession:
    from interpulse.client.transport.http_session import HttpSession

    try:
        return HttpSession(
            settings.admin_url,
            credentials=settings.credentials(),
            timeout_ms=settings.request_timeout_ms,
            tls=settings.tls(),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error

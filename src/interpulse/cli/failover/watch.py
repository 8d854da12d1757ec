"""Command ``watch``: reports of what is not copied yet, for the day on which a site is lost."""

from __future__ import annotations

import asyncio

import click

from interpulse.cli.failover.options import config_option, finish, read_config


@click.command()
@config_option
def watch(config_path: str) -> None:
    """Report all the time what the other site has not copied yet. A service; stop it with Ctrl-C or SIGTERM.

    Stores the reports at both sites, so that `status` can say what is at stake when one of them is lost. Prints a line
    when a site stops answering and when it answers again. Run it beside the replication job, which does not report.
    """
    config = read_config(config_path)

    async def run() -> int:
        import signal

        from interpulse.failover.reporting.watching import Watch

        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        await Watch(config, lambda line: click.echo(line, err=True)).run(stop)
        return 0

    finish(run)

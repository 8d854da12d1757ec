"""Commands ``plan``: runbooks of operations."""

from __future__ import annotations

from pathlib import Path

import click

from interpulse.cli.failover.options import check_names, config_option, finish, read_config
from interpulse.terminal.option_groups import option


@click.group("plan")
def plan() -> None:
    """Write the runbook of an operation. Nothing is changed."""


@plan.command("switch")
@config_option
@option("--to site", "Site that serves afterwards.", metavar="SITE", required=True)
@option("-o --output file", "Write the runbook to this file.", click.Path(dir_okay=False, path_type=Path))
def switch(config_path: str, site: str, file: Path | None) -> None:
    """Write the runbook of a switch in Markdown: its steps, with the very commands for this pair.

    Each step has the command of ours, the same by hand with curl or pulsar-admin, how to see that it holds, how to
    undo it, how long it may take, and who decides.
    """
    config = read_config(config_path)
    check_names(config, site, ())

    async def run() -> int:
        from interpulse.failover.planning.plan import plan_of_switch
        from interpulse.failover.planning.runbook import switch_runbook

        text = switch_runbook(await plan_of_switch(config, config_path, site))
        if file is None:
            click.echo(text, nl=False)
        else:
            _write(file, text)
        return 0

    finish(run)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be written: {error.strerror}", param_hint="--output") from error
    click.echo(f"{file} written", err=True)

"""Command ``check``: the preflight of a switch, with a remedy for each finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from interpulse.cli.failover.options import (
    check_names,
    config_option,
    finish,
    output_option,
    print_object,
    read_config,
)
from interpulse.cli.support.params import TIME
from interpulse.terminal.formats import to_table
from interpulse.terminal.option_groups import flag, option

if TYPE_CHECKING:
    from interpulse.failover.pair_config import PairConfig
    from interpulse.failover.preflight.facts import CheckLimits
    from interpulse.failover.preflight.judgement import Preflight


@click.command()
@config_option
@option("--to", "Site to switch to; without it the one that does not serve.", metavar="SITE")
@option("--accept accepted", "Go on in spite of errors of this kind; can be repeated.", metavar="KIND", multiple=True)
@option("--outage outage_s", "Longest expected outage of a site.", TIME, "24h")
@flag("--one-way", "Nothing has to be copied back: a missing way back is a warning.")
@output_option
def check(
    config_path: str, to: str | None, accepted: tuple[str, ...], outage_s: int, one_way: bool, output: str
) -> None:
    """Check if the sites of a pair are ready for a switch. Nothing is changed.

    Compares topics, policies, schemas and subscriptions, and looks for what a switch would break: ways that do not
    copy, clients that do not change over, limits and retention that are too short, clocks, roles, permissions. Prints
    a remedy for each finding.

    Exit codes: 0 ready; 1 warnings; 2 a cluster could not be asked; 3 errors.
    """
    from interpulse.failover.preflight.facts import CheckLimits

    config = read_config(config_path)
    check_names(config, to, accepted)
    limits = CheckLimits(outage_s=outage_s, one_way=one_way)

    async def run() -> int:
        site, result = await _check(config, to, accepted, limits)
        if output == "json":
            print_object({"pair": config.name, "to": site, **result.to_json()})
        else:
            click.echo(_text(config, site, result))
        return result.exit_code

    finish(run, output)


async def _check(
    config: PairConfig, to: str | None, accepted: tuple[str, ...], limits: CheckLimits
) -> tuple[str, Preflight]:
    from interpulse.failover.preflight.gathering import preflight, serving_site
    from interpulse.failover.site import SiteAccess

    sites = {name: SiteAccess.of(config, name) for name in config.sites}
    try:
        name = to or config.other(await serving_site(config, sites.values()))
        result = await preflight(config, sites[config.other(name)], sites[name], accepted=accepted, limits=limits)
    finally:
        for site in sites.values():
            await site.close()
    return name, result


def _text(config: PairConfig, to: str, result: Preflight) -> str:
    """Return the findings as a table, below a line with the decision."""
    heading = f"{config.name}: {config.other(to)} -> {to}, {_decision(result)}"
    rows = [
        {
            "severity": str(each.severity),
            "kind": str(each.kind),
            "site": each.site,
            "subject": each.subject,
            "what": each.what,
            "remedy": each.remedy,
        }
        for each in result.findings
    ]
    return f"{heading}\n\n{to_table(rows)}" if rows else heading


def _decision(result: Preflight) -> str:
    if result.refusing:
        return f"not ready: {len(result.refusing)} errors"
    return f"ready, {len(result.findings)} findings" if result.findings else "ready"

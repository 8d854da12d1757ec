"""Command ``interpulse failover check``: the preflight of a switch, with a remedy for each finding."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from interpulse.cli.failover.options import check_names
from interpulse.cli.support.params import TIME
from interpulse.cli.support.running import UNUSABLE, CommandFailed, failure
from interpulse.terminal.formats import to_table
from interpulse.terminal.option_groups import flag, option
from interpulse.terminal.output import format_option, print_value

if TYPE_CHECKING:
    from interpulse.failover.pair_config import PairConfig
    from interpulse.failover.preflight.facts import CheckLimits
    from interpulse.failover.preflight.judgement import Preflight

_DAY_S: Final = 86_400


@click.command("check")
@option("--config config_path", "File of the pair.", metavar="FILE", required=True)
@option("--to", "Site to switch to; without it the one that does not serve.", metavar="SITE")
@option("--accept accepted", "Go on in spite of errors of this kind; can be repeated.", metavar="KIND", multiple=True)
@option("--outage outage_s", "Longest expected outage of a site.", TIME, "24h")
@flag("--one-way", "Nothing has to be copied back: a missing way back is a warning.")
@format_option()
def check(config_path: str, to: str | None, accepted: tuple[str, ...], outage_s: int, one_way: bool) -> None:
    """Check if the sites of a pair are ready for a switch, and print a remedy for each finding. Nothing is changed.

    Compares topics, policies, schemas and subscriptions, and looks for what a switch would break: ways that do not
    copy, clients that do not change over, limits and retention that are too short, clocks, roles, permissions.

    Exit codes: 0 ready, 1 warnings, 2 a cluster could not be asked, 3 errors.
    """
    import asyncio

    from interpulse.failover.preflight.facts import CheckLimits
    from interpulse.model.errors import PulsarError

    config = _config(config_path, to, accepted)
    limits = CheckLimits(outage_s=outage_s, one_way=one_way)
    try:
        site, result = asyncio.run(_check(config, to, accepted, limits))
    except PulsarError as error:
        raise CommandFailed(failure(error).message, UNUSABLE) from error
    print_value(result.to_json() | {"pair": config.name, "to": site}, _text(config, site, result), tabular=True)
    sys.exit(result.exit_code)


def _config(path: str, to: str | None, accepted: tuple[str, ...]) -> PairConfig:
    """Read the file of the pair and check the options against it. Raise CommandFailed and UsageError."""
    from interpulse.failover.pair_config import PairConfigError, load_pair_config

    try:
        config = load_pair_config(path)
    except PairConfigError as error:
        raise CommandFailed(str(error), UNUSABLE) from error
    check_names(config, to, accepted)
    return config


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

"""Rules about the sites themselves: roles, clocks, and the permissions of the command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from interpulse.failover.preflight.facts import PairFacts, SiteFacts
from interpulse.failover.preflight.findings import CheckKind, Finding
from interpulse.failover.preflight.shell_commands import admin_command
from interpulse.model.adjustments import Severity
from interpulse.model.names import NamespaceName
from interpulse.rules.failover_role import ROLE_PROPERTY, FailoverRole, Role

_SKEW_MS_MAX: Final = 5000


def permission_of_ours(pair: PairFacts) -> Iterator[Finding]:
    """Yield the requests that a site refused for want of permission."""
    for site in (pair.a, pair.b):
        for refusal in site.refusals:
            what = f"{refusal.what} is refused: {refusal.error}"
            remedy = f"use credentials of a super user of {site.cluster} in [{site.name}] of the file"
            yield Finding(CheckKind.PERMISSION_OF_OURS, Severity.ERROR, site.name, what, remedy)


def clocks(pair: PairFacts) -> Iterator[Finding]:
    """Yield the difference of the clocks if it is large."""
    apart_ms = abs(pair.a.clock_ms - pair.b.clock_ms)
    if apart_ms > _SKEW_MS_MAX:
        what = (
            f"the clocks of {pair.a.name} and {pair.b.name} differ by {apart_ms / 1000:.0f} s: times in reports do too"
        )
        remedy = "synchronise the clocks of both sites, for example by chrony"
        yield Finding(CheckKind.CLOCKS, Severity.WARNING, pair.b.name, what, remedy)


def roles(pair: PairFacts) -> Iterator[Finding]:
    """Yield the namespaces whose roles contradict each other. Without any role both sites may serve."""
    for namespace in pair.a.namespaces:
        malformed = [(site, problem) for site in (pair.a, pair.b) if (problem := site.role(namespace)[1])]
        for site, problem in malformed:
            remedy = admin_command(site.admin_url, "namespaces remove-property", namespace)
            yield _role(site, namespace, problem, f"{remedy} -k {ROLE_PROPERTY}")
        if not malformed:
            yield from _contradiction(pair, namespace)


def _contradiction(pair: PairFacts, namespace: NamespaceName) -> Iterator[Finding]:
    (here, _, here_stored), (there, _, there_stored) = pair.a.role(namespace), pair.b.role(namespace)
    if not (here_stored or there_stored):
        return
    serving = [site for site, role in ((pair.a, here), (pair.b, there)) if role.role is Role.ACTIVE]
    older, newest = (pair.a, there) if here.epoch < there.epoch else (pair.b, here)
    if len(serving) == 2:
        what = f"both sites serve it: {_pair(pair, here, there)}"
        yield _role(older, namespace, what, _set_role(older, namespace, Role.STANDBY, newest.epoch))
    elif not serving:
        what = f"no site serves it: {_pair(pair, here, there)}"
        yield _role(pair.a, namespace, what, "interpulse failover undo, or switch again, which goes on")
    elif serving[0] is older and here.epoch != there.epoch:
        what = f"the lower epoch serves: {_pair(pair, here, there)}"
        yield _role(older, namespace, what, _set_role(older, namespace, Role.ACTIVE, newest.epoch))


def _pair(pair: PairFacts, here: FailoverRole, there: FailoverRole) -> str:
    return f"{pair.a.name} is {here}, {pair.b.name} is {there}"


def _set_role(site: SiteFacts, namespace: NamespaceName, role: Role, epoch: int) -> str:
    command = admin_command(site.admin_url, "namespaces set-failover-role", namespace)
    return f"{command} --role {role} --epoch {epoch}"


def _role(site: SiteFacts, namespace: NamespaceName, what: str, remedy: str) -> Finding:
    return Finding(CheckKind.ROLE, Severity.ERROR, site.name, what, remedy, (str(namespace),))


RULES: Final = (permission_of_ours, clocks, roles)

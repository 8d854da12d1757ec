"""Plan of enabling replication, read from the broker or made here cluster by cluster, and its output.

Apache Pulsar ignores query parameters it does not know, and stores the clusters. So the parameters of PIP-433 are sent
only to a broker that offers them; for any other, the plan is made here, through the admin API of all clusters.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.support.running import CONFLICT, FAILED, CommandFailed, open_admin
from interpulse.model.adjustments import Outcome
from interpulse.model.errors import AuthenticationError, AuthorizationError, NotSupported
from interpulse.model.names import NamespaceName
from interpulse.terminal.formats import text_width, to_cell, to_table
from interpulse.terminal.output import print_value

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient
    from interpulse.model.clusters import ClusterData
    from interpulse.replication.adjust import Enabling

_EXIT_CODES: Final = {Outcome.READY: 0, Outcome.NEEDS_ADJUSTMENT: FAILED, Outcome.CONFLICT: CONFLICT}
_NAMED_MAX: Final = 10
"""Topics without problems that are named. More would push the plan off the screen."""


async def set_clusters_by_plan(
    admin: AdminClient,
    namespace: NamespaceName,
    clusters: Sequence[str],
    *,
    previewed: bool,
    shown_digest: str | None = None,
) -> None:
    """Print the plan, carry it out unless it is a preview, and exit with 0, 1 or 3."""
    settings = await _settings(admin, namespace)
    if settings is None or settings.get("supportsReplicationPreview") == "true":
        plan = await admin.namespaces.adjust_for_replication(
            namespace, clusters, previewed=previewed, shown_digest=shown_digest
        )
    else:
        plan = await _plan_from_here(
            admin, namespace, clusters, settings, previewed=previewed, shown_digest=shown_digest
        )
    print_value(plan, plan_as_text(plan, _screen_width()), tabular=True)
    click.get_current_context().exit(_exit_code(plan))


async def _settings(admin: AdminClient, namespace: NamespaceName) -> Mapping[str, str] | None:
    """Return the broker's settings, which super users may read, or None for others if the broker is ours."""
    try:
        return await admin.brokers.runtime_configuration()
    except (AuthenticationError, AuthorizationError) as error:
        try:
            await admin.namespaces.topics_with_clusters(namespace)  # no other broker answers this
        except NotSupported:
            error.add_note("the plan has to be made here, and needs the runtime configuration of both clusters")
            raise error from None
        return None


def _exit_code(plan: Mapping[str, Any]) -> int:
    outcome = Outcome(plan["outcome"])
    if plan.get("applied"):
        return 0
    return FAILED if plan.get("applied") is False and outcome is Outcome.READY else _EXIT_CODES[outcome]


def _screen_width() -> int | None:
    """Return the columns of the terminal, or None without one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


async def _plan_from_here(
    admin: AdminClient,
    namespace: NamespaceName,
    clusters: Sequence[str],
    settings: Mapping[str, str],
    *,
    previewed: bool,
    shown_digest: str | None,
) -> dict[str, Any]:
    from interpulse.replication.adjust import adjust, plan_document, preview
    from interpulse.replication.connect import web_url
    from interpulse.replication.inventory import AdminReading

    if "clusterName" not in settings:
        raise CommandFailed(f"the runtime configuration of {admin.web_url} has no clusterName")
    enabling = await _enabling(admin, namespace, clusters, settings["clusterName"])
    connection = click.get_current_context().obj

    async def store() -> None:
        # All was compared just now, and more strictly; the broker's own comparison can demand the impossible.
        await admin.namespaces.set_replication_clusters(namespace, enabling.requested, partitions_compared=False)

    def connect(cluster: str, data: ClusterData) -> AdminClient:
        return open_admin(connection, web_url(cluster, data))

    if previewed:
        return plan_document(await preview(enabling, AdminReading(admin), connect))
    return plan_document(await adjust(enabling, AdminReading(admin), connect, store, shown=shown_digest))


async def _enabling(
    admin: AdminClient, namespace: NamespaceName, clusters: Sequence[str], local_cluster: str
) -> Enabling:
    """Raise the broker's refusals before other clusters are changed."""
    from interpulse.replication.adjust import Enabling
    from interpulse.rules.replication import check_replication_clusters

    wanted = tuple(sorted(set(clusters)))
    known = set(wanted) & set(await admin.clusters.list())
    registered = {name: await admin.clusters.get(name) for name in sorted(known)}
    policies = await admin.namespaces.policies(namespace)
    tenant = await admin.tenants.get(namespace.tenant)
    check_replication_clusters(namespace, wanted, registered=registered, policies=policies, tenant=tenant)
    added = sorted(set(wanted) - set(policies.replication_clusters) - {local_cluster})
    compared = added if local_cluster in wanted else []
    return Enabling(namespace, local_cluster, wanted, {name: registered[name] for name in compared})


def plan_as_text(plan: Mapping[str, Any], width: int | None = None) -> str:
    """Format the plan for people: the outcome, the changes, and the conflicts with their remedies.

    Changes are a table if every line fits into ``width``, else paragraphs like the conflicts.
    """
    changes = [row for cluster in plan["clusters"] for row in _change_rows(cluster)]
    conflicts = [row for cluster in plan["clusters"] for row in _conflict_rows(cluster)]
    notes = list(_notes(plan))
    parts = [_headline(plan)]
    if changes:
        parts.append(f"Changes ({len(changes)})\n{_changes_as_text(changes, width)}")
    if conflicts:
        parts.append(f"Conflicts ({len(conflicts)})\n{_paragraphs(conflicts)}")
    return "\n\n".join([*parts, "\n".join(notes)] if notes else parts)


def _changes_as_text(rows: Sequence[Mapping[str, str]], width: int | None) -> str:
    table = to_table(rows)
    fits = width is None or all(text_width(line) <= width for line in table.splitlines())
    return table if fits else _paragraphs(rows)


def _paragraphs(rows: Sequence[Mapping[str, str]]) -> str:
    """Format rows as paragraphs, with the first two fields as heading."""
    lines = []
    for row in rows:
        (_, cluster), (_, heading), *rest = row.items()
        lines.append(f"{cluster}: {to_cell(heading)}")
        lines += [f"  {key}: {to_cell(value)}" for key, value in rest]
    return "\n".join(lines)


def _headline(plan: Mapping[str, Any]) -> str:
    clusters = ", ".join(plan["requestedClusters"])
    if plan.get("applied"):
        return f"{plan['namespace']} is replicated to {clusters}."
    words = {
        Outcome.READY: f"{plan['namespace']} can be replicated to {clusters} as it is.",
        Outcome.NEEDS_ADJUSTMENT: f"{plan['namespace']} can be replicated to {clusters} after these changes.",
        Outcome.CONFLICT: f"{plan['namespace']} cannot be replicated to {clusters}: conflicts have to be solved first.",
    }
    headline = words[Outcome(plan["outcome"])]
    if plan.get("applied") is False and plan["outcome"] != Outcome.CONFLICT:
        return f"{plan['namespace']} is not replicated to {clusters}. {plan.get('reason', '')}".rstrip()
    return headline


def _change_rows(cluster: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for change in cluster["changes"]:
        row = {
            "cluster": cluster["cluster"],
            "subject": _subject(change),
            "current": _brief(change["current"]),
            "desired": _brief(change["desired"]),
        }
        status = {key: change[key] for key in ("status", "error") if key in change}
        yield row | status


def _conflict_rows(cluster: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for conflict in cluster["conflicts"]:
        yield {
            "cluster": cluster["cluster"],
            "conflict": conflict["kind"],
            "reason": conflict["reason"],
            "remedy": conflict["remedy"],
        }


def _notes(plan: Mapping[str, Any]) -> Iterator[str]:
    local, requested = plan["localCluster"], plan["requestedClusters"]
    if local not in requested:
        yield f"Nothing was compared, as {local} is not in the list: {plan['namespace']} would not be served there."
    elif requested != [local] and not plan["clusters"]:
        yield "Nothing was compared, as no cluster is new in the list; see namespaces replication-status."
    for cluster in plan["clusters"]:
        yield from _cluster_notes(cluster)


def _cluster_notes(cluster: Mapping[str, Any]) -> Iterator[str]:
    if cluster["skipReason"] and not cluster["conflicts"]:
        yield f"{cluster['cluster']} was not compared: {cluster['skipReason']}."
    for each in cluster["info"][:_NAMED_MAX]:
        yield f"{to_cell(each['topic'])} exists on {cluster['cluster']} only."
    if more := len(cluster["info"][_NAMED_MAX:]):
        yield f"So do {more} more topics, which -o json lists."


def _subject(change: Mapping[str, Any]) -> str:
    words = str(change["kind"]).lower().replace("_", " ")
    return f"{words} of {change['topic']}" if "topic" in change else words


def _brief(value: Any) -> str:
    """Format a policy on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_brief(item)}" for key, item in value.items())
    return value if isinstance(value, str) else json.dumps(value)

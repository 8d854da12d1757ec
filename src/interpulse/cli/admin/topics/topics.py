"""Group ``topics``: existence, partitions, properties and statistics; sibling modules have the other commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.admin.permissions import TOPIC_PERMISSION_COMMANDS
from interpulse.cli.admin.replication_status import show_status
from interpulse.cli.admin.topics.doctor import doctor
from interpulse.cli.admin.topics.lookup import LOOKUP_COMMANDS
from interpulse.cli.admin.topics.messages import MESSAGE_COMMANDS
from interpulse.cli.admin.topics.sections import SECTIONS
from interpulse.cli.admin.topics.selection import matching_topics, topic_named, topics_of_file
from interpulse.cli.admin.topics.subscriptions import SUBSCRIPTION_COMMANDS
from interpulse.cli.admin.topics.upkeep import UPKEEP_COMMANDS
from interpulse.cli.admin.wide_lists import print_partitioned_topics, print_topics
from interpulse.cli.policies.policy_forms import CLUSTERS
from interpulse.cli.policies.topic_policies import POLICY_COMMANDS
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.params import BUNDLE, DOMAIN, NAMESPACE, PAIRS, TOPIC, domains_of, joined_pairs
from interpulse.cli.support.running import CommandFailed, admin_command, failure
from interpulse.cli.support.watched import show_watched, watch_option
from interpulse.model.errors import PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.terminal.option_groups import option_group
from interpulse.terminal.output import is_wide, print_json, print_lines, print_pairs

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_topic = click.argument("topic", type=TOPIC)
_force = click.option("-f", "--force", is_flag=True, help="Close producers and consumers first.")
_schema_too = click.option(
    "-d",
    "--deleteSchema",
    is_flag=True,
    expose_value=False,
    help="Accepted for older scripts: schemas are always deleted too.",
)
_metadata = click.option("-m", "--metadata", type=PAIRS, multiple=True, help="Properties of the topic: a=b,c=d.")
_system = click.option(
    "-ist", "--include-system-topic", "system_included", is_flag=True, help="List system topics too."
)


@click.group(cls=CommandGroup, sections=SECTIONS)
def topics() -> None:
    """Operations about topics."""


_ELSEWHERE = (*SUBSCRIPTION_COMMANDS, *MESSAGE_COMMANDS, *UPKEEP_COMMANDS, *LOOKUP_COMMANDS, *POLICY_COMMANDS, doctor)
for command in (*_ELSEWHERE, *TOPIC_PERMISSION_COMMANDS):
    topics.add_command(command)


@topics.command("list")
@click.argument("namespace", type=NAMESPACE)
@click.option("-td", "--topic-domain", type=DOMAIN, help="Only topics of this domain.")
@click.option("-b", "--bundle", type=BUNDLE, help="Only topics of this bundle: 0x..._0x...")
@click.option(
    "-p",
    "--properties",
    type=PAIRS,
    multiple=True,
    help="Only topics that have all these properties: a=b,c=d. Apache Pulsar lists all without a plug-in for this.",
)
@_system
@admin_command
async def list_topics(
    admin: AdminClient,
    namespace: NamespaceName,
    topic_domain: str | None,
    bundle: str | None,
    properties: tuple[dict[str, str], ...],
    system_included: bool,
) -> None:
    """List the topics of a namespace, partitions one by one.

    -o wide adds the partition number, the partition count (where the cluster reports it, which Apache Pulsar does not),
    and the bundle of each topic.
    """
    domains = domains_of(topic_domain)
    names = await admin.topics.list(
        namespace,
        domains=domains,
        bundle=bundle,
        system_included=system_included,
        properties=joined_pairs(properties),
    )
    if is_wide():
        await print_topics(admin, namespace, names, domains)
    else:
        print_lines(names)


@topics.command("list-partitioned-topics")
@click.argument("namespace", type=NAMESPACE)
@_system
@admin_command
async def list_partitioned_topics(admin: AdminClient, namespace: NamespaceName, system_included: bool) -> None:
    """List the partitioned topics of a namespace.

    -o wide adds their partition counts, which Apache Pulsar does not list.
    """
    if is_wide():
        await print_partitioned_topics(admin, namespace, system_included=system_included)
    else:
        print_lines(await admin.topics.list_partitioned(namespace, system_included=system_included))


@topics.command("create")
@_topic
@_metadata
@admin_command
async def create_topic(admin: AdminClient, topic: TopicName, metadata: tuple[dict[str, str], ...]) -> None:
    """Create a non-partitioned topic."""
    await admin.topics.create(topic, joined_pairs(metadata))


@topics.command("create-partitioned-topic")
@_topic
@click.option("-p", "--partitions", type=int, required=True, help="Number of partitions.")
@_metadata
@admin_command
async def create_partitioned_topic(
    admin: AdminClient, topic: TopicName, partitions: int, metadata: tuple[dict[str, str], ...]
) -> None:
    """Create a partitioned topic, or restore the metadata of one whose partitions are still there."""
    await admin.topics.create_partitioned(topic, partitions, properties=joined_pairs(metadata))


@topics.command("update-partitioned-topic")
@_topic
@click.option("-p", "--partitions", type=int, required=True, help="New number of partitions.")
@click.option("-ulo", "--update-local-only", "local_only", is_flag=True, help="Leave the other clusters unchanged.")
@click.option("-f", "--force", is_flag=True, help="Do not check for partitions beyond the count first.")
@admin_command
async def update_partitioned_topic(
    admin: AdminClient, topic: TopicName, partitions: int, local_only: bool, force: bool
) -> None:
    """Increase the number of partitions of a topic."""
    await admin.topics.expand(topic, partitions, local_only=local_only, force=force)


@topics.command("create-missed-partitions")
@_topic
@admin_command
async def create_missed_partitions(admin: AdminClient, topic: TopicName) -> None:
    """Create the missing partitions of a partitioned topic."""
    await admin.topics.create_missed_partitions(topic)


@topics.command("get-partitioned-topic-metadata")
@_topic
@admin_command
async def get_partitioned_topic_metadata(admin: AdminClient, topic: TopicName) -> None:
    """Print the number of partitions, 0 for a non-partitioned topic. No topic is created."""
    print_json((await admin.topics.partitioned_metadata(topic)).to_json())


@topics.command("delete")
@click.argument("topic")
@_force
@_schema_too
@click.option("-r", "by_expression", is_flag=True, help="TOPIC is persistent://tenant/namespace/expression.")
@click.option("--from-file", is_flag=True, help="TOPIC is the path of a file with one topic a line.")
@admin_command
async def delete_topic(admin: AdminClient, topic: str, force: bool, by_expression: bool, from_file: bool) -> None:
    """Delete a topic, a single partition, or several of them, and report each deletion."""
    if by_expression and from_file:
        raise click.UsageError("Give one of -r and --from-file")
    if not by_expression and not from_file:
        await admin.topics.delete(topic_named(topic), force=force)
        return
    names = topics_of_file(topic) if from_file else await matching_topics(admin, topic)
    failed = [name for name in names if not await _told_deletion(admin, name, force=force)]
    if failed:
        raise CommandFailed(f"{len(failed)} of {len(names)} topics could not be deleted")
    if not names:
        click.echo(f"no topic to delete: {topic} has none", err=True)


async def _told_deletion(admin: AdminClient, topic: TopicName, *, force: bool) -> bool:
    try:
        await admin.topics.delete(topic, force=force)
    except PulsarError as error:
        click.echo(f"{topic}: {failure(error).message}", err=True)
        return False
    click.echo(f"{topic} deleted", err=True)
    return True


@topics.command("delete-partitioned-topic")
@_topic
@_force
@_schema_too
@admin_command
async def delete_partitioned_topic(admin: AdminClient, topic: TopicName, force: bool) -> None:
    """Delete a partitioned topic with all its partitions."""
    await admin.topics.delete_partitioned(topic, force=force)


_stats_options = option_group(
    click.option("-gpb", "--get-precise-backlog", "precise_backlog", is_flag=True, help="Count the backlog exactly."),
    click.option(
        "-sbs",
        "--get-subscription-backlog-size",
        is_flag=True,
        expose_value=False,
        help="Accepted for older scripts: the size of each backlog is always printed.",
    ),
    click.option(
        "-etb",
        "--get-earliest-time-in-backlog",
        "earliest_time_in_backlog",
        is_flag=True,
        help="Find the oldest message of each backlog.",
    ),
    click.option("--exclude-publishers", is_flag=True, help="Leave out the list of producers."),
    click.option("--exclude-consumers", is_flag=True, help="Leave out the lists of consumers of the subscriptions."),
)
"""Options of statistics, by the names of the admin client's arguments."""


@topics.command("stats")
@_topic
@_stats_options
@watch_option
@admin_command
async def topic_stats(admin: AdminClient, /, topic: TopicName, watched: bool, **counted: bool) -> None:
    """Print rates, producers, subscriptions and backlogs."""
    await show_watched(lambda: admin.topics.stats(topic, **counted), print_json, watched=watched)


@topics.command("partitioned-stats")
@_topic
@click.option("--per-partition", is_flag=True, help="Print each partition too.")
@_stats_options
@watch_option
@admin_command
async def partitioned_stats(
    admin: AdminClient, /, topic: TopicName, per_partition: bool, watched: bool, **counted: bool
) -> None:
    """Print the sums over all partitions."""

    async def ask() -> dict[str, Any]:
        return await admin.topics.partitioned_stats(topic, per_partition=per_partition, **counted)

    await show_watched(ask, print_json, watched=watched)


@topics.command("stats-internal")
@_topic
@click.option("-m", "--metadata", is_flag=True, help="Print the metadata of each ledger too.")
@watch_option
@admin_command
async def internal_stats(admin: AdminClient, topic: TopicName, metadata: bool, watched: bool) -> None:
    """Print ledgers and cursors."""
    await show_watched(lambda: admin.topics.internal_stats(topic, metadata=metadata), print_json, watched=watched)


@topics.command("partitioned-stats-internal")
@_topic
@admin_command
async def partitioned_internal_stats(admin: AdminClient, topic: TopicName) -> None:
    """Print ledgers and cursors of every partition."""
    print_json(await admin.topics.partitioned_internal_stats(topic))


@topics.command("get-properties")
@_topic
@admin_command
async def get_properties(admin: AdminClient, topic: TopicName) -> None:
    """Print the properties of a topic."""
    print_pairs(await admin.topics.properties(topic))


@topics.command("update-properties")
@_topic
@click.option("-p", "--property", "properties", type=PAIRS, multiple=True, required=True, help="Properties: a=b,c=d.")
@admin_command
async def update_properties(admin: AdminClient, topic: TopicName, properties: tuple[dict[str, str], ...]) -> None:
    """Set properties of a topic. Others stay."""
    await admin.topics.update_properties(topic, joined_pairs(properties))


@topics.command("remove-properties")
@_topic
@click.option("-k", "--key", required=True, help="Name of the property.")
@admin_command
async def remove_properties(admin: AdminClient, topic: TopicName, key: str) -> None:
    """Remove one property of a topic."""
    await admin.topics.remove_property(topic, key)


@topics.command("set-replication-clusters")
@_topic
@CLUSTERS.add
@admin_command
async def set_replication_clusters(admin: AdminClient, topic: TopicName, clusters: list[str]) -> None:
    """Replicate one topic to clusters, in place of those of its namespace."""
    await admin.topics.set_replication_clusters(topic, clusters)


@topics.command("get-replication-clusters")
@_topic
@click.option("-ap", "--applied", is_flag=True, help="Print the clusters in force, the namespace's policy included.")
@admin_command
async def get_replication_clusters(admin: AdminClient, topic: TopicName, applied: bool) -> None:
    """Print the clusters of one topic, or null if it follows its namespace."""
    print_json(await admin.topics.replication_clusters(topic, applied=applied))


@topics.command("remove-replication-clusters")
@_topic
@admin_command
async def remove_replication_clusters(admin: AdminClient, topic: TopicName) -> None:
    """Remove the clusters of one topic, so that it follows its namespace again."""
    await admin.topics.remove_replication_clusters(topic)


@topics.command("replication-status")
@_topic
@watch_option
@admin_command
async def replication_status(admin: AdminClient, topic: TopicName, watched: bool) -> None:
    """Print the progress of each remote cluster, with obstacles and remedies."""
    await show_status(lambda: admin.topics.replication_status(topic), watched=watched)

"""Group ``topics``: existence, partitions, properties and statistics; sibling modules have the other commands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.admin.permissions import TOPIC_PERMISSION_COMMANDS
from interpulse.cli.admin.replication_status import show_status
from interpulse.cli.admin.topics.doctor import doctor
from interpulse.cli.admin.topics.lookup import LOOKUP_COMMANDS
from interpulse.cli.admin.topics.messages import MESSAGE_COMMANDS
from interpulse.cli.admin.topics.subscriptions import SUBSCRIPTION_COMMANDS
from interpulse.cli.admin.wide_lists import print_partitioned_topics, print_topics
from interpulse.cli.policies.policy_forms import CLUSTERS
from interpulse.cli.policies.topic_policies import POLICY_COMMANDS
from interpulse.cli.support.call_commands import call_command, pairs_option, print_record, topic_argument
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.params import BUNDLE, DOMAIN, NAMESPACE, domains_of
from interpulse.cli.support.running import CommandFailed, admin_command, failure
from interpulse.cli.support.watched import show_watched, watch_option
from interpulse.model.errors import NotAllowed, PulsarError
from interpulse.model.names import NamespaceName, TopicName
from interpulse.terminal.option_groups import option_group
from interpulse.terminal.output import is_wide, print_json, print_lines, print_pairs, print_text, print_value

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient


import re
from pathlib import Path
from typing import TYPE_CHECKING

from interpulse.cli.support.running import UNUSABLE
from interpulse.model.errors import InvalidTopicName
from interpulse.model.names import Domain

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient


_ASK_AGAIN_SECONDS: Final = 1.0
_COMPACTION: Final = {
    "NOT_RUN": "Compaction has not been run for {topic} since broker startup",
    "RUNNING": "Compaction is currently running",
    "SUCCESS": "Compaction was a success",
}
_SECTIONS: Final[Mapping[str, str]] = {
    "Create, change and delete": "create create-partitioned-topic update-partitioned-topic create-missed-partitions "
    "update-properties get-properties remove-properties delete delete-partitioned-topic",
    "Find and look at": "list list-partitioned-topics get-partitioned-topic-metadata stats partitioned-stats "
    "stats-internal partitioned-stats-internal lookup partitioned-lookup batch-lookup bundle-range "
    "replication-status doctor",
    "Subscriptions": "subscriptions create-subscription unsubscribe get-subscription-properties "
    "update-subscription-properties reset-cursor skip skip-all clear-backlog expire-messages "
    "expire-messages-all-subscriptions analyze-backlog",
    "Messages": "peek-messages examine-messages get-message-by-id get-message-id last-message-id get-backlog-size",
    "Upkeep": "unload compact compaction-status trim-topic truncate terminate partitioned-terminate",
    "Permissions": "permissions grant-permission revoke-permission",
    "Policies under names of their own": "enable-deduplication disable-deduplication get-deduplication-enabled "
    "get-backlog-quotas",
}
"""Commands of `topics` by heading of its help, which lists policies separately."""
_force = click.option("-f", "--force", is_flag=True, help="Close producers and consumers first.")
_schema_too = click.option(
    "-d",
    "--deleteSchema",
    is_flag=True,
    expose_value=False,
    help="Accepted for older scripts: schemas are always deleted too.",
)
_system = click.option(
    "-ist", "--include-system-topic", "system_included", is_flag=True, help="List system topics too."
)


@click.group(cls=CommandGroup, sections=_SECTIONS)
def topics() -> None:
    """Operations about topics."""


_ELSEWHERE = (*SUBSCRIPTION_COMMANDS, *MESSAGE_COMMANDS, *LOOKUP_COMMANDS, *POLICY_COMMANDS, doctor)
for command in (*_ELSEWHERE, *TOPIC_PERMISSION_COMMANDS):
    topics.add_command(command)


_call = partial(call_command, topics.add_command, "topics", topic_argument)
_properties = pairs_option("-m", "--metadata", "properties", help="Properties of the topic: a=b,c=d.")
_set_properties = pairs_option("-p", "--property", "properties", required=True, help="Properties: a=b,c=d.")
_key = click.option("-k", "--key", required=True, help="Name of the property.")
_partitions = click.option("-p", "--partitions", type=int, required=True, help="Number of partitions.")
_new_partitions = click.option("-p", "--partitions", type=int, required=True, help="New number of partitions.")
_local_only = click.option(
    "-ulo", "--update-local-only", "local_only", is_flag=True, help="Leave the other clusters unchanged."
)
_unchecked = click.option("-f", "--force", is_flag=True, help="Do not check for partitions beyond the count first.")
_applied = click.option(
    "-ap", "--applied", is_flag=True, help="Print the clusters in force, the namespace's policy included."
)

_call("create", "create", "Create a non-partitioned topic.", _properties)
_call(
    "create-partitioned-topic",
    "create_partitioned",
    "Create a partitioned topic, or restore the metadata of one whose partitions are still there.",
    _partitions,
    _properties,
)
_call(
    "update-partitioned-topic",
    "expand",
    "Increase the number of partitions of a topic.",
    _new_partitions,
    _local_only,
    _unchecked,
)
_call("create-missed-partitions", "create_missed_partitions", "Create the missing partitions of a partitioned topic.")
_call(
    "get-partitioned-topic-metadata",
    "partitioned_metadata",
    "Print the number of partitions, 0 for a non-partitioned topic. No topic is created.",
    show=print_record,
)
_call(
    "delete-partitioned-topic",
    "delete_partitioned",
    "Delete a partitioned topic with all its partitions.",
    _force,
    _schema_too,
)
_call(
    "partitioned-stats-internal",
    "partitioned_internal_stats",
    "Print ledgers and cursors of every partition.",
    show=print_json,
)
_call("get-properties", "properties", "Print the properties of a topic.", show=print_pairs)
_call("update-properties", "update_properties", "Set properties of a topic. Others stay.", _set_properties)
_call("remove-properties", "remove_property", "Remove one property of a topic.", _key)
_call(
    "set-replication-clusters",
    "set_replication_clusters",
    "Replicate one topic to clusters, in place of those of its namespace.",
    CLUSTERS.add,
)
_call(
    "get-replication-clusters",
    "replication_clusters",
    "Print the clusters of one topic, or null if it follows its namespace.",
    _applied,
    show=print_json,
)
_call(
    "remove-replication-clusters",
    "remove_replication_clusters",
    "Remove the clusters of one topic, so that it follows its namespace again.",
)
_call("unload", "unload", "Close a topic in its broker. The next client loads it again.")
_call("trim-topic", "trim", "Delete messages that no subscription and no policy needs, immediately.")
_call("truncate", "truncate", "Move every subscription to the end and delete the messages.")


@topics.command("list")
@click.argument("namespace", type=NAMESPACE)
@click.option("-td", "--topic-domain", type=DOMAIN, help="Only topics of this domain.")
@click.option("-b", "--bundle", type=BUNDLE, help="Only topics of this bundle: 0x..._0x...")
@pairs_option(
    "-p",
    "--properties",
    help="Only topics that have all these properties: a=b,c=d. Apache Pulsar lists all without a plug-in for this.",
)
@_system
@admin_command
async def list_topics(
    admin: AdminClient,
    namespace: NamespaceName,
    topic_domain: str | None,
    bundle: str | None,
    properties: dict[str, str],
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
        properties=properties,
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
    failed = [name for name in names if not await _report_deletion(admin, name, force=force)]
    if failed:
        raise CommandFailed(f"{len(failed)} of {len(names)} topics could not be deleted")
    if not names:
        click.echo(f"no topic to delete: {topic} has none", err=True)


async def _report_deletion(admin: AdminClient, topic: TopicName, *, force: bool) -> bool:
    try:
        await admin.topics.delete(topic, force=force)
    except PulsarError as error:
        click.echo(f"{topic}: {failure(error).message}", err=True)
        return False
    click.echo(f"{topic} deleted", err=True)
    return True


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
@topic_argument
@_stats_options
@watch_option
@admin_command
async def topic_stats(admin: AdminClient, /, topic: TopicName, watched: bool, **counted: bool) -> None:
    """Print rates, producers, subscriptions and backlogs."""
    await show_watched(lambda: admin.topics.stats(topic, **counted), print_json, watched=watched)


@topics.command("partitioned-stats")
@topic_argument
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
@topic_argument
@click.option("-m", "--metadata", is_flag=True, help="Print the metadata of each ledger too.")
@watch_option
@admin_command
async def internal_stats(admin: AdminClient, topic: TopicName, metadata: bool, watched: bool) -> None:
    """Print ledgers and cursors."""
    await show_watched(lambda: admin.topics.internal_stats(topic, metadata=metadata), print_json, watched=watched)


@topics.command("replication-status")
@topic_argument
@watch_option
@admin_command
async def replication_status(admin: AdminClient, topic: TopicName, watched: bool) -> None:
    """Print the progress of each remote cluster, with obstacles and remedies."""
    await show_status(lambda: admin.topics.replication_status(topic), watched=watched)


@topics.command("terminate")
@topic_argument
@admin_command
async def terminate_topic(admin: AdminClient, topic: TopicName) -> None:
    """Terminate a topic, which then takes no more messages."""
    try:
        last = await admin.topics.terminate(topic)
    except NotAllowed as error:
        if topic.is_persistent:
            error.add_note("partitioned topics are terminated by topics partitioned-terminate")
        raise
    print_value({"lastMessageId": str(last)}, f"Topic successfully terminated at {last}")


@topics.command("partitioned-terminate")
@topic_argument
@admin_command
async def terminate_partitioned_topic(admin: AdminClient, topic: TopicName) -> None:
    """Terminate all partitions of a topic, which then take no more messages."""
    ends = {topic.partition(index): last for index, last in (await admin.topics.terminate_partitioned(topic)).items()}
    lines = [f"Topic {partition} successfully terminated at {last}" for partition, last in ends.items()]
    print_value({str(partition): str(last) for partition, last in ends.items()}, "\n".join(lines))


@topics.command("compact")
@topic_argument
@admin_command
async def compact_topic(admin: AdminClient, topic: TopicName) -> None:
    """Start the compaction of a topic. Readers of the compacted topic see the newest message of each key."""
    await admin.topics.compact(topic)
    print_text(f"Topic compaction requested for {topic}")


@topics.command("compaction-status")
@topic_argument
@click.option("-w", "--wait-complete", "awaited", is_flag=True, help="Wait until the compaction has ended.")
@admin_command
async def compaction_status(admin: AdminClient, topic: TopicName, awaited: bool) -> None:
    """Print the state of the compaction of a topic."""
    import asyncio

    found = await admin.topics.compaction_status(topic)
    while awaited and found["status"] == "RUNNING":
        await asyncio.sleep(_ASK_AGAIN_SECONDS)
        found = await admin.topics.compaction_status(topic)
    if found["status"] == "ERROR":
        raise CommandFailed(f"Error compacting {topic}: {found.get('lastError') or 'the broker gives no reason'}")
    print_value(found, _COMPACTION.get(found["status"], str(found["status"])).format(topic=topic))


_FORM = re.compile(r"(persistent|non-persistent)://([^/]+/[^/]+)/.+")


def topic_named(text: str) -> TopicName:
    """Return the topic. Raise UsageError for an invalid name."""
    try:
        return TopicName.parse(text)
    except InvalidTopicName as error:
        raise click.UsageError(str(error)) from error


def topics_of_file(path: str) -> list[TopicName]:
    """Read one name per line, skipping empty ones. The path may begin with ``path://``. Raise CommandFailed."""
    file = Path(path.removeprefix("path://"))
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{file} cannot be read: {error}", UNUSABLE) from error
    return [topic_named(line.strip()) for line in lines if line.strip()]


async def matching_topics(admin: AdminClient, text: str) -> list[TopicName]:
    """Return the topics whose complete names match ``DOMAIN://TENANT/NAMESPACE/...``, partitions one by one.

    Raises UsageError for an expression of another form.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise click.UsageError(f"{text!r} has not the form persistent://tenant/namespace/expression")
    try:
        expression = re.compile(text)
        namespace = NamespaceName.parse(form[2])
    except (re.error, InvalidTopicName) as error:
        raise click.UsageError(f"{text!r} is not a regular expression for topics: {error}") from error
    domain: Domain = "persistent" if form[1] == "persistent" else "non-persistent"
    names = await admin.topics.list(namespace, domains=(domain,))
    return [TopicName.parse(name) for name in names if expression.fullmatch(name)]

"""Commands of ``topics`` about brokers and bundles of a topic, of its partitions, or of many topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from interpulse.cli.support.call_commands import topic_argument
from interpulse.cli.support.params import TOPIC
from interpulse.cli.support.running import FAILED, CommandFailed, admin_command, failure
from interpulse.model.errors import PulsarError, UnknownError
from interpulse.model.names import TopicName
from interpulse.terminal.output import print_lines, print_pairs, print_value

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient

_sort_by_broker = click.option("-s", "--sort-by-broker", is_flag=True, help="List the topics of each broker.")


@click.command("lookup")
@topic_argument
@admin_command
async def lookup_topic(admin: AdminClient, topic: TopicName) -> None:
    """Print the address of the broker that serves a topic."""
    print_lines([_broker(admin, await admin.lookup.topic(topic))])


@click.command("partitioned-lookup")
@topic_argument
@_sort_by_broker
@admin_command
async def lookup_partitioned_topic(admin: AdminClient, topic: TopicName, sort_by_broker: bool) -> None:
    """Print the address of the broker that serves each partition."""
    count = (await admin.topics.partitioned_metadata(topic)).partitions
    if count == 0:
        raise CommandFailed(f"Topic {topic} is not a partitioned topic")
    answers = await admin.lookup.topics([topic.partition(index) for index in range(count)])
    for answer in answers.values():
        if isinstance(answer, PulsarError):
            raise answer
    _print_brokers(_brokers(admin, answers), sort_by_broker)


@click.command("batch-lookup")
@click.argument("topics", type=TOPIC, nargs=-1, required=True)
@_sort_by_broker
@admin_command
async def lookup_topics(admin: AdminClient, topics: Sequence[TopicName], sort_by_broker: bool) -> None:
    """Print the address of the broker that serves each topic. Topics without one are named on standard error."""
    answers = await admin.lookup.topics(topics)
    _print_brokers(_brokers(admin, answers), sort_by_broker)
    failures = {topic: answer for topic, answer in answers.items() if isinstance(answer, PulsarError)}
    for topic, error in failures.items():
        click.echo(f"{topic}: {failure(error).message}", err=True)
    if failures:
        raise CommandFailed(f"{len(failures)} of {len(answers)} topics have no broker", FAILED)


@click.command("bundle-range")
@topic_argument
@admin_command
async def bundle_range(admin: AdminClient, topic: TopicName) -> None:
    """Print the hash range of the bundle that holds a topic."""
    print_lines([await admin.lookup.bundle_range(topic)])


def _broker(admin: AdminClient, addresses: Mapping[str, Any]) -> str:
    """Return the address for the scheme in use: the TLS one with https."""
    secure = admin.web_url.startswith("https:") and addresses.get("brokerUrlTls")
    address = secure or addresses.get("brokerUrl")
    if not address:
        raise UnknownError(f"{admin.web_url} answered a lookup without the address of a broker: {dict(addresses)}")
    return str(address)


def _brokers(admin: AdminClient, answers: Mapping[TopicName, dict[str, Any] | PulsarError]) -> dict[str, str]:
    return {str(topic): _broker(admin, found) for topic, found in answers.items() if not isinstance(found, PulsarError)}


def _print_brokers(brokers: dict[str, str], sort_by_broker: bool) -> None:
    if not sort_by_broker:
        print_pairs(brokers)
        return
    grouped: dict[str, list[str]] = {}
    for topic, broker in brokers.items():
        grouped.setdefault(broker, []).append(topic)
    lines = [f"{broker}    [{', '.join(topics)}]" for broker, topics in grouped.items()]
    print_value(grouped, "\n".join(lines))


LOOKUP_COMMANDS: Final = (lookup_topic, lookup_partitioned_topic, lookup_topics, bundle_range)

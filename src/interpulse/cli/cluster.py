"""``interpulse cluster``: the ZooKeeper of a cluster, before its brokers start."""

from __future__ import annotations

import asyncio

import click

from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.output import print_lines
from interpulse.cli.support.running import CommandFailed
from interpulse.model.errors import PulsarError

__all__ = ["cluster"]


@click.group(cls=CommandGroup)
def cluster() -> None:
    """Prepare a cluster of brokers on ZooKeeper and BookKeeper."""


@cluster.command()
@click.option("-c", "--cluster", "name", metavar="NAME", required=True, help="Name of the cluster.")
@click.option("-md", "--metadata-store", metavar="URL", required=True, help="Its ZooKeeper: zk:host1:2181,host2:2181.")
@click.option(
    "-cms",
    "--configuration-metadata-store",
    metavar="URL",
    help="ZooKeeper of several clusters; only that of --metadata-store is supported.",
)
@click.option("-uw", "--web-service-url", metavar="URL", help="Where the admin API is reached: http://host:8080.")
@click.option("-tw", "--web-service-url-tls", metavar="URL", help="The same with TLS: https://host:8443.")
@click.option("-ub", "--broker-service-url", metavar="URL", help="Where clients connect: pulsar://host:6650.")
@click.option("-tb", "--broker-service-url-tls", metavar="URL", help="The same with TLS: pulsar+ssl://host:6651.")
@click.option(
    "-bn",
    "--default-namespace-bundle-number",
    "bundles",
    type=int,
    default=16,
    show_default=True,
    help="Bundles of the namespace public/default.",
)
@click.option(
    "--initial-num-transaction-coordinators",
    "coordinators",
    type=int,
    default=16,
    show_default=True,
    help="Transaction coordinators, for brokers of Apache Pulsar.",
)
@click.option(
    "--initial-num-stream-storage-containers",
    "containers",
    type=int,
    default=16,
    show_default=True,
    help="Containers of BookKeeper's stream storage, for brokers of Apache Pulsar.",
)
def init(
    name: str,
    metadata_store: str,
    configuration_metadata_store: str | None,
    web_service_url: str | None,
    web_service_url_tls: str | None,
    broker_service_url: str | None,
    broker_service_url_tls: str | None,
    bundles: int,
    coordinators: int,
    containers: int,
) -> None:
    """Make the nodes of a new cluster in ZooKeeper, as `pulsar initialize-cluster-metadata` does.

    Before the first bookie starts. What is there stays as it is, so it can be called again. Prints each node it makes.
    """
    from interpulse.broker.tenancy.cluster_setup import NewCluster, set_up_cluster
    from interpulse.model.clusters import ClusterData

    if configuration_metadata_store not in (None, metadata_store):
        raise CommandFailed(
            f"--configuration-metadata-store {configuration_metadata_store}: another ZooKeeper than that of "
            "--metadata-store is not supported; leave it out"
        )
    if not metadata_store.startswith("zk:"):
        raise CommandFailed(f"--metadata-store {metadata_store}: a cluster needs ZooKeeper, zk:host1:2181,host2:2181")
    addresses = ClusterData(web_service_url, web_service_url_tls, broker_service_url, broker_service_url_tls)
    new = NewCluster(name, addresses, bundles, coordinators, containers)
    try:
        made = asyncio.run(set_up_cluster(metadata_store, new))
    except (PulsarError, ValueError) as error:
        raise CommandFailed(str(error)) from error
    print_lines([*made, f"cluster {name} is ready" if made else f"cluster {name} was ready already"])

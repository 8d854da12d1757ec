"""Command ``interpulse cluster``: the stores of a cluster, before its brokers start."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.programs.serving import load_settings
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.running import CONFLICT, UNUSABLE, CommandFailed
from interpulse.model.errors import PulsarError
from interpulse.terminal.option_groups import flag, option
from interpulse.terminal.output import print_lines

if TYPE_CHECKING:
    from interpulse.broker.cluster_import.cluster_import import Imported
    from interpulse.broker.config.broker_config import BrokerConfig


@click.group(cls=CommandGroup)
def cluster() -> None:
    """Prepare a cluster of brokers on ZooKeeper and BookKeeper."""


@cluster.command()
@option("-c --cluster name", "Name of the cluster.", metavar="NAME", required=True)
@option("-md --metadata-store", "Its ZooKeeper: zk:host1:2181,host2:2181.", metavar="URL", required=True)
@option(
    "-cms --configuration-metadata-store",
    "ZooKeeper of several clusters; only that of --metadata-store is supported.",
    metavar="URL",
)
@option("-uw --web-service-url service_url", "Where the admin API is reached: http://host:8080.", metavar="URL")
@option("-tw --web-service-url-tls service_url_tls", "The same with TLS: https://host:8443.", metavar="URL")
@option("-ub --broker-service-url", "Where clients connect: pulsar://host:6650.", metavar="URL")
@option("-tb --broker-service-url-tls", "The same with TLS: pulsar+ssl://host:6651.", metavar="URL")
@option("-bn --default-namespace-bundle-number bundles", "Bundles of the namespace public/default.", int, 16)
@option(
    "--initial-num-transaction-coordinators coordinators",
    "Transaction coordinators, for brokers of Apache Pulsar.",
    int,
    16,
)
@option(
    "--initial-num-stream-storage-containers containers",
    "Containers of BookKeeper's stream storage, for brokers of Apache Pulsar.",
    int,
    16,
)
def init(
    name: str,
    metadata_store: str,
    configuration_metadata_store: str | None,
    bundles: int,
    coordinators: int,
    containers: int,
    **addresses: Any,
) -> None:
    """Create the nodes of a new cluster in ZooKeeper, as `pulsar initialize-cluster-metadata` does.

    Run it before the first bookie starts. Existing nodes stay as they are, so it can be repeated. Prints each node it
    creates.
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
    new = NewCluster(name, ClusterData(**addresses), bundles, coordinators, containers)
    try:
        made = asyncio.run(set_up_cluster(metadata_store, new))
    except (PulsarError, ValueError) as error:
        raise CommandFailed(str(error)) from error
    print_lines([*made, f"cluster {name} is ready" if made else f"cluster {name} was ready already"])


@cluster.command("import")
@option(
    "-c --config config_file",
    "The broker.conf of the cluster's brokers: key=value lines with Pulsar's keys.",
    metavar="FILE",
    required=True,
)
@option("--set settings", "Set one key of broker.conf.", metavar="KEY=VALUE", multiple=True)
@option(
    "--data-dir",
    "Data directory of a standalone broker that is stopped. It stays as it is.",
    click.Path(path_type=Path),
    required=True,
)
@flag("--without-compacted", "Leave compacted ledgers behind; their topics keep the entries that are left of them.")
def import_(config_file: str, settings: tuple[str, ...], data_dir: Path, without_compacted: bool) -> None:
    """Copy the data directory of a standalone broker into a cluster.

    Copies tenants, namespaces, policies, partitions, schemas, and topics with all entries, subscriptions and
    acknowledgements. The cluster must be initialized, with its bookies running and its brokers stopped. Every topic is
    read back and compared before it appears. Prints a line for each item. After an interruption, run it again to
    continue. Ledgers get new ids, so message ids that applications have stored are not valid in the cluster.
    """
    from interpulse.broker.config.config_sources import load_config
    from interpulse.serving.settings import ConfigError
    from interpulse.storage.api import DataDirectoryInUse, DataDirectoryUnusable

    with tempfile.TemporaryDirectory(prefix="interpulse-") as scratch:
        load = partial(load_config, in_cluster=True)
        options = {"dataDir": scratch}
        config = load_settings(load, config_file, settings, options).config
        try:
            imported = asyncio.run(_import(config, data_dir, without_compacted))
        except ConfigError as error:
            raise CommandFailed("; ".join(error.problems), UNUSABLE) from error
        except (DataDirectoryInUse, DataDirectoryUnusable) as error:
            raise CommandFailed(str(error), UNUSABLE) from error
        except PulsarError as error:
            raise CommandFailed(str(error)) from error
    if imported.failed:
        raise CommandFailed(
            f"{len(imported.failed)} topics could not be copied, as reported above; all others were copied"
        )
    copied = f"{imported.topics} topics with {imported.entries} entries ({imported.size} bytes)"
    place = f"cluster {config.cluster_name}, equal to those in {data_dir}"
    print_lines([f"{copied} and {imported.cursors} cursors are in {place}"])


async def _import(config: BrokerConfig, data_dir: Path, without_compacted: bool) -> Imported:
    from interpulse.broker.cluster_import.cluster_import import ClusterImport, ImportRefused
    from interpulse.broker.cluster_import.source import DataDirectory
    from interpulse.broker.cluster_stores import in_cluster

    async with AsyncExitStack() as opened:
        source = await DataDirectory.open(data_dir, opened)
        stores = await in_cluster(config, opened)
        report, cluster_name = (lambda line: print_lines([line])), config.cluster_name
        work = ClusterImport(source, stores, cluster_name, without_compacted=without_compacted, say=report)
        try:
            return await work.run()
        except ImportRefused as refused:
            raise CommandFailed(str(refused), CONFLICT) from refused

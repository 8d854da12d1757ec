"""A cluster to be measured: one ZooKeeper, three bookies, and brokers of both kinds beside each other."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.contenders import Serving
from benchmarks.http_load import Request, run_requests
from tests.interop.real_pulsar.bookkeeper import RealBookKeeper, real_bookkeeper
from tests.interop.real_pulsar.broker import RealBroker
from tests.support.standalone_process import BrokerProcess, free_port, interpulse

BOOKIES = 3
QUORUM = {
    "managedLedgerDefaultEnsembleSize": "3",
    "managedLedgerDefaultWriteQuorum": "3",
    "managedLedgerDefaultAckQuorum": "2",
}


class Cluster:
    """What runs. Each kind of broker advertises a host name of its own, which isolation policies can tell apart."""

    def __init__(self, directory: Path, engines: RealBookKeeper, stack: ExitStack) -> None:
        self._directory = directory
        self._engines = engines
        self._stack = stack
        self._started = 0

    def start_real(self) -> RealBroker:
        """A real broker, at 127.0.0.1."""
        settings = {**QUORUM, "loadBalancerAutoBundleSplitEnabled": "false"}
        broker = RealBroker(self._directory / "real", self._engines.zookeeper.address, settings, measured=True)
        broker.start()
        self._stack.callback(broker.kill)
        return broker

    def start_ours(self, session_timeout_s: int = 6) -> BrokerProcess:
        """A broker of ours, at localhost."""
        self._started += 1
        home = self._directory / f"ours-{self._started}"
        settings = {
            "clusterName": "lab",
            "metadataStoreUrl": f"zk:{self._engines.zookeeper.address}",
            "dataDir": str(home),
            "brokerServicePort": free_port(),
            "webServicePort": free_port(),
            "advertisedAddress": "localhost",
            "metadataStoreSessionTimeoutMillis": str(session_timeout_s * 1000),
            "loadBalancerAutoBundleSplitEnabled": "false",
            **QUORUM,
        }
        conf = home.with_suffix(".conf")
        conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        line = interpulse("broker", "--config", str(conf))
        return self._stack.enter_context(BrokerProcess(line, home.with_suffix(".log")))


@contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    """One with its engines running, and no broker yet."""
    with real_bookkeeper(directory, BOOKIES) as engines, ExitStack() as stack:
        yield Cluster(directory, engines, stack)


def call(broker: Serving, method: str, path: str, body: object = None) -> None:
    """One call of the admin API."""
    content = b"" if body is None else json.dumps(body).encode()
    run_requests(broker.web_url, [Request(method, f"/admin/v2/{path}", content)], connections=1)


def create_namespace(broker: Serving, namespace: str, bundles: int = 1) -> None:
    """Creates one that keeps every message."""
    call(broker, "PUT", f"namespaces/{namespace}", {"bundles": {"numBundles": bundles}})
    call(broker, "POST", f"namespaces/{namespace}/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})


def hold_at(broker: Serving, namespace: str, host: str) -> None:
    """Lets only brokers of a host name have the namespace."""
    failover = {"policy_type": "min_available", "parameters": {"min_limit": "1", "usage_threshold": "80"}}
    policy = {"namespaces": [namespace], "primary": [host], "secondary": [], "auto_failover_policy": failover}
    call(broker, "POST", f"clusters/lab/namespaceIsolationPolicies/{namespace.replace('/', '-')}", policy)


def owner_url(broker: Serving, topic: str) -> str:
    """The service URL of the topic's owner, which takes the bundle if nobody has it."""
    url = f"{broker.web_url}/lookup/v2/topic/{topic.replace('://', '/')}"
    with urllib.request.urlopen(url, timeout=60) as reply:
        return str(json.loads(reply.read())["brokerUrl"])

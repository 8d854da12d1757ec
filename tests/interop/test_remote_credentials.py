"""A real Pulsar that asks for tokens, also over TLS, on the other side: topics and messages, the latter both ways."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pulsar
import pytest

from interpulse.model.errors import SchemaNotFound
from interpulse.replication.cluster_address import ClusterAddress
from interpulse.testing import InProcessBroker
from tests.front_ends import access
from tests.interop.pulsar_with_tokens import TOKEN_PLUGIN, PulsarWithTokens
from tests.interop.replicated_pairs import Cluster, Pair, provision_as_job, until
from tests.support.encryption_keys import new_keys
from tests.support.pipeline_turns import TOPIC, Job, schemas_come_while_they_are_wanted

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture
def real(pulsar_with_tokens: PulsarWithTokens) -> PulsarWithTokens:
    return pulsar_with_tokens


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Cluster]:
    settings = {"clusterName": f"ours-{uuid.uuid4().hex[:6]}", "replicationJob": "external"}
    with InProcessBroker(tmp_path / "ours", settings) as broker:
        yield Cluster(broker.web_url, broker.service_url, settings["clusterName"])


def shown(token: Path) -> str:
    """The token in that file, as options of ``clusters update``."""
    return f"--auth-plugin {TOKEN_PLUGIN} --auth-parameters {token.as_uri()}"


def wait_for_job(pair: Pair, directory: Path, topic: str, target: ClusterAddress) -> None:
    """Turns of the job's control side, until nothing is missing but Spark."""

    def reasons() -> set[str]:
        return {each["reason"] for each in provision_as_job(pair, directory, pair.topic(topic), target=target)}

    until(reasons, {"Spark is starting"}, seconds=300)


def test_cluster_that_asks_for_a_token_is_reached_with_the_registered_one(
    ours: Cluster, real: PulsarWithTokens, tmp_path: Path
) -> None:
    pair = Pair(ours, real).begin()
    preview = f"namespaces set-clusters {pair.namespace} -c {pair.both} --preview"
    code, output, _ = ours.attempt(preview)
    assert (code, "cannot be compared: Authentication required" in output) == (3, True), output
    pair.source.run(f"topics create-partitioned-topic {pair.topic('x')} -p 2")
    pair.enable("--skipCompareTopicPartitions")
    until(lambda: pair.status(pair.topic("x"))["state"], "HELD")
    held = pair.status(pair.topic("x"))
    assert f"give {real.name} credentials" in held["remedy"], held

    file = tmp_path / "real.jwt"
    file.write_text(access.token("admin", expires_in_seconds=-10))
    ours.run(
        f"clusters update {real.name} --url {real.web_url} --broker-url {real.service_url} {shown(file)}",
    )
    retry_at = pair.status(pair.topic("x"))["nextRetryAt"]
    until(lambda: pair.status(pair.topic("x"))["nextRetryAt"] > retry_at, True)
    assert pair.status(pair.topic("x"))["reason"] == "Authentication required", "the token has expired"
    assert real.partitions(pair.topic("x")) is None
    file.write_text(access.token("admin"))
    until(lambda: real.partitions(pair.topic("x")), 2)
    ours.run(f"namespaces set-clusters {pair.namespace} -c {ours.name}")
    assert ours.attempt(preview)[0] == 0
    address = ClusterAddress(
        cluster=real.name, service_url=real.service_url, admin_url=real.web_url, token=file.as_uri()
    )
    wait_for_job(pair, tmp_path / "job", "x", address)

    ours.run(f"clusters update {real.name} {real.record_over_tls} {shown(file)}")
    assert ours.attempt(preview)[0] == 0
    pair.enable()
    ours.run(f"topics create {pair.topic('over-tls')}")
    until(lambda: real.partitions(pair.topic("over-tls")), 0)
    address = ClusterAddress(
        cluster=real.name,
        service_url=real.service_url_tls,
        admin_url=real.web_url_tls,
        token=file.as_uri(),
        trust_certs_file=str(real.authority),
    )
    wait_for_job(pair, tmp_path / "job-tls", "over-tls", address)


QUIET = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
NUMBERS = [str(number) for number in range(50)]


def client(real: PulsarWithTokens) -> pulsar.Client:
    return pulsar.Client(
        real.service_url_tls,
        authentication=pulsar.AuthenticationToken(access.token("admin")),
        tls_trust_certs_file_path=str(real.authority),
        logger=QUIET,
    )


def publish_sealed(client: pulsar.Client, topic: str, **sealing: Any) -> None:
    """With a schema, so that it is asked for on the source and registered on the target."""
    producer = client.create_producer(topic, schema=pulsar.schema.StringSchema(), **sealing)
    for number in NUMBERS:
        producer.send(number)
    producer.close()


def read(client: pulsar.Client, topic: str, **opening: Any) -> list[str]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest, schema=pulsar.schema.StringSchema(), **opening)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(60_000).value())
    reader.close()
    return found


def job_config(path: Path, select: str, *sides: tuple[str, dict[str, str]], conf: dict[str, str] | None = None) -> Path:
    lines = ["[pipeline]", f'name = "{path.stem}"', f'state = "{path.with_suffix("")}"', 'start = "earliest"']
    for side, values in sides:
        lines += [f"[{side}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    lines += ["[select]", select, "[spark]", 'driver_memory = "600m"', "[spark.conf]"]
    lines += [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in (conf or {}).items()]
    path.write_text("\n".join(lines))
    return path


def in_files(directory: Path, secret: str) -> list[Path]:
    """Files that hold it, as text or inside of what is pickled."""
    return [path for path in directory.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def copied(log: Path) -> dict[str, int]:
    """Messages by the cluster they were copied to, as the jobs tell."""
    counts: dict[str, int] = {}
    for line in log.read_text().splitlines():
        if line.startswith('{"event": "progress"'):
            progress = json.loads(line)
            written = progress.get("written", {}).get("messages", 0)
            counts[progress["cluster"]] = counts.get(progress["cluster"], 0) + written
    return counts


def family(process: subprocess.Popen[bytes]) -> list[str]:
    """What all users of this machine may see of the job and the processes it started."""
    parent = psutil.Process(process.pid)
    words = []
    for each in (parent, *parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # one that has just ended
            words += each.cmdline()
    return words


@pytest.mark.spark
def test_messages_travel_both_ways_and_no_token_is_shown(ours: Cluster, real: PulsarWithTokens, tmp_path: Path) -> None:
    pair = Pair(ours, real).begin()
    in_a_file, in_the_settings = access.token("admin"), access.token("admin", expires_in_seconds=3600)
    token_file = tmp_path / "real.jwt"
    token_file.write_text(in_a_file)
    ours.run(f"clusters update {real.name} {real.record_over_tls} {shown(token_file)}")
    there, back = pair.topic("there"), pair.topic("back")
    sealed = f"persistent://{pair.tenant}/sealed/there"
    for cluster in (ours, real):
        cluster.run(f"namespaces create {pair.tenant}/sealed -c {cluster.name}")
    real.run(f"namespaces set-encryption-required {pair.tenant}/sealed --enable")
    keys = new_keys(tmp_path, "orders")
    opened = {"crypto_key_reader": pulsar.CryptoKeyReader(str(keys.public), str(keys.private))}
    for topic in (there, sealed):
        ours.run(f"topics create-partitioned-topic {topic} -p 1")
        ours.run(f"topics set-replication-clusters {topic} -c {pair.both}")
    real.run(f"topics create-partitioned-topic {back} -p 1")

    jobs, seen = tmp_path / "jobs", tmp_path / "seen"
    jobs.mkdir()
    seen.mkdir()
    here = {"cluster": ours.name, "service_url": ours.service_url, "admin_url": ours.web_url}
    over_tls = {
        "cluster": real.name,
        "service_url": real.service_url_tls,
        "admin_url": real.web_url_tls,
        "token": in_the_settings,
        "trust_certs_file": str(real.authority),
    }
    events = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.log.level": "INFO"}
    conf = {**events, "spark.eventLog.dir": seen.as_uri()}
    configs = [
        job_config(jobs / "there.toml", "from_policies = true", ("source", here), conf=conf),
        job_config(jobs / "back.toml", f'topics = ["{back}"]', ("source", over_tls), ("target", here), conf=conf),
    ]
    ours_client, real_client = pulsar.Client(ours.service_url, logger=QUIET), client(real)
    publish_sealed(ours_client, there)
    publish_sealed(ours_client, sealed, encryption_key="orders", **opened)
    publish_sealed(real_client, back)
    command = [sys.executable, "-m", "tests.spark.one_session", *map(str, configs)]
    with (seen / "log").open("wb") as log:
        job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
    try:
        until(lambda: copied(seen / "log"), {real.name: 2 * len(NUMBERS), ours.name: len(NUMBERS)}, seconds=400)
        assert read(real_client, there) == read(ours_client, back) == read(real_client, sealed, **opened) == NUMBERS
        assert not [word for word in family(job) if in_a_file in word or in_the_settings in word]
    finally:
        job.communicate()
    ours_client.close()
    real_client.close()
    assert in_files(seen, "physicalPlanDescription"), "plans are there to be looked at"
    for secret in (in_a_file, in_the_settings):
        assert in_files(seen, secret) == [], "logs, plans and whatever else Spark's UI shows"
        assert [path for path in in_files(jobs, secret) if path not in configs] == [], "checkpoints and lane files"


async def test_job_writes_to_topics_that_want_schemas_over_tls_that_nothing_vouches_for(
    real: PulsarWithTokens, tmp_path: Path
) -> None:
    with InProcessBroker(tmp_path / "east", {"clusterName": "east"}) as east:
        job = Job(
            tmp_path / "job",
            east,
            real,
            cluster=real.name,
            service_url=real.service_url_tls,
            token=real.token,
            tls_allow_insecure_connection=True,
        )
        try:
            await job.east.topics.create_partitioned(TOPIC, 2)
            await schemas_come_while_they_are_wanted(job)
            await job.west.schemas.delete(TOPIC)
            await job.west.topics.unload(TOPIC)
            await job.until_connected()
            with pytest.raises(SchemaNotFound):
                await job.west.schemas.get(TOPIC)
        finally:
            await job.pipeline.stop()
            await asyncio.gather(job.east.close(), job.west.close())

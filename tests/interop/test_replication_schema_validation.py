"""A real Pulsar as the target that wants schemas of producers, behind a certificate that nobody vouches for."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from interpulse.model.errors import SchemaNotFound
from interpulse.testing import InProcessBroker
from tests.interop.conftest import RealPulsarFactory
from tests.interop.test_remote_credentials import certificate
from tests.support.pipeline_turns import TOPIC, Job, schemas_come_while_they_are_wanted

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]


async def test_job_writes_to_a_real_pulsar_that_wants_schemas(
    start_real_pulsar: RealPulsarFactory, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port = opened.getsockname()[1]
    key, cert = certificate(tmp_path)
    tls = {"brokerServicePortTls": str(port), "tlsCertificateFilePath": str(cert), "tlsKeyFilePath": str(key)}
    real = await asyncio.to_thread(start_real_pulsar, "west", tls)
    with InProcessBroker(tmp_path / "east", {"clusterName": "east"}) as east:
        job = Job(tmp_path / "job", east, real)
        job.clusters["west"] = replace(
            job.clusters["west"], service_url=f"pulsar+ssl://127.0.0.1:{port}", tls_allow_insecure_connection=True
        )
        job.pipeline = job.selecting(job.pipeline.route.config.select)
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

"""The Java client and admin client use schemas on both brokers alike."""

from __future__ import annotations

import uuid

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.testing import InProcessBroker
from tests.interop.conftest import JavaCheck
from tests.interop.real_pulsar import Address

pytestmark = [pytest.mark.interop, pytest.mark.slow]

PAIRS = {
    f"pair{step} {encoding}": said
    for encoding, has_key in (("INLINE", "false"), ("SEPARATED", "true"))
    for step, said in {
        "": f"k UA -3 {has_key}",
        " grown": "taken",
        " broken": "IncompatibleSchemaException",
        " other key": "IncompatibleSchemaException",
        " of any": "k UA",
    }.items()
}
SAID = PAIRS | {
    "first": "taken",
    "grown": "taken",
    "broken": "IncompatibleSchemaException",
    "versions": "2",
    "json": "IncompatibleSchemaException",
    "consumer of the first": "taken",
    "consumer broken": "IncompatibleSchemaException",
    "consumer of bytes": "taken",
    "one message of another": "sent",
    "one message broken": "IncompatibleSchemaException",
    "any bytes that fit": "sent",
    "any bytes that do not": "SchemaSerializationException",
    "any record": "[UA, -3]",
    "compatible": "IsCompatibilityResponse(isCompatibility=true, schemaCompatibilityStrategy=FULL)",
    "uploaded broken": "ConflictException",
    "uploaded again": "taken",
    "version": "1",
    "pair over rest": "KEY_VALUE",
    "versions read": "[UA, DL, 2, 3]",
    "native": "7",
    "native of any": "7",
    "native of another": "IncompatibleSchemaException",
    "native over rest": "PROTOBUF_NATIVE",
    "protobuf": "7",
    "protobuf of another": "taken",
    "json record": "[-3, UA]",
    "numbers": "[-1, 2, 3, 4, 0.5, 0.25, true]",
    "times": "[1970-01-01, 1970-01-01T00:00:00Z, 12:00, 5, 6, 7, 1970-01-01T00:00]",
    "number for text": "IncompatibleSchemaException",
}


def test_java_client_when_on_our_broker_then_schemas_work(
    pulsar_broker: InProcessBroker, java_check: JavaCheck
) -> None:
    said = java_check("Schemas.java", pulsar_broker.service_url, pulsar_broker.web_url, "public/default")
    assert heard(said) == SAID


async def test_java_client_when_on_a_real_pulsar_then_the_same(real_pulsar: Address, java_check: JavaCheck) -> None:
    namespace = f"public/schemas-{uuid.uuid4().hex[:8]}"
    async with AdminClient(real_pulsar.web_url) as admin:
        await admin.namespaces.create(namespace)
    assert heard(java_check("Schemas.java", real_pulsar.service_url, real_pulsar.web_url, namespace)) == SAID


def heard(said: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)

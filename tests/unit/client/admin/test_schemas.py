"""Requests about schemas; answers as Apache Pulsar 5.0.0-M1 gives them."""

import pytest

from interpulse.client.admin.admin_client import AdminClient
from interpulse.client.admin.schemas import SchemaVersion
from interpulse.model.errors import IncompatibleSchema, UnknownError
from interpulse.model.schemas import SchemaInfo, SchemaType
from tests.support.stub_web import StubWeb

ROOT = "/admin/v2/schemas/t/ns/a+b"
AVRO = SchemaInfo(SchemaType.AVRO, b'{"type":"record"}', {"k": "v"})
AVRO_JSON = {"version": 3, "type": "AVRO", "timestamp": 7, "data": '{"type":"record"}', "properties": {"k": "v"}}


async def test_schema_when_read_then_is_a_value(web: StubWeb, admin: AdminClient) -> None:
    web.answer("GET", f"{ROOT}/schema", AVRO_JSON)
    web.answer("GET", f"{ROOT}/schema/2", AVRO_JSON | {"version": 2})
    web.answer("GET", f"{ROOT}/schemas", {"getSchemaResponses": [AVRO_JSON]})
    assert await admin.schemas.get("t/ns/a b") == SchemaVersion(3, AVRO, 7)
    assert (await admin.schemas.get("t/ns/a b-partition-1", 2)).version == 2
    assert await admin.schemas.history("t/ns/a b") == [SchemaVersion(3, AVRO, 7)]


@pytest.mark.parametrize("answer", [{"version": {"version": 4}}, {"version": 4}])
async def test_schema_when_registered_then_version_is_returned(
    web: StubWeb, admin: AdminClient, answer: object
) -> None:
    web.answer("POST", f"{ROOT}/schema", answer)
    assert await admin.schemas.upload("t/ns/a b", AVRO) == 4
    assert web.last.body == {"type": "AVRO", "schema": '{"type":"record"}', "properties": {"k": "v"}}


async def test_schema_when_deleted_then_version_of_the_marker_is_returned(web: StubWeb, admin: AdminClient) -> None:
    web.answer("DELETE", f"{ROOT}/schema", {"version": 5})
    assert await admin.schemas.delete("t/ns/a b", force=True) == 5
    assert web.last.target == f"{ROOT}/schema?force=true"


async def test_schema_when_refused_with_an_html_page_then_is_incompatible(web: StubWeb, admin: AdminClient) -> None:
    page = b"<table><tr><th>MESSAGE:</th><td>Incompatible schema: exists schema type JSON</td></tr></table>"
    web.answer_raw("POST", f"{ROOT}/schema", page, status=409, content_type="text/html;charset=iso-8859-1")
    with pytest.raises(IncompatibleSchema, match="exists schema type JSON"):
        await admin.schemas.upload("t/ns/a b", AVRO)


async def test_key_value_schema_when_sent_and_read_then_keeps_its_bytes(web: StubWeb, admin: AdminClient) -> None:
    text = '{"key":{"type":"record"},"value":""}'
    web.answer("POST", f"{ROOT}/schema", {"version": 0})
    web.answer("GET", f"{ROOT}/schema", {"version": 0, "type": "KEY_VALUE", "data": text, "properties": {}})
    pair = SchemaInfo(SchemaType.KEY_VALUE, b'\0\0\0\x11{"type":"record"}\0\0\0\0')
    await admin.schemas.upload("t/ns/a b", pair)
    assert web.last.body["schema"] == text
    assert (await admin.schemas.get("t/ns/a b")).schema == pair


@pytest.mark.parametrize(("compatible", "status"), [(True, 202), (False, 200)])
async def test_compatibility_when_asked_then_answer_and_strategy(
    web: StubWeb, admin: AdminClient, compatible: bool, status: int
) -> None:
    body = {"schemaCompatibilityStrategy": "FULL", "compatibility": compatible}
    web.answer("POST", f"{ROOT}/compatibility", body, status=status)
    assert await admin.schemas.test_compatibility("t/ns/a b-partition-0", AVRO) == (compatible, "FULL")
    assert web.last.body == {"type": "AVRO", "schema": '{"type":"record"}', "properties": {"k": "v"}}


async def test_compatibility_when_refused_with_a_stack_trace_then_raises_its_message(
    web: StubWeb, admin: AdminClient
) -> None:
    reason = (
        "\n --- An unexpected error occurred ---\n\nMessage: Incompatible schema: exists AVRO\n\nStacktrace:\n\nat x"
    )
    web.answer("POST", f"{ROOT}/compatibility", {"reason": reason}, status=500)
    with pytest.raises(UnknownError, match="exists AVRO") as failed:
        await admin.schemas.test_compatibility("t/ns/a b", AVRO)
    assert str(failed.value) == "Incompatible schema: exists AVRO"

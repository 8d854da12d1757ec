"""Group ``schemas``: the schema history of a topic."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interpulse.cli.admin.schema_extraction import NotExtractable, avro_definition, load_class
from interpulse.cli.support.call_commands import call_command, topic_argument
from interpulse.cli.support.command_groups import CommandGroup
from interpulse.cli.support.params import TOPIC
from interpulse.cli.support.running import NOT_OFFERED, UNUSABLE, CommandFailed, admin_command
from interpulse.model.names import TopicName
from interpulse.model.schemas import SchemaInfo, SchemaType, definition_from_text, definition_to_text
from interpulse.terminal.output import print_documents, print_json, print_value

if TYPE_CHECKING:
    from interpulse.client.admin.admin_client import AdminClient
    from interpulse.client.admin.schemas import SchemaVersion

_schema_file = click.option(
    "-f", "--filename", required=True, type=click.Path(dir_okay=False), help="JSON with type, schema, properties."
)


@click.group(cls=CommandGroup)
def schemas() -> None:
    """Operations about schemas."""


@schemas.command("get")
@topic_argument
@click.option("-v", "--version", type=click.IntRange(min=0), help="Version of the schema; the newest by default.")
@click.option("-a", "--all-version", "history", is_flag=True, help="All versions.")
@admin_command
async def get_schema(admin: AdminClient, topic: TopicName, version: int | None, history: bool) -> None:
    """Print the schema of a topic."""
    if version is not None and history:
        raise click.UsageError("Only one or neither of --version and --all-version can be specified.")
    if history:
        print_documents(_flat_json(topic, entry) for entry in await admin.schemas.history(topic))
        return
    entry = await admin.schemas.get(topic, version)
    body = _schema_json(topic.base.local_name, entry.schema, entry.created_ms)
    shown = {"version": entry.version, "schemaInfo": body} if version is None else body
    print_value(shown, json.dumps(shown, indent=2, ensure_ascii=False))


def _schema_json(name: str, schema: SchemaInfo, created_ms: int) -> dict[str, Any]:
    """Return a schema for people: a JSON definition is shown as JSON."""
    return {
        "name": name,
        "schema": _key_value_json(schema) if schema.type is SchemaType.KEY_VALUE else _readable(schema),
        "type": schema.type.name,
        "timestamp": created_ms,
        "properties": dict(sorted(schema.properties.items())),
    }


def _readable(schema: SchemaInfo) -> Any:
    text = schema.definition.decode(errors="replace")
    return json.loads(text) if text.startswith("{") else text


def _key_value_json(schema: SchemaInfo) -> dict[str, Any]:
    parts = json.loads(definition_to_text(schema))
    return {side: _part_json(side, parts[side], schema.properties) for side in ("key", "value")}


def _part_json(side: str, definition: Any, properties: Any) -> dict[str, Any]:
    return {
        "name": properties.get(f"{side}.schema.name", ""),
        "schema": definition,
        "type": properties.get(f"{side}.schema.type", "BYTES"),
        "timestamp": 0,
        "properties": json.loads(properties.get(f"{side}.schema.properties") or "{}"),
    }


def _flat_json(topic: TopicName, entry: SchemaVersion) -> dict[str, Any]:
    """Return a version as in lists of versions: the definition as bytes and as a string."""
    return {
        "name": topic.base.local_name,
        "schema": base64.b64encode(entry.schema.definition).decode(),
        "type": entry.schema.type.name,
        "timestamp": entry.created_ms,
        "properties": dict(entry.schema.properties),
        "schemaDefinition": definition_to_text(entry.schema),
    }


@schemas.command("upload")
@topic_argument
@_schema_file
@admin_command
async def upload_schema(admin: AdminClient, topic: TopicName, filename: str) -> None:
    """Register a schema read from a file."""
    await admin.schemas.upload(topic, read_schema_file(filename))


@schemas.command("compatibility")
@topic_argument
@_schema_file
@admin_command
async def test_compatibility(admin: AdminClient, topic: TopicName, filename: str) -> None:
    """Test whether a schema read from a file is compatible; exit code 1 if it is not."""
    answer = await admin.schemas.test_compatibility(topic, read_schema_file(filename))
    print_json({"schemaCompatibilityStrategy": answer.strategy, "compatibility": answer.compatible})
    if not answer.compatible:
        raise CommandFailed(f"The schema is not compatible with those of {topic} by the strategy {answer.strategy}")


def _refuse_java(context: click.Context, option: click.Parameter, given: str | None) -> None:
    if given is not None:
        raise CommandFailed(
            "Classes of Java (-j and -c) are not read, as that needs a Java virtual machine: "
            "name a dataclass or a pydantic model as MODULE:CLASS, or upload the definition with schemas upload",
            NOT_OFFERED,
        )


def _of_java(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(*names, is_eager=True, expose_value=False, hidden=True, callback=_refuse_java)


@schemas.command("extract")
@click.argument("class_path", metavar="MODULE:CLASS")
@click.argument("topic", type=TOPIC, required=False)
@click.option(
    "-t", "--type", "kind", type=click.Choice(["avro", "json"], case_sensitive=False), default="avro", show_default=True
)
@click.option("-a", "--always-allow-null", is_flag=True, help="Let every field be null, against its annotation.")
@click.option("-n", "--dry-run", is_flag=True, help="Print the schema and register nothing.")
@_of_java("-j", "--jar")
@_of_java("-c", "--classname")
@admin_command
async def extract_schema(
    admin: AdminClient, class_path: str, topic: TopicName | None, kind: str, always_allow_null: bool, dry_run: bool
) -> None:
    """Describe a dataclass or a pydantic model as a schema, and register it if a topic is given."""
    schema = _extracted(class_path, SchemaType[kind.upper()], always_allow_null)
    if topic is None:
        print_value(json.loads(schema.definition), json.dumps(json.loads(schema.definition), indent=2))
    elif dry_run:
        click.echo(str(topic))
        print_json({"type": schema.type.name, "schema": schema.definition.decode(), "properties": schema.properties})
    else:
        await admin.schemas.upload(topic, schema)


def _extracted(class_path: str, schema_type: SchemaType, always_allow_null: bool) -> SchemaInfo:
    try:
        described = load_class(class_path)
    except NotExtractable as error:
        raise CommandFailed(str(error), UNUSABLE) from error
    try:
        definition = avro_definition(described, always_allow_null=always_allow_null)
    except NotExtractable as error:
        raise CommandFailed(str(error)) from error
    properties = {"__alwaysAllowNull": str(always_allow_null).lower(), "__jsr310ConversionEnabled": "false"}
    return SchemaInfo(schema_type, json.dumps(definition).encode(), properties)


def read_schema_file(filename: str) -> SchemaInfo:
    """Read the file form of Pulsar's tools: ``{"type": ..., "schema": "...", "properties": {...}}``."""
    try:
        body = json.loads(Path(filename).read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandFailed(f"{filename} cannot be read: {error.strerror}", UNUSABLE) from error
    except UnicodeDecodeError:
        raise _no_schema(filename, "it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise _no_schema(filename, f"it is not JSON at line {error.lineno}, column {error.colno}") from None
    name, definition, properties = _members(filename, body)
    if name.upper() not in SchemaType.__members__:
        known = ", ".join(SchemaType.__members__)
        raise _no_schema(filename, f"type {name[:100]!r} is unknown; valid are {known}")
    schema_type = SchemaType[name.upper()]
    try:
        return SchemaInfo(schema_type, definition_from_text(schema_type, definition), properties)
    except ValueError:
        raise _no_schema(filename, f"its schema is not a definition of the type {schema_type.name}") from None


def _members(filename: str, body: Any) -> tuple[str, str, dict[str, Any]]:
    if isinstance(body, dict):
        name, definition, properties = body.get("type"), body.get("schema") or "", body.get("properties") or {}
        if isinstance(name, str) and isinstance(definition, str) and isinstance(properties, dict):
            return name, definition, properties
    raise _no_schema(filename, "expected an object with type and schema, both strings, and the object properties")


def _no_schema(filename: str, reason: str) -> CommandFailed:
    """Return the refusal of a file. Its content is not shown, since it may be a key named by mistake."""
    return CommandFailed(f"{filename} is not a schema: {reason}", UNUSABLE)


_force = click.option("-f", "--force", is_flag=True, help="Erase the history of the schema.")
call_command(
    schemas.add_command, "schemas", topic_argument, "delete", "delete", "Delete the schema of a topic.", _force
)

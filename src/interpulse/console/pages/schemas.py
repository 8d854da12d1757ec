"""The schemas of a topic: every version, the changes between two, and a check of another one."""

from __future__ import annotations

import difflib
import json
from contextlib import suppress
from typing import Final

from interpulse.client.admin.schemas import SchemaVersion
from interpulse.console.visit import Model, Visit
from interpulse.model.errors import AuthenticationError, AuthorizationError, PulsarError, TopicNotFound
from interpulse.model.schemas import SchemaInfo, SchemaType, definition_to_text

TRIAL_TYPES: Final = ("AVRO", "JSON", "PROTOBUF", "STRING", "INT32", "INT64", "DOUBLE", "BOOLEAN")
_VERSIONS_MAX: Final = 100


async def build(visit: Visit) -> Model:
    """Build the page. Raise TopicNotFound."""
    topic = visit.topic().base
    history = await visit.admin.schemas.history(topic)
    if not history:
        metadata = await visit.admin.topics.partitioned_metadata(topic)
        if not metadata.partitions:
            await visit.admin.topics.stats(topic)  # raises if the topic does not exist
    versions = [_version(entry) for entry in reversed(history)]
    older, newer = _compared(visit, versions)
    return {
        "topic": str(topic),
        "versions": versions[:_VERSIONS_MAX],  # the newest first
        "left_out": max(0, len(versions) - _VERSIONS_MAX),
        "older": older["number"] if older else None,
        "newer": newer["number"] if newer else None,
        "diff": _diff(older, newer) if older and newer else [],
        "trial": await _trial(visit),
        "trial_types": TRIAL_TYPES,
    }


def _version(stored: SchemaVersion) -> Model:
    schema = stored.schema
    definition = definition_to_text(schema)
    with suppress(ValueError, RecursionError):
        definition = json.dumps(json.loads(definition), indent=2, ensure_ascii=False)
    return {
        "number": stored.version,
        "type": schema.type.name,
        "created_ms": stored.created_ms,
        "definition": definition,
        "properties": dict(schema.properties),
    }


def _compared(visit: Visit, versions: list[Model]) -> tuple[Model | None, Model | None]:
    """Return the two versions that the address names, or the last two; None if there are fewer."""
    by_number = {version["number"]: version for version in versions}
    newer = by_number.get(visit.number("newer", versions[0]["number"] if versions else 0, most=1 << 62))
    before = [version["number"] for version in versions if newer and version["number"] < newer["number"]]
    older = by_number.get(visit.number("older", before[0] if before else 0, most=1 << 62))
    return (older, newer) if older is not newer else (None, newer)


def _diff(older: Model, newer: Model) -> list[Model]:
    """Return the lines of a comparison; ``mark`` is ``+``, ``-`` or a blank."""
    lines = difflib.ndiff(older["definition"].splitlines(), newer["definition"].splitlines())
    return [{"mark": line[0], "text": line[2:]} for line in lines if not line.startswith("?")]


async def _trial(visit: Visit) -> Model:
    """Return the broker's answer for a definition that the visitor tries; ``compatible`` is None if none was tried."""
    kind, definition = visit.choice("type", TRIAL_TYPES), visit.text("definition")
    trial = {"type": kind, "definition": definition, "compatible": None, "strategy": "", "problem": ""}
    if not definition.strip() and not visit.text("type"):
        return trial
    schema = SchemaInfo(SchemaType[kind], definition.encode("utf-8", "backslashreplace"), {}, "trial")
    try:
        answer = await visit.admin.schemas.test_compatibility(visit.topic().base, schema)
    except (AuthenticationError, AuthorizationError, TopicNotFound):
        raise
    except PulsarError as error:
        return {**trial, "compatible": False, "problem": str(error)}
    return {**trial, "compatible": answer.compatible, "strategy": answer.strategy}

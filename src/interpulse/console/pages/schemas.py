"""The schemas of a topic: every version, the changes between two, and a check of another one."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import Final

from interpulse.client.admin.schemas import SchemaVersion
from interpulse.console.visit import Visit
from interpulse.model.errors import AuthenticationError, AuthorizationError, PulsarError, TopicNotFound
from interpulse.model.schemas import SchemaInfo, SchemaType, definition_to_text

TRIAL_TYPES: Final = ("AVRO", "JSON", "PROTOBUF", "STRING", "INT32", "INT64", "DOUBLE", "BOOLEAN")
_VERSIONS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the schema."""

    number: int
    type: str
    created_ms: int
    definition: str
    properties: dict[str, str]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a comparison; ``mark`` is ``+``, ``-`` or a blank."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class Trial:
    """The broker's answer for a definition that the visitor tries."""

    type: str
    definition: str
    compatible: bool | None = None
    """The result; None if no schema was tried."""

    strategy: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SchemasModel:
    """The page."""

    topic: str
    versions: tuple[Version, ...]
    """The newest first."""

    left_out: int
    older: int | None
    newer: int | None
    diff: tuple[DiffLine, ...]
    trial: Trial
    trial_types: tuple[str, ...] = TRIAL_TYPES


async def build(visit: Visit) -> SchemasModel:
    """Build the page. Raise TopicNotFound."""
    topic = visit.topic().base
    history = await visit.admin.schemas.history(topic)
    if not history:
        metadata = await visit.admin.topics.partitioned_metadata(topic)
        if not metadata.partitions:
            await visit.admin.topics.stats(topic)  # raises if the topic does not exist
    versions = [_version(entry) for entry in reversed(history)]
    older, newer = _compared(visit, versions)
    return SchemasModel(
        str(topic),
        tuple(versions[:_VERSIONS_MAX]),
        max(0, len(versions) - _VERSIONS_MAX),
        older.number if older else None,
        newer.number if newer else None,
        tuple(_diff(older, newer)) if older and newer else (),
        await _trial(visit),
    )


def _version(found: SchemaVersion) -> Version:
    schema = found.schema
    text = _indented(definition_to_text(schema))
    return Version(found.version, schema.type.name, found.created_ms, text, dict(schema.properties))


def _indented(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _compared(visit: Visit, versions: list[Version]) -> tuple[Version | None, Version | None]:
    """Return the two versions that the address names, or the last two; None if there are fewer."""
    by_number = {version.number: version for version in versions}
    newer = by_number.get(visit.number("newer", versions[0].number if versions else 0, most=1 << 62))
    before = [version.number for version in versions if newer and version.number < newer.number]
    older = by_number.get(visit.number("older", before[0] if before else 0, most=1 << 62))
    return (older, newer) if older is not newer else (None, newer)


def _diff(older: Version, newer: Version) -> list[DiffLine]:
    one, other = older.definition.splitlines(), newer.definition.splitlines()
    lines = [line for line in difflib.ndiff(one, other) if not line.startswith("?")]
    return [DiffLine(line[0], line[2:]) for line in lines]


async def _trial(visit: Visit) -> Trial:
    kind, definition = visit.choice("type", TRIAL_TYPES), visit.text("definition")
    if not definition.strip() and not visit.text("type"):
        return Trial(kind, definition)
    schema = SchemaInfo(SchemaType[kind], definition.encode("utf-8", "backslashreplace"), {}, "trial")
    try:
        answer = await visit.admin.schemas.test_compatibility(visit.topic().base, schema)
    except (AuthenticationError, AuthorizationError, TopicNotFound):
        raise
    except PulsarError as error:
        return Trial(kind, definition, False, "", str(error))
    return Trial(kind, definition, answer.compatible, answer.strategy)

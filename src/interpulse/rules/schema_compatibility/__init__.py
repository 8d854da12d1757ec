"""Schema compatibility: checks of the definitions of every type, and the strategies that compare them."""

from interpulse.rules.schema_compatibility.avro_types import avro_identity
from interpulse.rules.schema_compatibility.definitions import AVRO_DEFINED, check_definition
from interpulse.rules.schema_compatibility.strategies import (
    ALWAYS_COMPATIBLE,
    ALWAYS_INCOMPATIBLE,
    STRATEGIES,
    TRANSITIVE,
    find_conflict,
)

__all__ = [
    "ALWAYS_COMPATIBLE",
    "ALWAYS_INCOMPATIBLE",
    "AVRO_DEFINED",
    "STRATEGIES",
    "TRANSITIVE",
    "avro_identity",
    "check_definition",
    "find_conflict",
]

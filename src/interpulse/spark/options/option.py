"""Options of ``format("pulsar")``: their declarations, and their values in the options of a query.

Spark lower-cases keys, so letter case does not count. An unknown key is refused with the nearest names: a misspelt
option that is ignored is the worst kind of default. All problems are reported together. The options themselves are in
``connection_options.py``, ``reading/read_options.py`` and ``writing/write_options.py``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from enum import Flag, auto
from typing import Any, Final, NamedTuple, TypeVar

_RESERVED = frozenset({"path", "checkpointlocation", "queryname", "provider", "owner"})
_OF_TABLES = "option."
"""Keys that Spark adds: those of streams, and those of a table that ``CREATE TABLE .. USING`` makes."""

_NO_OPTIONS = (
    "the query has no options at all. Spark hands those of CREATE TABLE to no read and no write: use CREATE TEMPORARY "
    "VIEW .. USING pulsar OPTIONS (..), or SELECT .. FROM table WITH ('service.url' = '..', 'topic' = '..')"
)


_HIDDEN_KEY: Final = "token"
_NOT_SHOWN: Final = ("token:", "file:", "env:", "{", "tlsCertFile:", "tlsKeyFile:")
"""Prefixes of parameters without a secret, or redacted by Spark because of password, secret or url in JSON."""


class OptionError(ValueError):
    """One or several options cannot be used; the message lists every problem."""


class Purpose(Flag):
    """Kinds of queries."""

    BATCH_READ = auto()
    STREAM_READ = auto()
    BATCH_WRITE = auto()
    STREAM_WRITE = auto()
    READ = BATCH_READ | STREAM_READ
    WRITE = BATCH_WRITE | STREAM_WRITE
    ANY = READ | WRITE


_PURPOSE_TEXTS: Final = {
    Purpose.BATCH_READ: "batch reads",
    Purpose.STREAM_READ: "streams",
    Purpose.BATCH_WRITE: "batch writes",
    Purpose.STREAM_WRITE: "stream writes",
}


@dataclass(frozen=True)
class Option:
    """One option: its names, the reader of its value, the queries it applies to, its meaning.

    ``read`` raises ValueError. A ``secret`` is refused where Spark would show it.
    """

    name: str
    default: Any
    text: str
    read: Callable[[str], Any]
    aliases: tuple[str, ...]
    purpose: Purpose
    secret: bool


def option(
    default: Any,
    text: str,
    read: Callable[[str], Any] = str,
    *,
    name: str = "",
    aliases: tuple[str, ...] = (),
    purpose: Purpose = Purpose.ANY,
    secret: bool = False,
) -> Any:
    """Return a dataclass field that one option fills. Its name is the field's in camelCase, unless given.

    ``purpose`` limits the option within the purposes of its class.
    """
    declared = Option(name, default, text, read, aliases, purpose, secret)
    return field(default=default, repr=not secret, metadata={"option": declared})


def options_of(cls: type[Any]) -> dict[str, Option]:
    """Return the options of a dataclass by the fields that they fill, without those of its groups."""
    return {item.name: _named(item) for item in fields(cls) if "option" in item.metadata}


def _named(item: Field[Any]) -> Option:
    declared: Option = item.metadata["option"]
    first, *others = item.name.split("_")
    return declared if declared.name else replace(declared, name=first + "".join(map(str.capitalize, others)))


def option_group(make: type[Any], options: Mapping[str, Option], name: str) -> Any:
    """Return a dataclass field that several options fill: ``make`` gets their values, by the names in ``options``."""
    return field(default_factory=make, metadata={"name": name, "options": options, "make": make})


def option_name(cls: type[Any], field_name: str) -> str:
    """Return the name of the option or group that fills a field, for an error."""
    declared: Field[Any] = cls.__dataclass_fields__[field_name]
    return str(declared.metadata.get("name") or _named(declared).name)


def idle_options(cls: type[Any], needed: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield a problem for each option that is set, but has no effect without the condition that it needs."""
    for key, condition in needed.items():
        if key in values:
            yield f"{option_name(cls, key)} only counts with {condition}"


class OptionSlot(NamedTuple):
    """The place of an option's value: a field, or for a group an argument of the class that holds its values."""

    field: str
    argument: str
    option: Option


def option_slots(cls: type[Any]) -> Iterator[OptionSlot]:
    """Yield every option of a dataclass, also those of its groups."""
    for item in fields(cls):
        members = item.metadata["options"] if "options" in item.metadata else {"": _named(item)}
        for argument, member in members.items():
            yield OptionSlot(item.name, argument, member)


def read_values(cls: type[Any], mapping: Mapping[str, str], purpose: Purpose, problems: list[str]) -> dict[str, Any]:
    """Return the values of a query's options by the fields of ``cls``. Add unusable options to ``problems``."""
    slots = {key.lower(): slot for slot in option_slots(cls) for key in (slot.option.name, *slot.option.aliases)}
    values: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    if not mapping:
        problems.append(_NO_OPTIONS)
    seen: dict[str, tuple[str, str]] = {}
    for key, text in mapping.items():
        if key.lower() in _RESERVED or key.lower().startswith(_OF_TABLES):
            continue
        slot = slots.get(key.lower())
        problem = _problem(slot.option, key, text, purpose) if slot else f"unknown option {key!r}{_instead(key, slots)}"
        if problem is not None:
            problems.append(problem)
        elif slot is not None and _is_first(slot.option, key, text, seen, problems):
            into = groups.setdefault(slot.field, {}) if slot.argument else values
            try:
                into[slot.argument or slot.field] = slot.option.read(text)
            except Exception as error:  # noqa: BLE001 - every reader's complaint goes into the one list of problems
                problems.append(f"option {slot.option.name}: {error}")
    for item in fields(cls):
        if item.name in groups:
            try:
                values[item.name] = item.metadata["make"](**groups[item.name])
            except ValueError as error:
                problems.append(str(error))
    return values


def _problem(option: Option, key: str, text: str, purpose: Purpose) -> str | None:
    if not option.purpose & purpose:
        return f"option {option.name} does not apply to {_PURPOSE_TEXTS.get(purpose, 'this query')}"
    # Spark hides options whose key or value names a secret.
    if option.secret and _HIDDEN_KEY not in key.lower() and not text.startswith(_NOT_SHOWN):
        remedy = "name a file, file:///path, or write token:..., or JSON"
        return f"option {key}: Spark would show it in plans and pages: {remedy}"
    return None


def _is_first(option: Option, key: str, text: str, seen: dict[str, tuple[str, str]], problems: list[str]) -> bool:
    """Return True for the first of an option's names in a query. Another value under a second name is a problem."""
    earlier = seen.setdefault(option.name, (key, text))
    if earlier[1] != text:
        problems.append(f"options {earlier[0]} and {key} are the same and have different values")
    return earlier[0] == key


def _instead(key: str, slots: Mapping[str, OptionSlot]) -> str:
    replacement = replacement_of(key)
    if replacement is not None:
        return f": {replacement}"
    close = difflib.get_close_matches(key.lower(), slots, n=3, cutoff=0.6)
    names = list(dict.fromkeys(slots[name].option.name for name in close))
    return f"; did you mean {' or '.join(names)}?" if names else "; see docs/reference/spark-options.md"


Options = TypeVar("Options")


def build_options(cls: type[Options], values: Mapping[str, Any], problems: list[str]) -> Options:
    """Return the options as one value. Raise OptionError with all problems if there are any."""
    if "service_url" not in values and not any("service.url" in problem for problem in problems):
        problems.append("option service.url is required")
    if problems:
        raise OptionError("; ".join(problems))
    return cls(**values)


_OPERATION: Final = "give operationTimeoutMs"
_TASKS: Final = "set fetchBufferBytes, the memory of one task"
_LOOP: Final = "leave it out, a worker needs one thread for all connections"

_REPLACED: Final[Mapping[str, str]] = {
    # Pulsar's Java client
    "pulsar.client.requestTimeoutMs": _OPERATION,
    "pulsar.client.numIoThreads": _LOOP,
    "pulsar.client.numListenerThreads": _LOOP,
    "pulsar.client.connectionsPerBroker": _LOOP,
    "pulsar.client.useTls": "give service.url as pulsar+ssl://",
    "pulsar.client.tlsHostnameVerificationEnable": "it is always on; tlsAllowInsecureConnection=true trusts any host",
    "pulsar.client.tlsHostnameVerificationEnabled": "it is always on; tlsAllowInsecureConnection=true trusts any host",
    "pulsar.client.memoryLimitBytes": "give fetchBufferBytes to reads and maxPendingBytes to writes",
    "pulsar.client.statsIntervalSeconds": "leave it out, Spark's progress has the figures",
    "pulsar.client.authParamMap": "give pulsar.client.authParams",
    "pulsar.client.authToken": "give authToken or authTokenFile",
    "pulsar.client.enableTransaction": "leave it out, transactions are not written",
    "pulsar.admin.authToken": "give pulsar.admin.authParams",
    "pulsar.admin.requestTimeoutMs": _OPERATION,
    "pulsar.admin.readTimeoutMs": _OPERATION,
    "pulsar.admin.connectionTimeoutMs": "give connectionTimeoutMs",
    "pulsar.reader.topicName": "give topic",
    "pulsar.reader.topicNames": "give topics",
    "pulsar.reader.subscriptionName": "give predefinedSubscription, or subscriptionPrefix",
    "pulsar.reader.subscriptionNamePrefix": "give subscriptionPrefix",
    "pulsar.reader.startMessageId": "give startingOffsets",
    "pulsar.reader.startMessageFromRollbackDurationInSec": "give startingTime",
    "pulsar.reader.receiverQueueSize": _TASKS,
    "pulsar.reader.maxPendingChunkedMessage": _TASKS,
    "pulsar.producer.topicName": "give topic",
    "pulsar.producer.producerName": "give producerName",
    "pulsar.producer.batchingEnabled": "give batchingMaxMessages, 1 for no batches",
    "pulsar.producer.batchingMaxPublishDelayMicros": "leave it out, a batch ends with the rows of a task at the latest",
    "pulsar.producer.maxPendingMessages": "give maxPendingBytes",
    "pulsar.producer.maxPendingMessagesAcrossPartitions": "give maxPendingBytes",
    "pulsar.producer.chunkingEnabled": "leave it out, a value that is too large for the broker is refused",
    "pulsar.producer.initialSequenceId": "leave it out, it follows from deliveryGuarantee",
    # Spark's source and sink of Kafka
    "kafka.bootstrap.servers": "give service.url",
    "groupIdPrefix": "give subscriptionPrefix",
    "kafka.group.id": "give predefinedSubscription",
    "kafkaConsumer.pollTimeoutMs": "give pollTimeoutMs",
    "fetchOffset.numRetries": _OPERATION,
    "fetchOffset.retryIntervalMs": _OPERATION,
}

_BY_NAME: Final = {name.lower(): text for name, text in _REPLACED.items()}


def replacement_of(key: str) -> str | None:
    """Return advice on an unknown option, as the end of a sentence; None without advice."""
    advice = _BY_NAME.get(key.lower())
    if advice is None and key.lower().startswith("kafka."):
        return "this source reads Pulsar; settings of the connection begin with pulsar.client."
    return advice

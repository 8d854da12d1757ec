"""Options of other connectors and of Pulsar's Java client, and their replacements here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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

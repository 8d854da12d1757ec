"""Answers to lookups, as clients of a proxy need them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from interpulse.model.errors import ServiceNotReady
from interpulse.proxy.lookup.batches import answer_batch
from interpulse.proxy.lookup.questions import UNREACHABLE, Questions, ask
from interpulse.proxy.meter import ProxyMeter
from interpulse.serving.admission import LookupPermits
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.frames import encode_command


class Answers:
    """The answers to clients, a bounded number at once."""

    def __init__(self, permits: LookupPermits, meter: ProxyMeter) -> None:
        self._permits = permits
        self._meter = meter

    async def answer(self, questions: Questions, command: pb.BaseCommand) -> bytes:
        """Return the frame for one command of `QUESTIONS`. Raise PulsarError: TooManyRequests if no permit is left."""
        kind = command.type
        self._meter.requests[kind] += 1
        if kind == pb.BaseCommand.BATCH_LOOKUP:
            self._meter.batch_lookup_topics += len(command.batchLookupTopic.topics)
        if not self._permits.left:
            self._meter.rejected[kind] += 1
        with self._permits:
            try:
                return await _ANSWERS[kind](questions, command)
            except UNREACHABLE as error:
                raise ServiceNotReady(str(error)) from error


async def _lookup(questions: Questions, command: pb.BaseCommand) -> bytes:
    """Answer a lookup. Both addresses are the one that the proxy uses, as in Pulsar's proxy.

    The client connects to the proxy in any case, and names the broker by either address.
    """
    question = command.lookupTopic
    url = str(await questions.find(question))
    answer = commands.lookup_answer(broker_url=url, broker_url_tls=url, proxy_through_service_url=True)
    return answer.frame(question.request_id)


async def _partitions(questions: Questions, command: pb.BaseCommand) -> bytes:
    question = command.partitionMetadata
    answer = commands.partitioned_metadata_answer(await questions.partitions(question))
    return answer.frame(question.request_id)


async def _topics(questions: Questions, command: pb.BaseCommand) -> bytes:
    question = command.getTopicsOfNamespace
    answer = await ask(await questions.connection(), question)
    answer.getTopicsOfNamespaceResponse.request_id = question.request_id
    return encode_command(answer)


async def _schema(questions: Questions, command: pb.BaseCommand) -> bytes:
    question = command.getSchema
    answer = await ask(await questions.connection(), question)
    answer.getSchemaResponse.request_id = question.request_id
    return encode_command(answer)


async def _batch(questions: Questions, command: pb.BaseCommand) -> bytes:
    return await answer_batch(questions, command.batchLookupTopic)


_ANSWERS: Final[Mapping[int, Callable[[Questions, pb.BaseCommand], Awaitable[bytes]]]] = {
    pb.BaseCommand.LOOKUP: _lookup,
    pb.BaseCommand.PARTITIONED_METADATA: _partitions,
    pb.BaseCommand.GET_TOPICS_OF_NAMESPACE: _topics,
    pb.BaseCommand.GET_SCHEMA: _schema,
    pb.BaseCommand.BATCH_LOOKUP: _batch,
}

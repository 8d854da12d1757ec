"""LOOKUP and BATCH_LOOKUP, and runs of questions that are answered from memory where possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import TypeVar

from interpulse.broker.binary.transport.context import CommandConnection
from interpulse.broker.ownership.ownership import NO_OPTIONS, LookupOptions
from interpulse.broker.topics.lookup.lookup import BatchLookup
from interpulse.model.names import TopicName
from interpulse.rules.lookup import LookupFailure, LookupTarget
from interpulse.wire import commands
from interpulse.wire import pulsar_api_pb2 as pb
from interpulse.wire.codec import codec
from interpulse.wire.commands import AnswerTemplate
from interpulse.wire.frames import Frame, LookupRun, PartitionsRun

A = TypeVar("A")


def answer_from_cache(
    connection: CommandConnection,
    run: PartitionsRun | LookupRun,
    cached: Callable[[str], A | None],
    template: Callable[[A], AnswerTemplate],
) -> Sequence[Frame]:
    """Answer requests whose topic has a cached answer. Return the others as frames, for their handlers.

    Runs in one step of the event loop, in which no state of the broker changes: one topic has one answer, and no permit
    is taken. Answers nothing while authorization is on, since its filter may wait and comes first.
    """
    session = connection.session
    if not connection.context.permits.left or (session is not None and session.authorization is not None):
        return run.frames()
    encode = codec().encode_answers
    uncached: list[tuple[str, Sequence[int]]] = []
    for answer, same in groupby([(cached(topic[0]), topic) for topic in run.topics], key=itemgetter(0)):
        topics = [topic for _, topic in same]
        if answer is None:
            uncached += topics
        else:
            request_ids = list(chain.from_iterable(map(itemgetter(1), topics)))
            connection.output.send(encode(*template(answer), request_ids))
    return run._replace(topics=uncached).frames() if uncached else ()


def on_lookup_run(connection: CommandConnection, run: LookupRun) -> Sequence[Frame]:
    """Answer lookups from memory. The rest goes to `on_lookup`, which also refuses."""
    if run.authoritative:
        return run.frames()
    lookups = connection.context.lookups
    unknown = answer_from_cache(connection, run, lookups.cached, _answer)
    lookups.meter.note_instants(run.question_count - len(unknown))
    return unknown


async def on_lookup(connection: CommandConnection, request: pb.CommandLookupTopic) -> None:
    """Answer with the broker of a topic. Any topic of an existing namespace has one, also if it does not exist."""
    topic = TopicName.parse(request.topic)
    target = await connection.context.lookups.find(topic, _options(request))
    connection.output.send(_answer(target).frame(request.request_id))


def _answer(target: LookupTarget) -> commands.AnswerTemplate:
    return commands.lookup_answer(
        broker_url=target.service_url,
        broker_url_tls=target.service_url_tls,
        redirect=target.redirect,
        authoritative=target.authoritative,
        proxy_through_service_url=target.proxy_through_service_url,
    )


async def on_batch_lookup(connection: CommandConnection, request: pb.CommandBatchLookupTopic) -> None:
    session, refused = connection.session, None
    if session is not None and session.authorization is not None:
        refused = partial(session.authorization.refused_lookups, session.principal)
    batch = BatchLookup(
        request.topics,
        _options(request),
        create_if_missing=request.create_if_missing,
        expand_partitions=request.expand_partitions,
        refused=refused,
    )
    answer = await connection.context.lookups.find_many(batch)
    connection.output.send(
        commands.batch_lookup_response(
            request.request_id,
            groups=[_group(target, topics) for target, topics in answer.groups.items()],
            failures=map(_failure, answer.failures),
            partitions=answer.partitions,
        )
    )


def _options(request: pb.CommandLookupTopic | pb.CommandBatchLookupTopic) -> LookupOptions:
    authoritative, listener_name = request.authoritative, request.advertised_listener_name
    return LookupOptions(authoritative, listener_name) if authoritative or listener_name else NO_OPTIONS


def _group(target: LookupTarget, topics: list[str]) -> pb.BatchLookupGroup:
    kind = pb.CommandLookupTopicResponse.Redirect if target.redirect else pb.CommandLookupTopicResponse.Connect
    return pb.BatchLookupGroup(
        brokerServiceUrl=target.service_url or None,
        brokerServiceUrlTls=target.service_url_tls or None,
        response=kind,
        authoritative=target.authoritative,
        proxy_through_service_url=target.proxy_through_service_url,
        topicname=topics,
    )


def _failure(failure: LookupFailure) -> pb.BatchLookupFailure:
    error = pb.BatchLookupFailure(message=str(failure.error), topicname=failure.topics)
    error.error = failure.error.wire_code  # type: ignore[assignment]  # the numbers are the same
    return error

"""HTTP lookup: the broker of one topic or of many topics (PIP-35), and the bundle of a topic."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from interpulse.broker.ownership.ownership import LookupOptions
from interpulse.broker.rest.http.bodies import BATCH_LOOKUP
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json, answer_text
from interpulse.broker.topics.lookup.lookup import BatchLookup
from interpulse.model.errors import InvalidRequest, InvalidTopicName, NotFound, UnsupportedVersion
from interpulse.model.operations import Access, Lookups, Operation
from interpulse.rules.lookup import LookupFailure, LookupTarget

_LISTENER_HEADER: Final = "X-Pulsar-ListenerName"


async def look_up(call: Call) -> Answer:
    """Return the broker of a topic that exists or may be created. A non-persistent topic needs no record."""
    topic = call.topic
    call.context.lookups.check_ready()  # before reads, which wait while metadata is unavailable
    if topic.is_persistent:
        await call.context.lifecycle.check_servable(topic)
    options = LookupOptions(call.flag("authoritative"), _listener_name(call))
    target = await call.context.lookups.find(topic, options)
    return _redirect(call, target, options) if target.redirect else answer_json(_addresses(target))


async def refuse_older_name(call: Call) -> Answer:
    """Refuse a name of four parts, Pulsar's former form, or of an unknown domain."""
    raise InvalidTopicName("A topic is looked up as /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}")


async def look_up_many(call: Call) -> Answer:
    """Look up many topics. A valid request gets 200 with the result of each topic in groups and failures."""
    try:
        answer = await call.context.lookups.find_many(_batch(call))
    except UnsupportedVersion as error:  # on 404 clients ask topic by topic
        raise NotFound(str(error)) from error
    groups = [_group(target, topics) for target, topics in answer.groups.items()]
    failures = [_failure(failure) for failure in answer.failures]
    return answer_json({"groups": groups, "failures": failures, "partitions": answer.partitions})


async def get_bundle(call: Call) -> Answer:
    return answer_text(await call.context.lookups.bundle(call.topic))


def _batch(call: Call) -> BatchLookup:
    body = call.object(BATCH_LOOKUP)
    if "topics" not in body:
        raise InvalidRequest("topics must be an array of topic names")
    return BatchLookup(
        body["topics"],
        LookupOptions(body.get("authoritative", False), body.get("listenerName") or _listener_name(call)),
        create_if_missing=body.get("createIfMissing", True),
        expand_partitions=body.get("expandPartitions", False),
        refused=call.refused_lookups,
    )


def _listener_name(call: Call) -> str:
    return call.query.get("listenerName") or call.request_headers.get(_LISTENER_HEADER, "")


def _redirect(call: Call, target: LookupTarget, options: LookupOptions) -> Answer:
    query = {"authoritative": str(target.authoritative).lower()}
    if options.listener_name:
        query["listenerName"] = options.listener_name
    root = target.web_address(tls=call.tls)
    location = f"{root}/lookup/v2/topic/{call.topic.rest_path}?{urlencode(query)}"
    return Answer(307, headers={"Location": location})


def _addresses(target: LookupTarget) -> dict[str, Any]:
    """Return the addresses in Pulsar's form, without those that are not offered.

    The plain address and the old name of the TLS address are always included: C++ clients crash without them.
    """
    addresses = {
        "brokerId": target.broker_id,
        "brokerUrl": target.service_url,
        "brokerUrlTls": target.service_url_tls,
        "httpUrl": target.web_url,
        "httpUrlTls": target.web_url_tls,
        "nativeUrl": target.service_url,
    }
    offered = {key: url for key, url in addresses.items() if url or key == "brokerUrl"}
    return offered | {"brokerUrlSsl": target.service_url_tls}


def _group(target: LookupTarget, topics: list[str]) -> dict[str, Any]:
    response = "Redirect" if target.redirect else "Connect"
    return _addresses(target) | {"response": response, "authoritative": target.authoritative, "topics": topics}


def _failure(failure: LookupFailure) -> dict[str, Any]:
    error = failure.error
    return {
        "error": error.wire_code.name,
        "code": int(error.wire_code),
        "status": error.http_status,
        "reason": str(error),
        "topics": failure.topics,
    }


_OLDER: Final = "/lookup/v2/topic/{any_domain}/{tenant}/{cluster}/{namespace}/{any_topic}"
_OTHER_DOMAIN: Final = "/lookup/v2/topic/{any_domain}/{tenant}/{namespace}/{any_topic}"

ROUTES: Final = (
    Route(Lookups.FIND, look_up),
    Route(Operation("GET", _OLDER, Access.ANY_ROLE), refuse_older_name),
    Route(Operation("GET", f"{_OLDER}/bundle", Access.ANY_ROLE), refuse_older_name),
    Route(Operation("GET", _OTHER_DOMAIN, Access.ANY_ROLE), refuse_older_name),
    Route(Lookups.GET_BUNDLE, get_bundle),
    Route(Lookups.FIND_MANY, look_up_many),
)

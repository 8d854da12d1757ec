"""HTTP lookup: the broker of one topic or of many topics (PIP-35), and the bundle of a topic."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from interpulse.broker.ownership.ownership import LookupOptions
from interpulse.broker.rest.http.bodies import BATCH_LOOKUP
from interpulse.broker.rest.http.call import Answer, Call, Route, answer_json, answer_text
from interpulse.broker.rest.http.required_permissions import any_role, on_namespace, on_topic
from interpulse.broker.topics.lookup.lookup import BatchLookup
from interpulse.model.errors import InvalidRequest, InvalidTopicName, NotFound, UnsupportedVersion
from interpulse.model.permissions import NamespaceOperation, TopicOperation
from interpulse.model.strings import are_strings
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
    topics = body.get("topics")
    if not are_strings(topics):
        raise InvalidRequest("topics must be an array of topic names")
    listener_name = body.get("listenerName")
    if not isinstance(listener_name, str | None):
        raise InvalidRequest(f"listenerName must be a string or null, not {listener_name!r}")
    options = LookupOptions(_flag(body, "authoritative", False), listener_name or _listener_name(call))
    return BatchLookup(
        topics,
        options,
        create_if_missing=_flag(body, "createIfMissing", True),
        expand_partitions=_flag(body, "expandPartitions", False),
        refused=call.refused_lookups,
    )


def _flag(body: dict[str, Any], name: str, default: bool) -> bool:
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise InvalidRequest(f"{name} must be true or false, not {value!r}")
    return value


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


_TOPIC: Final = "/lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}"

_OLDER: Final = "/lookup/v2/topic/{any_domain}/{tenant}/{cluster}/{namespace}/{any_topic}"
_OTHER_DOMAIN: Final = "/lookup/v2/topic/{any_domain}/{tenant}/{namespace}/{any_topic}"

ROUTES: Final = (
    Route("GET", _TOPIC, look_up, on_topic(TopicOperation.LOOKUP)),
    Route("GET", _OLDER, refuse_older_name, any_role),
    Route("GET", f"{_OLDER}/bundle", refuse_older_name, any_role),
    Route("GET", _OTHER_DOMAIN, refuse_older_name, any_role),
    Route("GET", f"{_TOPIC}/bundle", get_bundle, on_namespace(NamespaceOperation.GET_BUNDLE)),
    Route("POST", "/lookup/v2/topics", look_up_many, any_role),
)

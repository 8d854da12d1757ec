"""From answers of brokers to errors; the texts are what Apache Pulsar 5.0.0-M1 sends."""

import json
import pickle

import pytest

from interpulse.client.transport.http_errors import HttpAnswer, error_for_response
from interpulse.model import errors
from interpulse.model.operations import Subject

PHRASES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    409: "Conflict",
    412: "Precondition Failed",
    422: "Unprocessable Entity",
    429: "Too Many Requests",
    500: "Server Error",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
HTML = (
    "<html><head><title>Error {0}</title></head><body><h2>HTTP ERROR {0}</h2><table>"
    "<tr><th>STATUS:</th><td>{0}</td></tr><tr><th>MESSAGE:</th><td>{1}</td></tr></table></body></html>"
)


def error(
    status: int, text: str, kind: Subject = "topic", content_type: str = "application/json"
) -> errors.PulsarError:
    answer = HttpAnswer(status, PHRASES[status], content_type, None, text)
    return error_for_response(answer, "GET /admin/v2/x", kind)


def reason(text: str) -> str:
    return json.dumps({"reason": text})


@pytest.mark.parametrize(
    ("status", "text", "kind", "cause"),
    [
        (404, "Topic persistent://a/b/c not found", "topic", errors.TopicNotFound),
        (404, "Partitioned Topic persistent://a/b/c not found", "topic", errors.TopicNotFound),
        (404, "Namespace does not exist", "topic", errors.NamespaceNotFound),
        (404, "Tenant does not exist", "namespace", errors.TenantNotFound),
        (404, "Cluster does not exist", "cluster", errors.ClusterNotFound),
        (404, "Subscription s not found for topic persistent://a/b/c", "topic", errors.SubscriptionNotFound),
        (404, "Schema not found", "schema", errors.SchemaNotFound),
        (404, "gone", "namespace", errors.NamespaceNotFound),
        (404, "gone", "broker", errors.NotFound),
        (409, "This topic already exists", "namespace", errors.AlreadyExists),
        (409, "Tenant already exist", "tenant", errors.AlreadyExists),
        (409, "The tenant still has active namespaces", "tenant", errors.NotEmpty),
        (409, "Found partitioned metadata for non-partitioned topic: x", "topic", errors.TopicInconsistent),
        (
            409,
            "Incompatible schema: exists schema type JSON, new schema type AVRO",
            "schema",
            errors.IncompatibleSchema,
        ),
        (409, "The topic has a max partition index of 2", "topic", errors.Conflict),
        (412, "Invalid topic name: x", "topic", errors.InvalidTopicName),
        (412, "Clusters do not exist", "tenant", errors.PreconditionFailed),
        (406, "Number of partitions should be more than 0", "topic", errors.PartitionCountAboveMaximum),
        (422, "Desired partitions 1 can't be less", "topic", errors.Unprocessable),
        (403, "Invalid cluster id: nope", "namespace", errors.Forbidden),
        (403, "Don't have permission to administrate resources", "namespace", errors.AuthorizationError),
        (401, "Authentication required", "namespace", errors.AuthenticationError),
        (405, "Broker doesn't allow forced deletion of namespaces", "namespace", errors.NotAllowed),
        (503, "no permits", "topic", errors.ServiceNotReady),
    ],
)
def test_error_when_reason_is_given_then_has_class_and_text(
    status: int, text: str, kind: Subject, cause: type[errors.PulsarError]
) -> None:
    found = error(status, reason(text), kind)
    assert type(found) is cause
    assert str(found) == text
    assert found.__notes__ == [f"HTTP {status} {PHRASES[status]}"]


def test_error_when_body_is_html_then_takes_its_message() -> None:
    found = error(409, HTML.format(409, "schema &lt;A&gt; is incompatible"), "schema", "text/html")
    assert type(found) is errors.IncompatibleSchema
    assert str(found) == "schema <A> is incompatible"


def test_error_when_web_server_answers_in_json_then_takes_its_message() -> None:
    found = error(409, '{"message":"Incompatible schema","url":"http://x","status":"409"}', "schema")
    assert str(found) == "Incompatible schema"


@pytest.mark.parametrize(
    ("status", "text", "content_type"),
    [
        (404, HTML.format(404, "Not Found"), "text/html"),
        (404, '{"message":"Not Found","status":"404"}', "application/json"),
        (405, "", "text/plain"),
    ],
)
def test_error_when_the_path_is_not_served_then_is_not_supported(status: int, text: str, content_type: str) -> None:
    found = error(status, text, "topic", content_type)
    assert type(found) is errors.NotSupported
    assert "GET /admin/v2/x" in str(found)


def test_error_when_body_is_plain_text_then_takes_it() -> None:
    found = error(400, "Unrecognized token 'abc'\n", "topic", "text/plain")
    assert (type(found), str(found)) == (errors.InvalidRequest, "Unrecognized token 'abc'")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"reason": null}'])
def test_error_when_no_reason_is_given_then_takes_the_status_line(text: str) -> None:
    assert str(error(500, text)) == "Server Error"


def test_error_when_status_line_is_bare_too_then_names_the_status() -> None:
    found = error_for_response(HttpAnswer(500, "", "", None, ""), "GET /x", "topic")
    assert str(found) == "HTTP status 500"


def test_error_when_reason_is_a_stack_trace_then_keeps_its_message() -> None:
    text = "\n --- An unexpected error occurred in the server ---\n\nMessage: it broke\n\nStacktrace:\n\nx.Y\n at z"
    assert str(error(500, reason(text))) == "it broke"


@pytest.mark.parametrize(("status", "retriable"), [(429, True), (503, True), (504, True), (404, False), (500, False)])
def test_error_when_asking_again_may_help_then_is_retriable(status: int, retriable: bool) -> None:
    assert error(status, reason("x")).retriable is retriable


def test_error_when_pickled_then_keeps_class_text_and_note() -> None:
    found = pickle.loads(pickle.dumps(error(404, reason("Topic x not found"))))
    assert (type(found), str(found), found.__notes__) == (
        errors.TopicNotFound,
        "Topic x not found",
        ["HTTP 404 Not Found"],
    )

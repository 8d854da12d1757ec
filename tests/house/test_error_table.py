"""The error catalogue against the protocol: every number is known, every class has one place, and errors travel."""

import inspect
import pickle

import pytest

from interpulse.model import errors
from interpulse.model.errors import PulsarError, ServerError, error_for_http_status, error_for_wire_code
from interpulse.wire import pulsar_api_pb2 as pb

CLASSES = sorted(
    (found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, PulsarError)),
    key=lambda found: found.__name__,
)


def test_numbers_when_compared_with_the_protocol_then_are_the_same() -> None:
    assert {member.name: member.value for member in ServerError} == dict(pb.ServerError.items())


@pytest.mark.parametrize("code", list(ServerError), ids=lambda code: code.name)
def test_number_when_it_comes_over_the_wire_then_has_a_class_that_says_so(code: ServerError) -> None:
    error = error_for_wire_code(code, "why")
    assert str(error) == "why"
    transactions = {20, 21, 23, 24}  # not offered, so they all mean the same to a caller
    assert isinstance(error, errors.NotSupported) if code in transactions else error.wire_code == code


def test_number_when_unknown_then_is_an_unknown_error() -> None:
    assert type(error_for_wire_code(999, "new")) is errors.UnknownError
    assert type(error_for_http_status(418, "tea")) is errors.UnknownError


@pytest.mark.parametrize("found", CLASSES)
def test_class_when_pickled_then_comes_back_with_its_sentence(found: type[PulsarError]) -> None:
    error = found("the topic is gone")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is found
    assert str(again) == "the topic is gone"


@pytest.mark.parametrize("found", CLASSES)
def test_class_when_read_then_is_exported_with_a_status(found: type[PulsarError]) -> None:
    assert found.__name__ in errors.__all__
    assert 400 <= found.http_status < 600


@pytest.mark.parametrize("status", [400, 401, 403, 404, 406, 409, 412, 422, 500, 501, 503])
def test_status_when_it_comes_from_a_broker_then_the_class_has_it(status: int) -> None:
    assert error_for_http_status(status, "why").http_status == status

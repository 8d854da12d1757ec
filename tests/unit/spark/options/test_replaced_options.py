"""Options of other connectors are refused with what to give instead."""

import pytest

from interpulse.spark.options.option import OptionError
from interpulse.spark.options.replaced_options import replacement_of
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.spark.writing.write_options import parse_write_options

URL = {"service.url": "pulsar://127.0.0.1:6650", "topic": "x"}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("kafka.bootstrap.servers", "unknown option 'kafka.bootstrap.servers': give service.url"),
        ("kafka.security.protocol", "settings of the connection begin with pulsar.client."),
        ("pulsar.client.useTls", r"give service\.url as pulsar\+ssl://"),
        ("PULSAR.READER.RECEIVERQUEUESIZE", "set fetchBufferBytes"),
    ],
)
def test_foreign_options_name_their_replacement(key, said):
    with pytest.raises(OptionError, match=said):
        parse_read_options({**URL, key: "1"})


def test_foreign_options_of_writes_name_their_replacement():
    with pytest.raises(OptionError, match="give batchingMaxMessages, 1 for no batches"):
        parse_write_options({**URL, "pulsar.producer.batchingEnabled": "false"})


def test_other_unknown_options_have_no_replacement():
    assert replacement_of("startOffsets") is None

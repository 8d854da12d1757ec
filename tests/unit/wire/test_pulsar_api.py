"""The generated module against its source and against bytes seen on real connections."""

import importlib.util
import pickle
from pathlib import Path
from types import ModuleType

from interpulse.wire import pulsar_api_pb2 as pb

REPOSITORY = Path(__file__).resolve().parents[3]


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_wire", REPOSITORY / "tools" / "generate_wire.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_files_when_compared_with_the_proto_then_are_current() -> None:
    for path, text in load_generator().generate().items():
        assert path.read_text() == text, f"run tools/generate_wire.py: {path.name} is out of date"


def test_every_command_type_has_exactly_one_field() -> None:
    types = {value.number for value in pb.BaseCommand.Type.DESCRIPTOR.values}
    fields = {field.number for field in pb.BaseCommand.DESCRIPTOR.fields} - {1}
    assert types == fields
    assert {1023, 1024} <= types


def test_ping_when_serialized_then_matches_the_bytes_of_real_peers() -> None:
    ping = pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing())
    assert ping.SerializeToString().hex() == "0812920100"


def test_defaults_when_nothing_is_set_then_are_those_of_pulsar() -> None:
    assert pb.CommandPartitionedTopicMetadata().metadata_auto_creation_enabled is True
    assert pb.CommandSubscribe().force_topic_creation is True
    assert pb.CommandSubscribe().durable is True
    assert pb.CommandProducerSuccess().last_sequence_id == -1
    assert pb.MessageIdData().batch_index == -1
    assert pb.CommandBatchLookupTopic().create_if_missing is True


def test_batch_lookup_flag_when_set_then_older_readers_skip_it() -> None:
    flags = pb.FeatureFlags(supports_batch_lookup=True)
    assert flags.SerializeToString().hex() == "f83f01"


def test_message_when_pickled_then_comes_back_equal() -> None:
    message_id = pb.MessageIdData(ledgerId=1, entryId=2)
    assert pickle.loads(pickle.dumps(message_id)) == message_id

"""Files of encryption keys, as values of options of reads and writes."""

from __future__ import annotations

import pytest

from interpulse.spark.options import option_values
from interpulse.spark.options.option import OptionError
from interpulse.spark.options.option_values import key_paths, parse_key_files
from interpulse.spark.reading.read_options import parse_read_options
from interpulse.spark.writing.write_options import parse_write_options

TARGET = {"service.url": "pulsar://x:1", "topic": "t"}
SEALED = {"encryptionKeys": "orders, returns", "encryptionPublicKey": "/keys/orders.pem"}


def test_key_files_when_one_or_several_then_are_read_by_name() -> None:
    assert parse_key_files("/keys/a.pem") == (("", "/keys/a.pem"),)
    several = parse_key_files('{"a": "/keys/a.pem", "b": "file:///keys/b.pem"}')
    assert several == (("a", "/keys/a.pem"), ("b", "file:///keys/b.pem"))
    assert key_paths(several) == {"a": "/keys/a.pem", "b": "file:///keys/b.pem"}
    assert key_paths(parse_key_files("/keys/a.pem")) == "/keys/a.pem"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no file"),
        ('{"a": ""}', "names no file"),
        ("{no json", "no JSON that names a file for each key"),
        ("data:application/x-pem-file;base64,AAAA", "a key would be visible in plans"),
        ('{"a": "-----BEGIN PRIVATE KEY-----"}', "a key would be visible in plans"),
    ],
)
def test_key_files_when_they_are_none_then_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_key_files(text)


def test_key_files_when_cryptography_is_missing_then_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(option_values, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"keys need cryptography as well: pip install 'interpulse\[encryption\]'"):
        parse_key_files("/keys/a.pem")


def test_options_when_given_by_the_names_of_pulsars_client_then_mean_the_same() -> None:
    given = {**TARGET, "pulsar.producer.encryptionKeys": "orders", "pulsar.producer.cryptoFailureAction": "SEND"}
    write = parse_write_options({**given, "encryptionPublicKey": "/k.pem"})
    assert (write.encryption_keys, write.crypto_failure_action) == (("orders",), "send")
    read = parse_read_options({**TARGET, "pulsar.reader.cryptoFailureAction": "DISCARD"})
    assert read.crypto_failure_action == "discard"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"encryptionKeys": "a"}, "encryptionKeys and encryptionPublicKey need each other"),
        ({"encryptionPublicKey": "/k"}, "encryptionKeys and encryptionPublicKey need each other"),
        ({"cryptoFailureAction": "send"}, "cryptoFailureAction only counts with encryptionKeys"),
        ({**SEALED, "mode": "entry"}, "encryptionKeys only counts with mode=message"),
        ({**SEALED, "deliveryGuarantee": "exactly-once"}, "encryptionKeys only counts with deliveryGuarantee=at-least"),
    ],
)
def test_write_when_its_options_contradict_each_other_then_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        parse_write_options({**TARGET, **options})


@pytest.mark.parametrize("name", ["encryptionPrivateKey", "cryptoFailureAction"])
def test_read_of_entries_when_given_keys_then_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"{name} only counts with mode=message"):
        parse_read_options({**TARGET, "mode": "entry", name: "fail"})

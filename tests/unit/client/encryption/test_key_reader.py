"""Keys by name."""

import base64
from pathlib import Path

import pytest

from interpulse.client import DefaultCryptoKeyReader
from interpulse.model.errors import CryptoError


def test_key_when_in_any_place_then_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a key.pem"
    file.write_bytes(b"KEY")
    url = "data:application/x-pem-file;base64," + base64.b64encode(b"KEY").decode()
    for place in (file, str(file), f"file://{tmp_path}/a%20key.pem", f"file:{file}", url):
        reader = DefaultCryptoKeyReader(place, {"k": place})
        assert reader.public_key("any", {}).key == reader.private_key("k", {}).key == b"KEY"


def test_key_when_it_is_missing_then_the_error_names_it(tmp_path: Path) -> None:
    reader = DefaultCryptoKeyReader({"other": "x"}, tmp_path / "gone.pem")
    with pytest.raises(CryptoError, match="there is no public key 'k': name its file in public_keys"):
        reader.public_key("k", {})
    with pytest.raises(CryptoError, match=r"key 'k' cannot be read from .*gone.pem: No such file"):
        reader.private_key("k", {})
    with pytest.raises(CryptoError, match="key 'k' is not base64"):
        DefaultCryptoKeyReader("data:,%%").public_key("k", {})


def test_reader_when_shown_then_keeps_private_keys_to_itself() -> None:
    assert "secret" not in repr(DefaultCryptoKeyReader("file", "data:;base64,secret"))

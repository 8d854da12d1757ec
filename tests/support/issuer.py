"""An issuer of OpenID Connect for tests: discovery, its keys, and tokens for clients that bring a secret."""

from __future__ import annotations

import json
import ssl
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm

from tests.support.stub_web import Answer, Asked, StubWeb

AUDIENCE: Final = "urn:pulsar"
SECRET_WORD: Final = "client-secret"
"""Of every client."""


class Issuer:
    """Issues tokens whose role is the client's id. ``kid`` names its key; `rotate` makes another one. ``issued`` are
    the tokens that it gave to clients."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._web = StubWeb(tls, otherwise=self._answer)
        self.url = self._web.url
        self.kid = "first"
        self.lifetime_seconds = 3600
        self.reachable = True
        self.issued: list[str] = []
        self._keys = {self.kid: ec.generate_private_key(ec.SECP256R1())}

    def __enter__(self) -> Self:
        self._web.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._web.__exit__(kind, error, trace)

    def asked(self, path: str) -> int:
        """How often a document was asked for."""
        return sum(each.target == path for each in self._web.asked)

    def rotate(self, kid: str) -> None:
        """Sign by another key from now on, and publish no other."""
        self.kid = kid
        self._keys = {kid: ec.generate_private_key(ec.SECP256R1())}

    def token(self, role: str, **claims: Any) -> str:
        """A token with these claims in place of the right ones; None leaves one out."""
        now = int(time.time())
        right = {"iss": self.url, "aud": AUDIENCE, "iat": now, "nbf": now, "exp": now + self.lifetime_seconds}
        said = {name: value for name, value in (right | {"sub": role} | claims).items() if value is not None}
        return jwt.encode(said, self._keys[self.kid], algorithm="ES256", headers={"kid": self.kid})

    @property
    def public_key(self) -> bytes:
        """The key that it signs by now, in DER form."""
        return self._keys[self.kid].public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    def key_file(self, path: Path, client_id: str, *, secret: str = SECRET_WORD) -> Path:
        """The file of a client, as issuers hand it out."""
        path.write_text(
            json.dumps(
                {
                    "type": "client_credentials",
                    "client_id": client_id,
                    "client_secret": secret,
                    "client_email": f"{client_id}@example.org",
                    "issuer_url": self.url,
                }
            )
        )
        return path

    def _answer(self, asked: Asked) -> Answer:
        if not self.reachable:
            return Answer(503, b"", {})
        if asked.target == "/.well-known/openid-configuration":
            return _json({"issuer": self.url, "jwks_uri": f"{self.url}/jwks", "token_endpoint": f"{self.url}/token"})
        if asked.target == "/jwks":
            return _json({"keys": [_described(kid, key) for kid, key in self._keys.items()]})
        if asked.target == "/token":
            return self._issue(asked)
        return Answer(404, b"", {})

    def _issue(self, asked: Asked) -> Answer:
        form = {name: values[0] for name, values in parse_qs(str(asked.body)).items()}
        if form.get("client_secret") != SECRET_WORD or form.get("grant_type") != "client_credentials":
            return _json({"error": "invalid_client", "error_description": "the secret is wrong"}, 401)
        token = self.token(form["client_id"], aud=form.get("audience", AUDIENCE))
        self.issued.append(token)
        return _json({"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime_seconds})


def _described(kid: str, key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    return {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig", "alg": "ES256"}


def _json(document: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(document).encode(), {"Content-Type": "application/json"})

"""TLS of a program's services: versions 1.2 and 1.3, certificate and key from PEM files.

Files that changed count from the next connection on; connections that are open stay as they are. A new context is made
for them, so that nobody resumes a session of the earlier one, whose authority may be trusted no more.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from interpulse.rules.tls import TlsOffer, expiry_notice
from interpulse.serving.listening import CannotListen

__all__ = ["ExpiryLog", "ServerTls", "TlsListener", "UnusableTls"]

_logger = logging.getLogger(__name__)

_CERTIFICATE_MARK: Final = b"-----BEGIN CERTIFICATE-----"
_KEY_MARK: Final = b"PRIVATE KEY-----"
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_HANDSHAKE_SECONDS: Final = 10.0
"""As Pulsar's; who has not finished by then is disconnected."""
_LOG_SECONDS: Final = 10.0


class UnusableTls(CannotListen):
    """Files of certificates cannot be used; ``str()`` names the key, the file and the remedy."""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The certificate of a service, and whose it accepts. Messages name the settings by Pulsar's keys."""

    certificate_path: str
    key_path: str
    trust_certs_path: str = ""
    """Authorities of clients: a certificate that a client shows has to be of theirs. Empty = clients are not asked."""
    client_certificate_required: bool = False
    offer: TlsOffer = field(default_factory=TlsOffer)

    def contents(self) -> tuple[bytes, ...]:
        """The files as they are now; raises UnusableTls for one that is missing, not readable, or of another kind."""
        return (
            _content("tlsCertificateFilePath", self.certificate_path, _CERTIFICATE_MARK),
            _content("tlsKeyFilePath", self.key_path, _KEY_MARK),
            *(
                [_content("tlsTrustCertsFilePath", self.trust_certs_path, _CERTIFICATE_MARK)]
                if self.trust_certs_path
                else []
            ),
        )

    def context(self) -> ssl.SSLContext:
        """Read the files; raises UnusableTls."""
        self.contents()
        context = _ServerContext(ssl.PROTOCOL_TLS_SERVER)
        versions = [_VERSIONS[version] for version in self.offer.versions]
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        context.options |= ssl.OP_NO_RENEGOTIATION
        if self.offer.ciphers:
            context.set_ciphers(":".join(self.offer.ciphers))
        self._load_certificate(context)
        if self.trust_certs_path:
            self._load_authorities(context)
        return context

    def expiry(self, now: float) -> str | None:
        """What to say of the certificate's end, ``now`` in seconds since 1970; None while it is far away."""
        try:
            from cryptography import x509  # a proxy may be installed without
        except ImportError:
            return None
        try:
            chain = x509.load_pem_x509_certificates(Path(self.certificate_path).read_bytes())
        except (OSError, ValueError):  # what speaks TLS with it has said so
            return None
        notice = expiry_notice(min(each.not_valid_after_utc for each in chain).timestamp() - now)
        return notice and f"tlsCertificateFilePath={self.certificate_path} {notice}"

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        def refuse_password() -> str:  # without it OpenSSL would ask for one at the terminal
            raise UnusableTls(
                f"tlsKeyFilePath={self.key_path} is protected by a password: store it without one, readable by this "
                f"user alone (openssl pkey -in {self.key_path} -out FILE)"
            )

        try:
            context.load_cert_chain(self.certificate_path, self.key_path, refuse_password)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or str(error)
            if "MISMATCH" in reason:
                raise UnusableTls(
                    f"tlsKeyFilePath={self.key_path} does not belong to tlsCertificateFilePath="
                    f"{self.certificate_path}: name the two files that were made together"
                ) from error
            raise UnusableTls(
                f"tlsCertificateFilePath={self.certificate_path} and tlsKeyFilePath={self.key_path} cannot be used: "
                f"{reason}; replace the file that is damaged"
            ) from error

    def _load_authorities(self, context: ssl.SSLContext) -> None:
        try:
            context.load_verify_locations(self.trust_certs_path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or str(error)
            raise UnusableTls(
                f"tlsTrustCertsFilePath={self.trust_certs_path} cannot be used: {reason}; name a PEM file of the "
                "authorities that sign the certificates of clients"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED if self.client_certificate_required else ssl.CERT_OPTIONAL


class TlsListener:
    """Listens inside TLS on one bound socket, which it owns from now on."""

    def __init__(
        self,
        tls: ServerTls,
        bound: socket.socket,
        new_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        backlog: int,
    ) -> None:
        self._tls = tls
        self._bound = bound
        self._new_protocol = new_protocol
        self._backlog = backlog
        self._contents: tuple[bytes, ...] = ()
        self._server: asyncio.Server | None = None
        self._closed = False

    async def start(self) -> None:
        """Listen. Raises UnusableTls."""
        contents = self._tls.contents()
        await self._listen(self._tls.context())
        self._contents = contents

    async def refresh(self) -> None:
        """New connections get the certificates that the files hold now.

        While these cannot be used, they may be half replaced, the earlier ones stay; the next call tries again.
        """
        try:
            contents = await asyncio.to_thread(self._tls.contents)
            if contents != self._contents:
                context = await asyncio.to_thread(self._tls.context)
                if self._closed:
                    return
                await self._listen(context)
                self._contents = contents
                _logger.info("certificates renewed file=%s", self._tls.certificate_path)
        except UnusableTls as error:
            _logger.warning("certificate files cannot be used, the earlier ones stay in use error=%s", error)

    def close(self) -> None:
        """Accept no more; connections stay."""
        self._closed = True
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self._bound.close()

    async def _listen(self, context: ssl.SSLContext) -> None:
        """A second server on the same socket takes the place of the first, so that no connect is refused meanwhile."""
        loop, again = asyncio.get_running_loop(), self._bound.dup()
        server = await loop.create_server(
            self._new_protocol,
            sock=again,
            ssl=context,
            backlog=self._backlog,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
        )
        if self._closed:  # meanwhile
            server.close()
            return
        earlier, self._server = self._server, server
        if earlier is not None:
            await _retire(earlier)


async def _retire(server: asyncio.Server) -> None:
    """Close a server without loss: asyncio drops a connection that is accepted in the turn of the loop that closes its
    server. The loop stops to accept, and has a turn for what it accepted.
    """
    loop = asyncio.get_running_loop()
    for each in server.sockets:
        loop.remove_reader(each.fileno())
    await asyncio.sleep(0)
    server.close()


class ExpiryLog:
    """Warns of the end of a certificate while it is near: once a day, and of each new one."""

    def __init__(self, tls: ServerTls, *, now: Callable[[], float] = time.time) -> None:
        """``now`` gives seconds since 1970."""
        self._tls = tls
        self._now = now
        self._told: str | None = None

    def look(self) -> None:
        """Look at the certificate, and log what is to be said if it is not what was said before."""
        notice = self._tls.expiry(self._now())
        if notice and notice != self._told:
            remedy = "replace the file and its key; they are read again without a restart"
            _logger.warning("certificate ends reason=%s remedy=%s", notice, remedy)
        self._told = notice


class _Handshake(ssl.SSLObject):
    """Sends the alert that says why a handshake failed, which the event loop leaves out, and tells the context of it.

    The loop writes what waits when more input is asked for. The client then hangs up, or is disconnected as one that
    does not finish.
    """

    outgoing: ssl.MemoryBIO
    failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self.failure is not None:
            raise self.failure
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            self.failure = error
            if isinstance(self.context, _ServerContext):
                self.context.note(error)
            if self.outgoing.pending:
                raise ssl.SSLWantReadError from error
            raise


class _ServerContext(ssl.SSLContext):
    """Logs handshakes that fail: the newest, with their number, once in ten seconds at most."""

    sslobject_class = _Handshake
    _failed = 0
    _logged_at = float("-inf")

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any) -> ssl.SSLObject:
        wrapped = super().wrap_bio(incoming, outgoing, *args, **options)
        assert isinstance(wrapped, _Handshake)
        wrapped.outgoing = outgoing
        return wrapped

    def note(self, error: ssl.SSLError) -> None:
        """Count a failure, and log it if none was logged for a while."""
        self._failed += 1
        now = time.monotonic()
        if now >= self._logged_at + _LOG_SECONDS:
            reason = getattr(error, "verify_message", None) or error.reason or error
            _logger.warning("TLS handshake failed reason=%s count=%d", str(reason).lower(), self._failed)
            self._failed, self._logged_at = 0, now


def _content(setting: str, path: str, mark: bytes) -> bytes:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UnusableTls(
            f"{setting}={path} cannot be read: {error.strerror}; the file has to be there and readable by the user "
            "of this program"
        ) from error
    if mark not in content:
        raise UnusableTls(f"{setting}={path} is not in PEM format: name a PEM file")
    return content

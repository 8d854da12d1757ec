"""TLS of a program's services: versions 1.2 and 1.3, certificate and key from PEM files.

Changed files are used from the next connection on; open connections are not affected. Changed files get a new context,
so that no client resumes a session of the earlier one, whose authority may no longer be trusted.
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

_logger = logging.getLogger(__name__)

_CERTIFICATE_MARK: Final = b"-----BEGIN CERTIFICATE-----"
_KEY_MARK: Final = b"PRIVATE KEY-----"
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_BACKLOG: Final = 1024
_HANDSHAKE_SECONDS: Final = 10.0
"""Time limit of a handshake, as in Pulsar. The connection is then closed."""
_LOG_SECONDS: Final = 10.0


class UnusableTls(CannotListen):
    """Failure to use certificate files. ``str()`` names the key, the file and the remedy."""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """Certificate of a service, and the client certificates that it accepts.

    Messages name the settings by Pulsar's keys.
    """

    certificate_path: str
    key_path: str
    trust_certs_path: str = ""
    """Trusted authorities of client certificates. Empty = no client certificate is requested."""
    client_certificate_required: bool = False
    offer: TlsOffer = field(default_factory=TlsOffer)

    def contents(self) -> tuple[bytes, ...]:
        """Return the current files. Raise UnusableTls for one that is missing, not readable, or of another kind."""
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
        """Read the files and return a context. Raise UnusableTls."""
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
        """Return a notice about the certificate's expiry; None while it is far away.

        ``now`` is in seconds since 1970.
        """
        try:
            from cryptography import x509  # a proxy may be installed without
        except ImportError:
            return None
        try:
            chain = x509.load_pem_x509_certificates(Path(self.certificate_path).read_bytes())
        except (OSError, ValueError):  # TLS reports unusable files
            return None
        notice = expiry_notice(min(certificate.not_valid_after_utc for certificate in chain).timestamp() - now)
        return notice and f"tlsCertificateFilePath={self.certificate_path} {notice}"

    def _load_certificate(self, context: ssl.SSLContext) -> None:
        def refuse_password() -> str:  # otherwise OpenSSL asks for one at the terminal
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
    """Listener with TLS on one bound socket, which it owns from now on."""

    def __init__(
        self, tls: ServerTls, bound: socket.socket, new_protocol: Callable[[], asyncio.BaseProtocol], *, backlog: int
    ) -> None:
        self._tls = tls
        self._bound = bound
        self._new_protocol = new_protocol
        self._backlog = backlog
        self._contents: tuple[bytes, ...] = ()
        self._server: asyncio.Server | None = None
        self._closed = False

    async def start(self) -> None:
        """Start listening. Raise UnusableTls."""
        contents = self._tls.contents()
        await self._listen(self._tls.context())
        self._contents = contents

    async def refresh(self) -> None:
        """Use the current certificate files for new connections.

        While they cannot be used, perhaps because only one is replaced yet, the earlier ones remain. The next call
        tries again.
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
        """Stop accepting. Open connections remain."""
        self._closed = True
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self._bound.close()

    async def _listen(self, context: ssl.SSLContext) -> None:
        """Replace the server by a second one on the same socket, so that no connection is refused in between."""
        loop, again = asyncio.get_running_loop(), self._bound.dup()
        server = await loop.create_server(
            self._new_protocol, sock=again, ssl=context, backlog=self._backlog, ssl_handshake_timeout=_HANDSHAKE_SECONDS
        )
        if self._closed:  # closed meanwhile
            server.close()
            return
        earlier, self._server = self._server, server
        if earlier is not None:
            await _retire(earlier)


class ListeningSockets:
    """The sockets of one service, with and without TLS, on which it accepts clients."""

    def __init__(self, new_protocol: Callable[[], asyncio.BaseProtocol]) -> None:
        self._new_protocol = new_protocol
        self._servers: list[asyncio.Server | TlsListener] = []

    async def listen(self, bound: socket.socket, tls: ServerTls | None = None) -> None:
        """Listen on a bound socket, which this object owns from now on; inside ``tls`` if given. Raise UnusableTls."""
        if tls is None:
            loop = asyncio.get_running_loop()
            self._servers.append(await loop.create_server(self._new_protocol, sock=bound, backlog=_BACKLOG))
        else:
            listener = TlsListener(tls, bound, self._new_protocol, backlog=_BACKLOG)
            self._servers.append(listener)
            await listener.start()

    async def refresh(self) -> None:
        """Give new connections the current certificates of the files; see `TlsListener.refresh`."""
        for server in self._servers:
            if isinstance(server, TlsListener):
                await server.refresh()

    def close(self) -> None:
        """Accept no more clients; the connected ones stay."""
        for server in self._servers:
            server.close()


async def _retire(server: asyncio.Server) -> None:
    """Close a server without losing connections.

    asyncio drops a connection that is accepted in the same turn of the loop in which its server closes. Therefore the
    loop first stops accepting, and runs a turn for those accepted.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
    server.close()


class ExpiryLog:
    """Warnings about a certificate that expires soon: once a day, and for each new one."""

    def __init__(self, tls: ServerTls, *, now: Callable[[], float] = time.time) -> None:
        """Create the log. ``now`` returns seconds since 1970."""
        self._tls = tls
        self._now = now
        self._told: str | None = None

    def look(self) -> None:
        """Check the certificate, and log its notice if it differs from the last one."""
        notice = self._tls.expiry(self._now())
        if notice and notice != self._told:
            remedy = "replace the file and its key; they are read again without a restart"
            _logger.warning("certificate ends reason=%s remedy=%s", notice, remedy)
        self._told = notice


class _Handshake(ssl.SSLObject):
    """Protocol that sends the TLS alert of a failed handshake and reports the failure to the context.

    The event loop omits the alert. It writes pending data when it asks for more input. The client then disconnects, or
    is disconnected as one that does not finish.
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
    """Context that logs failed handshakes: the latest with their number, at most once in ten seconds."""

    sslobject_class = _Handshake
    _failed = 0
    _logged_at = float("-inf")

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **options: Any) -> ssl.SSLObject:
        wrapped = super().wrap_bio(incoming, outgoing, *args, **options)
        assert isinstance(wrapped, _Handshake)
        wrapped.outgoing = outgoing
        return wrapped

    def note(self, error: ssl.SSLError) -> None:
        """Count a failure, and log it if none was logged recently."""
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

"""Encrypted connections: the trusted certificates, and the client's own.

Certificates and keys are named by their files and read where a connection needs them, so the values here can be sent
to another process and shown, and a renewed certificate counts from the next connection on.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import socket
import ssl
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from interpulse.model.errors import CertificateError, PulsarError

if TYPE_CHECKING:
    from interpulse.client.credentials import Credentials

__all__ = ["KeptContext", "TlsOptions"]

_logger = logging.getLogger(__name__)

_CERTIFICATE_MARK: Final = b"-----BEGIN CERTIFICATE-----"
_KEY_MARK: Final = b"PRIVATE KEY-----"
_ALERTS: Final = re.compile(
    "_ALERT_(BAD_CERTIFICATE|CERTIFICATE_[A-Z]+|UNSUPPORTED_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|DECRYPT_ERROR"
    "|HANDSHAKE_FAILURE|INTERNAL_ERROR)$"
)
"""What servers end a handshake with when they do not like the client's certificate, or miss one; the last two come from
Pulsar's binary port, where a certificate of a stranger is an internal error."""

_BROKEN: Final = (errno.EPIPE, errno.ECONNRESET)
_LISTEN_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """How to check the certificate of an encrypted address, and what to show there. The defaults check everything."""

    trust_certs_path: str | None = None
    insecure_allowed: bool = False
    hostname_verified: bool = True
    certificate_path: str | None = None
    """The client's own certificate (PEM, with those that lead to a trusted one), shown to servers that ask for it."""
    key_path: str | None = None
    """The key of the certificate (PEM, without a password)."""

    def context(self) -> ssl.SSLContext:
        """Read the files. Raises CertificateError for the client's own, PulsarError for the trusted ones."""
        try:
            context = ssl.create_default_context(cafile=self.trust_certs_path)
        except OSError as error:
            raise PulsarError(f"cannot use the trusted certificates {self.trust_certs_path}: {error}") from error
        if self.insecure_allowed or not self.hostname_verified:
            context.check_hostname = False
        if self.insecure_allowed:
            context.verify_mode = ssl.CERT_NONE
        if self.certificate_path or self.key_path:
            self._show_certificate(context)
        return context

    def showing(self, credentials: Credentials | None, url: str) -> TlsOptions:
        """These options with the certificate that the credentials consist of, if they do.

        Raises ValueError if they do and there is none, or if ``url`` is no address to show a certificate at.
        """
        if credentials is None or credentials.method != "tls":
            return self
        if not url.startswith(("https:", "pulsar+ssl:")):
            raise ValueError("authentication by TLS needs an encrypted address: https://... or pulsar+ssl://...")
        own = credentials.certificate
        shown = self if own is None else replace(self, certificate_path=own[0], key_path=own[1])
        if not shown.certificate_path:
            raise ValueError(
                "authentication by TLS needs a certificate and its key: give tlsCertFile:/path,tlsKeyFile:/path as "
                "authentication parameters"
            )
        return shown

    def modified(self) -> tuple[tuple[int, int] | None, ...]:
        """Which content the named files have now; another value means that `context` would make another context."""
        return tuple(_stamp(path) for path in (self.trust_certs_path, self.certificate_path, self.key_path))

    def refusal(self, address: str, error: BaseException | None) -> CertificateError | None:
        """What an error of a connection says about the certificate that was shown there; None if it is about another
        matter."""
        reason = getattr(error, "reason", None)
        if not isinstance(error, ssl.SSLError) or not isinstance(reason, str):
            return None
        alert = _ALERTS.search(reason)
        if alert is None or (alert[1] == "INTERNAL_ERROR" and not self.certificate_path):
            return None
        said = alert[1].lower().replace("_", " ")
        if not self.certificate_path:
            doubt = ", or has no cipher in common with this client" if alert[1] == "HANDSHAKE_FAILURE" else ""
            return CertificateError(
                f"{address} asks for a client certificate and none is configured{doubt} ({said}): name the files of a "
                "certificate and its key"
            )
        return CertificateError(
            f"{address} refuses the client certificate {self.certificate_path} ({said}): see that it has not expired "
            "and is signed by an authority that is trusted there"
        )

    async def unheard_refusal(
        self, address: str, host: str, port: int, error: BaseException | None
    ) -> CertificateError | None:
        """The same for a connection that broke while it was written to, which loses the last bytes of the server.

        Another connection sends nothing and reads, for two seconds at most.
        """
        if not isinstance(error, OSError) or error.errno not in _BROKEN:
            return None
        try:
            await asyncio.to_thread(self._listen, host, port)
        except OSError as heard:
            return self.refusal(address, heard)
        return None

    def _listen(self, host: str, port: int) -> None:
        """Raises the server's refusal; TimeoutError if it only waits for the first bytes of the client."""
        with (
            socket.create_connection((host, port), _LISTEN_S) as plain,
            self.context().wrap_socket(plain, server_hostname=host) as encrypted,
        ):
            encrypted.recv(1)

    def _show_certificate(self, context: ssl.SSLContext) -> None:
        certificate, key = self.certificate_path, self.key_path
        if not certificate:
            raise CertificateError(f"the key {key} is configured without its certificate: name the certificate's file")
        if not key:
            raise CertificateError(f"the certificate {certificate} is configured without its key: name the key's file")
        _check_file("certificate", certificate, _CERTIFICATE_MARK)
        _check_file("key", key, _KEY_MARK)

        def refuse_password() -> str:  # without it OpenSSL would ask for one at the terminal
            raise CertificateError(
                f"the key {key} is protected by a password: store it without one, readable by this user alone (openssl "
                f"pkey -in {key} -out FILE)"
            )

        try:
            context.load_cert_chain(certificate, key, refuse_password)
        except ssl.SSLError as error:
            if "MISMATCH" in (error.reason or ""):
                raise CertificateError(
                    f"the key {key} does not belong to the certificate {certificate}: name the two files that were "
                    "made together"
                ) from error
            raise CertificateError(
                f"the certificate {certificate} and the key {key} cannot be used: {error.reason or error}; replace the "
                "file that is damaged"
            ) from error


class KeptContext:
    """The context of options, made anew when one of their files was replaced: making one reads all trusted certificates
    and takes tens of milliseconds. Connections that are open stay as they are.
    """

    def __init__(self, options: TlsOptions) -> None:
        self._options = options
        self._context: ssl.SSLContext | None = None
        self._modified: object = None

    def current(self) -> ssl.SSLContext:
        """Raises what `TlsOptions.context` does, for the first context only.

        While new files cannot be used, they may be half replaced, the earlier context stays; the next call tries again.
        """
        modified = self._options.modified()
        if self._context is None or modified != self._modified:
            try:
                self._context, self._modified = self._options.context(), modified
            except PulsarError as error:
                if self._context is None:
                    raise
                _logger.warning("certificate files cannot be read, the earlier ones stay in use error=%s", error)
        return self._context


def _check_file(what: str, path: str, mark: bytes) -> None:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CertificateError(
            f"the {what} {path} cannot be read: {error.strerror}; it has to be there, readable, on every machine that "
            "connects"
        ) from error
    if mark not in content:
        raise CertificateError(f"the {what} {path} is not in PEM format: name a PEM file")


def _stamp(path: str | None) -> tuple[int, int] | None:
    """Inode and time of change; None for no file."""
    if not path:
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns

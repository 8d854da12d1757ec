"""TLS connections: trusted certificates and the client's own.

Certificates and keys are named by their files and read when a connection needs them. The values here can be sent to
another process and logged, and a renewed certificate is used from the next connection on.
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

_logger = logging.getLogger(__name__)

_CERTIFICATE_MARK: Final = b"-----BEGIN CERTIFICATE-----"
_KEY_MARK: Final = b"PRIVATE KEY-----"
_ALERTS: Final = re.compile(
    "_ALERT_(BAD_CERTIFICATE|CERTIFICATE_[A-Z]+|UNSUPPORTED_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|DECRYPT_ERROR"
    "|HANDSHAKE_FAILURE|INTERNAL_ERROR)$"
)
"""Alerts of servers that refuse or miss the client's certificate.

The last two come from Pulsar's binary port, where an untrusted certificate is an internal error.
"""

_BROKEN: Final = (errno.EPIPE, errno.ECONNRESET)
_LISTEN_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Certificate checks and the client's own certificate. The defaults check everything."""

    trust_certs_path: str | None = None
    insecure_allowed: bool = False
    hostname_verified: bool = True
    certificate_path: str | None = None
    """Client certificate (PEM, with intermediate certificates), presented to servers that request one."""
    key_path: str | None = None
    """Key of the client certificate (PEM, without a password)."""

    def context(self) -> ssl.SSLContext:
        """Read the files and return a context.

        Raise CertificateError for the client's own files, PulsarError for the trusted certificates.
        """
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
        """Return these options with the certificate of the credentials, if the method is TLS.

        Raise ValueError if there is no certificate then, or if ``url`` is not encrypted.
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
        """Return the state of the named files. If it changes, `context` would return a different context."""
        return tuple(_stamp(path) for path in (self.trust_certs_path, self.certificate_path, self.key_path))

    def refusal(self, address: str, error: BaseException | None) -> CertificateError | None:
        """Return the server's reason for refusing the client certificate; None for any other connection error."""
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
        """Return the server's reason after a connection that broke during a write, which loses the server's last bytes.

        Open another connection that sends nothing and reads, for at most two seconds.
        """
        if not isinstance(error, OSError) or error.errno not in _BROKEN:
            return None
        try:
            await asyncio.to_thread(self._listen, host, port)
        except OSError as heard:
            return self.refusal(address, heard)
        return None

    def _listen(self, host: str, port: int) -> None:
        """Raise the server's refusal. Raise TimeoutError if the server only waits for the client's first bytes."""
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
    """Cached context of options, created again when one of their files is replaced.

    Creating one reads all trusted certificates, which takes tens of milliseconds. Open connections are not affected.
    """

    def __init__(self, options: TlsOptions) -> None:
        self._options = options
        self._context: ssl.SSLContext | None = None
        self._modified: object = None

    def current(self) -> ssl.SSLContext:
        """Return the context. Raise the errors of `TlsOptions.context`, for the first context only.

        While new files cannot be used, perhaps because only one is replaced yet, the earlier context remains. The next
        call tries again.
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
    """Return inode and modification time of a file; None if it does not exist."""
    if not path:
        return None
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns

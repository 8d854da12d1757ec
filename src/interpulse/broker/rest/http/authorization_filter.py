"""The admission of calls to their handlers: none from another site's pages, none without permission."""

from __future__ import annotations

from collections.abc import Mapping

from interpulse.authentication.authentication import PeerCertificate
from interpulse.broker.access.setup import Access
from interpulse.broker.rest.http.call import Call, Route
from interpulse.broker.rest.http.required_permissions import open_to_all
from interpulse.broker.rest.http.routing import MethodNotAllowed, Router
from interpulse.model.errors import NotFound
from interpulse.serving.web_pages import KnownHosts, check_origin

_ORIGINAL_PRINCIPAL = "X-Original-Principal"


class AuthorizationFilter:
    """Authenticates and authorizes calls; without ``access`` every caller may do everything."""

    def __init__(self, access: Access | None, hosts: KnownHosts | None) -> None:
        """Create the filter; ``hosts`` is None if callers without credentials are refused."""
        self._access = access
        self._hosts = hosts

    async def find(
        self,
        router: Router,
        method: str,
        path: str,
        headers: Mapping[str, str],
        certificate: PeerCertificate | None = None,
    ) -> tuple[Route, dict[str, str]]:
        """Return the result of `Router.find`. Only authenticated callers learn that a path does not exist."""
        try:
            return router.find(method, path)
        except (NotFound, MethodNotAllowed):
            if self._access is not None:
                await self._access.authentication.authenticate_http(headers, certificate=certificate)
            raise

    async def check(self, call: Call) -> None:
        """Set the principal of the call. Raise BadCredentials, or the refusal of the required permission."""
        access, required = self._access, call.route.required
        if required is not open_to_all:
            self._check_no_web_page(call)
        if access is None or (required is open_to_all and not _needs_credentials(access, call.route)):
            return
        identity = await access.authentication.authenticate_http(call.request_headers, certificate=call.certificate)
        original = call.request_headers.get(_ORIGINAL_PRINCIPAL)
        call.principal = access.principal(identity.role, original, same_allowed=True)
        if access.authorization is not None:
            await required(access.authorization, call.principal, call)

    def _check_no_web_page(self, call: Call) -> None:
        check_origin(call.request_headers)
        if self._hosts is not None:
            self._hosts.check(call.request_headers)


def _needs_credentials(access: Access, route: Route) -> bool:
    """Return True if an open route needs credentials nevertheless (``authenticateMetricsEndpoint``)."""
    return access.metrics_authenticated and route.path.startswith("/metrics")

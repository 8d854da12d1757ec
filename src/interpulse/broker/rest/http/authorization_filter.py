"""The guard of the REST door: whether a web page calls, who calls, and whether he may; made once from all routes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interpulse.broker.access.setup import Access
from interpulse.broker.rest.http.call import Call, Route
from interpulse.broker.rest.http.required_permissions import OPEN, need_of
from interpulse.broker.rest.http.routing import MethodNotAllowed, Router
from interpulse.broker.rest.http.web_pages import KnownHosts, check_origin
from interpulse.model.errors import NotFound

__all__ = ["Guard"]

_ORIGINAL_PRINCIPAL = "X-Original-Principal"


class Guard:
    """Asks nobody who he is while there is no ``access``."""

    def __init__(self, access: Access | None, routes: Iterable[Route], hosts: KnownHosts | None) -> None:
        """``hosts``: None where nobody is let in without credentials."""
        self._access = access
        self._hosts = hosts
        self._needs = {(route.method, route.path): need_of(route) for route in routes}

    def find(self, router: Router, method: str, path: str, headers: Mapping[str, str]) -> tuple[Route, dict[str, str]]:
        """What `Router.find` finds. Only who can prove who he is learns which paths there are not."""
        try:
            return router.find(method, path)
        except (NotFound, MethodNotAllowed):
            if self._access is not None:
                self._access.authentication.authenticate_http(headers)
            raise

    async def check(self, route: Route, call: Call) -> None:
        """Find out who calls, and raise BadCredentials or what refuses him."""
        access, need = self._access, self._needs[route.method, route.path]
        if need is not OPEN:
            self._check_no_web_page(call)
        if access is None or (need is OPEN and not (access.metrics_guarded and route.path.startswith("/metrics"))):
            return
        identity = access.authentication.authenticate_http(call.request_headers)
        original = call.request_headers.get(_ORIGINAL_PRINCIPAL)
        call.principal = access.principal(identity.role, original, same_allowed=True)
        if access.authorization is not None:
            await need(access.authorization, call.principal, call)

    def _check_no_web_page(self, call: Call) -> None:
        check_origin(call.request_headers)
        if self._hosts is not None:
            self._hosts.check(call.request_headers)

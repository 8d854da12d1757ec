"""Every address below ``/console``: pages, their JSON, actions, signing in, files and streams."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from interpulse.authentication.authentication import BadCredentials
from interpulse.console.actions.action import Action
from interpulse.console.actions.catalogue import ACTIONS
from interpulse.console.host import ROOT, Host, MethodNotAllowed, Request, Visitor
from interpulse.console.pages.catalogue import DOWNLOADS, HOME, PAGES, REMOTE_PAGES, STREAMS
from interpulse.console.sampling import PollingRate, Samples
from interpulse.console.visit import ServedElsewhere, Visit
from interpulse.console.web.addresses import action_url, page_url, read_query, safe_next
from interpulse.console.web.rendering import Renderer, StaticFiles
from interpulse.console.web.response import Cookie, Response, html, json_document, redirect
from interpulse.console.web.result_cache import ResultCache
from interpulse.console.web.security import COOKIE, HEADERS, SESSION_SECONDS, FormTokens, Sessions, check_source
from interpulse.model.errors import Forbidden, InvalidRequest, NotFound, PulsarError

_logger = logging.getLogger(__name__)

_JSON: Final = ".json"
_SIGN_IN: Final = "sign-in"
_SIGN_OUT: Final = "sign-out"
_READ_ONLY: Final = "The console is read-only (consoleReadOnly=true); the command line does this"


class Site:
    """The pages of the console, loaded with the first visit."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._pages = PAGES if host.broker is not None else REMOTE_PAGES
        self._sessions = Sessions(time.monotonic)
        self._tokens = FormTokens()
        self._cache = ResultCache(time.monotonic)
        # Two hundred charts each second, or a thousand every five, take a hundredth of a processor.
        self._samples = Samples(PollingRate("charts", every_seconds=1.0, per_second_max=200, most=1000))
        # Two tails twice a second, or fifty every ten; reading twenty messages takes some milliseconds.
        self._tails = PollingRate("tails of topics", every_seconds=0.5, per_second_max=5, most=50)
        self._files = StaticFiles()
        self._renderer = Renderer(self._files.url)
        if host.broker is not None:
            host.broker()  # loads it here, in the thread of the constructor

    def close(self) -> None:
        """End background work."""
        self._cache.forget()

    async def answer(self, request: Request) -> Response:
        """Return the response to one request. A refusal is a response, too."""
        try:
            response = await self._answer(request)
        except BadCredentials as error:
            self._host.failed_authentications.note(request.address, error.detail)
            response = self._ask_for_credentials(request, error)
        except ServedElsewhere as error:
            place = f"{error.web_url}{request.target}"
            get = request.method == "GET"
            response = redirect(place, status=307) if get else self._refusal(request, error, link=place)
        except PulsarError as error:
            response = self._refusal(request, error)
        return response.with_headers(HEADERS)

    async def _answer(self, request: Request) -> Response:
        check_source(request.method, request.headers, self._host.hosts)
        if request.method not in ("GET", "POST"):
            raise MethodNotAllowed(f"{request.method} is not allowed here, only GET, POST")
        first, _, rest = request.place.partition("/")
        if first == "static":
            file = self._files.response(rest)
            if file is None:
                raise NotFound("The console has no such file")
            return file
        if request.place == _SIGN_IN:
            return await self._sign_in(request)
        visitor = await self._visitor(request)
        action = ACTIONS.get(rest) if first == "actions" else None
        if action is not None and not (action.ours_only and self._host.broker is None):
            return await self._action(request, visitor, action)
        if request.place == _SIGN_OUT and request.method == "POST":
            return self._sign_out(request, visitor)
        name = request.place.removesuffix(_JSON)
        if request.method != "GET" and not (name in self._pages and self._pages[name].takes_forms):
            raise MethodNotAllowed(f"{request.method} is not allowed here, only GET")
        if not request.place:
            return redirect(page_url(HOME))
        return await self._page(request, visitor, name)

    # --- visitors

    async def _visitor(self, request: Request) -> Visitor:
        access = self._host.access
        headers = {
            name: request.headers[name] for name in ("Authorization", "X-Original-Principal") if name in request.headers
        }
        browser = request.cookies.get(COOKIE, "")
        visitor = Visitor(headers, request.certificate, request.tls, browser=browser, address=request.address)
        if access is None:
            return visitor
        if "Authorization" not in headers and (stored := self._sessions.authorization(browser)) is not None:
            headers["Authorization"] = stored
            visitor = replace(visitor, session=browser)
        identity = await access.authentication.authenticate_http(headers, certificate=request.certificate)
        principal = access.principal(identity.role, headers.get("X-Original-Principal"), same_allowed=True)
        return replace(visitor, role=" via ".join(reversed(principal.roles)))

    def _ask_for_credentials(self, request: Request, error: BadCredentials) -> Response:
        if request.method != "GET" or request.place.endswith(_JSON):
            return self._refusal(request, error)
        self._sessions.end(request.cookies.get(COOKIE, ""))
        return redirect(page_url(_SIGN_IN, next=request.target))

    async def _sign_in(self, request: Request) -> Response:
        if self._host.access is None:
            return redirect(ROOT)
        query = read_query(request.raw_query)
        goes_to = safe_next(query.get("next", ROOT))
        if request.method == "GET":
            return self._sign_in_form(request, goes_to)
        form = _form(request)
        self._tokens.check(request.cookies.get(COOKIE, ""), _SIGN_IN, form.get("token", ""))
        authorization = _authorization(form)
        try:
            identity = await self._host.access.authentication.authenticate_http({"Authorization": authorization})
        except BadCredentials as error:
            self._host.failed_authentications.note(request.address, error.detail)
            return self._sign_in_form(request, goes_to, "The broker does not accept these credentials.")
        _logger.info("console signed in role=%s address=%s", identity.role, request.address)
        return replace(redirect(goes_to), cookie=Cookie(COOKIE, self._sessions.begin(authorization), SESSION_SECONDS))

    def _sign_in_form(self, request: Request, goes_to: str, problem: str = "") -> Response:
        browser = request.cookies.get(COOKIE, "") or self._sessions.new_browser()
        text = self._render(
            "sign-in.html",
            None,
            title="Sign in",
            token=self._tokens.token(browser, _SIGN_IN),
            form_url=page_url(_SIGN_IN, next=goes_to),
            problem=problem,
        )
        return replace(html(text, status=401 if problem else 200), cookie=Cookie(COOKIE, browser))

    def _sign_out(self, request: Request, visitor: Visitor) -> Response:
        self._tokens.check(visitor.browser, _SIGN_OUT, _form(request).get("token", ""))
        self._sessions.end(visitor.session)
        return replace(redirect(page_url(_SIGN_IN)), cookie=Cookie(COOKIE, "", 0))

    # --- pages

    async def _page(self, request: Request, visitor: Visitor, name: str) -> Response:
        asked = read_query(request.raw_query)
        visit = self._visit(visitor, {**asked, **_form(request)} if request.method == "POST" else asked)
        if name in STREAMS:
            stream = await STREAMS[name](visit)
            return Response(200, headers={"Content-Type": "text/event-stream"}, stream=stream)
        if name in DOWNLOADS:
            return await DOWNLOADS[name](visit)
        page = self._pages.get(name)
        if page is None:
            raise NotFound("The console has no such page")
        model = await page.build(visit)
        if request.place.endswith(_JSON):
            return json_document(model)
        done = ACTIONS.get(visit.text("done"))
        return html(
            self._render(
                f"{page.template or page.name}.html",
                visitor,
                title=page.title,
                page=page,
                model=model,
                query=visit.query,
                now_ms=visit.now_ms,
                done=done.done if done is not None else "",
                json_url=f"{ROOT}/{page.name}{_JSON}{f'?{request.raw_query}' if request.raw_query else ''}",
            )
        )

    def _visit(self, visitor: Visitor, query: Mapping[str, str]) -> Visit:
        now_ms = time.time_ns() // 1_000_000
        return Visit(visitor, self._host, query, now_ms, self._cache, self._samples, self._tails)

    # --- actions

    async def _action(self, request: Request, visitor: Visitor, action: Action) -> Response:
        """Ask for missing fields or a confirmation (GET), or do the action (POST)."""
        values = action.values(read_query(request.raw_query))
        if action.missing(values):
            if request.method == "POST":
                raise InvalidRequest(f"{action.title} needs {', '.join(item.name for item in action.missing(values))}")
            return html(self._render("ask.html", visitor, title=action.title, action=action, values=values))
        address = action_url(action.name, **{name: value for name, value in values.items() if value})
        if request.method == "POST":
            return await self._do(request, visitor, action, values, address)
        return await self._confirm(visitor, action, values, address)

    async def _confirm(self, visitor: Visitor, action: Action, values: Mapping[str, str], address: str) -> Response:
        call = action.call(values)
        refusal = _READ_ONLY
        if not self._host.read_only():
            refusal = await self._visit(visitor, {}).refusal(call.method, call.path)
        browser = visitor.browser or self._sessions.new_browser()
        text = self._render(
            "confirm.html",
            visitor,
            title=action.title,
            action=action,
            values=values,
            command=action.command_line(values),
            call=call,
            refusal=refusal,
            token=self._tokens.token(browser, address),
            address=address,
            back=action.back(values),
        )
        return html(text) if visitor.browser else replace(html(text), cookie=Cookie(COOKIE, browser))

    async def _do(
        self, request: Request, visitor: Visitor, action: Action, values: Mapping[str, str], address: str
    ) -> Response:
        call = action.call(values)
        outcome = "refused"
        try:
            self._tokens.check(visitor.browser, address, _form(request).get("token", ""))
            if self._host.read_only():
                raise Forbidden(_READ_ONLY)
            await self._visit(visitor, {}).send(call.method, call.path, call.body)
            self._cache.forget()
            outcome = "done"
        except PulsarError as error:
            outcome = type(error).__name__
            raise
        finally:
            _logger.info(
                "console action action=%s call=%s path=%s role=%s address=%s outcome=%s",
                action.name,
                call.method,
                call.path,
                visitor.role or "-",
                visitor.address,
                outcome,
            )
        back = action.back(values)
        return redirect(f"{back}{'&' if '?' in back else '?'}done={action.name}")

    # --- errors

    def _refusal(self, request: Request, error: PulsarError, link: str = "") -> Response:
        status, reason = error.http_status, str(error)
        if request.place.endswith(_JSON):
            return json_document({"reason": reason}, status=status)
        text = self._render("refusal.html", None, title="Refused", status=status, reason=reason, link=link)
        return html(text, status=status)

    def _render(self, template: str, visitor: Visitor | None, **values: Any) -> str:
        session = visitor.session if visitor is not None else ""
        frame = {
            "menu": [page for page in self._pages.values() if page.in_menu],
            "page": None,
            "done": "",
            "json_url": "",
            "cluster": self._host.cluster,
            "role": visitor.role if visitor is not None else "",
            "read_only": self._host.read_only(),
            "sign_out_token": self._tokens.token(session, _SIGN_OUT) if session else "",
        }
        return self._renderer.render(template, {**frame, **values})


def _form(request: Request) -> dict[str, str]:
    return read_query(request.body.decode("latin-1"))


def _authorization(form: Mapping[str, str]) -> str:
    name, password = form.get("name", ""), form.get("password", "")
    if name:
        return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"
    return f"Bearer {password.strip().removeprefix('token:')}"

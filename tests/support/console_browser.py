"""A browser without JavaScript, as far as tests of the console need one: cookies, forms, links."""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from html import unescape
from urllib.parse import quote, urlencode, urlsplit

_TOKEN = re.compile(r'name="token" value="([0-9a-f]+)"')
_FORM = re.compile(r'<form[^>]* method="post" action="([^"]+)"')


@dataclass(frozen=True)
class Page:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def token(self) -> str:
        """Of the last form of the page: those of the frame come first."""
        return _TOKEN.findall(self.text)[-1]

    @property
    def form(self) -> str:
        """Where that form goes."""
        return unescape(_FORM.findall(self.text)[-1])


class PlainBrowser:
    """Follows no redirects by itself."""

    def __init__(self, web_url: str, **headers: str) -> None:
        self.place = urlsplit(web_url).netloc
        self.cookies: dict[str, str] = {}
        self.headers = headers

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Page:
        return self.request("GET", path, headers=headers)

    def get_bytes(self, path: str) -> tuple[bytes, http.client.HTTPMessage]:
        """What is no text, with its headers."""
        with closing(http.client.HTTPConnection(self.place, timeout=30)) as connection:
            connection.request("GET", path, headers=self.headers)
            answer = connection.getresponse()
            return answer.read(), answer.headers

    def post(self, path: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Page:
        form = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
        return self.request("POST", path, urlencode(fields), form)

    def request(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Page:
        sent = {**self.headers, **(headers or {})}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        with closing(http.client.HTTPConnection(self.place, timeout=30)) as connection:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            text = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value.strip('"')
        return Page(answer.status, answer.headers, text)

    def sign_in(self, password: str, *, name: str = "", then: str = "/console") -> Page:
        """Through the form, as a person does."""
        page = self.get(f"/console/sign-in?next={quote(then)}")
        return self.post(page.form, {"token": page.token, "name": name, "password": password})


def address(place: str, query: Mapping[str, str]) -> str:
    return f"/console/{place}{'?' + urlencode(query, quote_via=quote) if query else ''}"

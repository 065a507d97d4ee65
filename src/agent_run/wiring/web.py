"""The user's way to web pages: the proxies that the environment names."""

import os
from collections.abc import Mapping

from agent_run.errors import InvalidDocument
from agent_run.executors.content.proxies import Proxies, proxies_from


def proxies_here(environ: Mapping[str, str] = os.environ) -> Proxies:
    """Return the proxies of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, in either case.

    One that is none of HTTP is told where a page would have to be asked for through it.
    """

    def said(name: str) -> str:
        return environ.get(name.lower()) or environ.get(name.upper()) or ""

    every = said("all_proxy")
    try:
        return proxies_from(
            http=said("http_proxy") or every,
            https=said("https_proxy") or every,
            bypass=said("no_proxy"),
        )
    except InvalidDocument as error:
        return Proxies(fault=str(error))

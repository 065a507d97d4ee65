"""Getting a page: asked for inside the fence, which holds the network to what was granted."""

from typing import Final
from urllib.parse import SplitResult

from agent_run.ports.fence import Network

_PORTS: Final = {"http": 80, "https": 443}
_DEFAULT_PORT: Final = 443

FETCHER: Final = """
import sys, urllib.error, urllib.request

class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments):
        return None

try:
    asked = urllib.request.Request(sys.argv[1], headers={"User-Agent": "agent-run"})
    with urllib.request.build_opener(Stay).open(asked, timeout=30) as page:
        print("status", page.status, page.headers.get("content-type", ""))
        body = page.read(200_001)
    print(body[:200_000].decode(errors="replace"))
    if len(body) > 200_000:
        print("[the page is longer than 200000 bytes and is cut here]")
except urllib.error.HTTPError as error:
    moved = error.headers.get("location")
    sys.exit(f"status {error.code}" + (f", moved to {moved}" if moved else ""))
except (OSError, ValueError) as error:
    sys.exit(f"cannot be fetched: {error}")
"""
"""Runs inside the fence. It follows no redirect: the next address is asked for, and checked,
like the first one."""


def refusal_of(url: SplitResult, network: Network) -> str:
    """Return why `url` may not be fetched; the empty string if it may."""
    if url.scheme not in _PORTS or not url.hostname or url.username or url.password:
        return "it is not a plain URL of the web"
    if network == "allow":
        return ""
    if network == "deny":
        return "this task has no network"
    try:
        port = url.port or _PORTS[url.scheme]
    except ValueError as error:
        return str(error)
    host = url.hostname.rstrip(".").lower()
    if any(_grants(entry, host, port) for entry in network):
        return ""
    return f"{host}:{port} is not among the hosts of this task: {', '.join(network)}"


def _grants(entry: str, host: str, port: int) -> bool:
    name, colon, given = entry.rpartition(":")
    if not colon or entry.endswith("]"):
        name, given = entry, ""
    wanted = name.removeprefix("[").removesuffix("]").rstrip(".").lower()
    return wanted == host and port == (int(given) if given.isdigit() else _DEFAULT_PORT)

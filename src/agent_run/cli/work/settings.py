"""The work of `config show`: what is configured, and where each value came from."""

import re
from urllib.parse import urlsplit, urlunsplit

from pydantic import JsonValue

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import configured
from agent_run.cli.work.wording import dumped

_BUILT_IN = "built in"


def show_settings(speech: Speech, *, origin: bool) -> int:
    """Show the settings that hold in this folder."""
    found = configured(speech)
    told = dumped(found.settings)
    values = dict(told) if isinstance(told, dict) else {}
    values["store"] = without_password(found.settings.store_url)
    if not speech.verbose:
        for name in found.unknown:
            speech.tell(f"{name} is no setting of ours and was not read")
    if speech.as_json:
        origins = {key: found.origins.get(key, _BUILT_IN) for key in values}
        speech.object({"settings": values, "origins": origins, "unknown": list(found.unknown)})
        return Exit.DONE
    rows = [
        (key, _shown(value), *((found.origins.get(key, _BUILT_IN),) if origin else ()))
        for key, value in values.items()
    ]
    speech.table(("KEY", "VALUE", "FROM") if origin else ("KEY", "VALUE"), rows)
    return Exit.DONE


def without_password(url: str) -> str:
    """Return the URL as it may be shown and pasted into a report."""
    parts = urlsplit(url)
    netloc = parts.netloc
    if parts.password is not None:
        login, _, host = netloc.rpartition("@")
        netloc = f"{login.partition(':')[0]}:***@{host}"
    query = re.sub(r"(?i)(password=)[^&]*", r"\1***", parts.query)
    if (netloc, query) == (parts.netloc, parts.query):
        return url
    return urlunsplit(parts._replace(netloc=netloc, query=query))


def _shown(value: JsonValue) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "true" if value else "false"
        case dict():
            return ", ".join(value) or "-"
        case _:
            return str(value)

"""What all attacks share: findings about the base, which are the same for each of them."""

from pathlib import Path

import pytest

from tests.support.projects import shared_fence

# Landlock alone does not stop changes of mode, has no folder `/tmp` of its own, and closes
# sockets instead of giving a network of their own to them.
NEEDS_NAMESPACES = frozenset(
    {
        "changes the mode of somebody's file",
        "adds a socket",
        "uses a database",
        "uses its home and the temporary folder",
        "uses a socket with a name",
        "serves itself over loopback",
        "replaces a file over the temporary folder",
    }
)


@pytest.fixture(autouse=True)
def fits_the_fence(request: pytest.FixtureRequest) -> None:
    """Skip what the fence of this machine says it cannot hold or allow."""
    spec = getattr(request.node, "callspec", None)
    named = {getattr(value, "name", "") for value in spec.params.values()} if spec else set()
    kind = shared_fence().report().kind
    if kind == "none":
        pytest.skip("no fence works on this machine")
    if not kind.startswith("namespaces") and named & NEEDS_NAMESPACES:
        pytest.skip("takes namespaces, which do not work on this machine")


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")

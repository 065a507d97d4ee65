"""A web server for the tests of links."""

from collections.abc import Iterator

import pytest

from tests.executors.content.server import Site, served


@pytest.fixture
def site() -> Iterator[Site]:
    with served() as running:
        yield running

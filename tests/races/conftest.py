"""Both stores, empty, one for each test."""

from tests.support.stores import (  # noqa: F401 - fixtures are found by their names
    address,
    postgres_address,
    postgres_server,
    sqlite_address,
    store,
)

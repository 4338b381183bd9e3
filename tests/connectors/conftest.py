"""The server that the tests of connectors share."""

from tests.server.conftest import url as url

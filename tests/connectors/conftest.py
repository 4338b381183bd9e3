"""The server that the tests of connectors share, and names of each test's own."""

from tests.server.conftest import client as client
from tests.server.conftest import name as name
from tests.server.conftest import stream as stream
from tests.server.conftest import url as url

"""What the HTTP edge answers, over a real socket on loopback."""

import json
import logging
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest

from lograft_broker.admin import Admin
from lograft_wire.errors import ConfigError


@dataclass
class KnownNode:
    """A node whose health the test decides."""

    live: bool = True
    ready: bool = True
    reasons: list[str] = field(default_factory=list)
    details: dict[str, object] = field(default_factory=dict)

    def health(self) -> dict[str, object]:
        return {
            "live": self.live,
            "ready": self.ready,
            "reasons": self.reasons,
            "details": self.details,
        }


class Site:
    def __init__(self, node: KnownNode, admin: Admin, base: str) -> None:
        self.node = node
        self.admin = admin
        self.base = base

    async def get(self, path: str, *, method: str = "GET") -> tuple[int, dict[str, object]]:
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.base + path) as response,
        ):
            assert response.content_type == "application/json"
            answer = json.loads(await response.text())
            assert isinstance(answer, dict)
            return response.status, answer


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    node = KnownNode()
    admin = Admin(node, name="n1")
    address = await admin.start(host="127.0.0.1", port=0)
    yield Site(node, admin, f"http://{address}")
    await admin.stop()


async def test_startup_and_ready_wait_for_the_node_while_live_does_not(site: Site) -> None:
    starting = {"status": "failed", "reasons": ["the node is still starting"]}
    assert await site.get("/health/startup") == (503, starting)
    assert await site.get("/health/ready") == (503, starting)
    assert await site.get("/health/live") == (200, {"status": "ok"})
    site.admin.mark_started()
    assert await site.get("/health/startup") == (200, {"status": "ok"})
    assert await site.get("/health/ready") == (200, {"status": "ok"})


async def test_not_ready_says_why(site: Site) -> None:
    site.admin.mark_started()
    site.node.ready = False
    site.node.reasons = ["group 3 has no leader"]
    assert await site.get("/health/ready") == (
        503,
        {"status": "failed", "reasons": ["group 3 has no leader"]},
    )
    assert await site.get("/health/live") == (200, {"status": "ok"})


async def test_dead_node_says_why(site: Site) -> None:
    site.node.live = False
    site.node.reasons = ["journal sync failed"]
    assert (await site.get("/health/live"))[0] == 503


async def test_groups_are_the_details_of_the_node(site: Site) -> None:
    site.node.details = {"groups": [{"group": 1, "term": 4}], "journal": {"files": 2}}
    assert await site.get("/api/lograft/groups") == (200, site.node.details)


async def test_front_page_says_what_this_is(site: Site) -> None:
    status, answer = await site.get("/")
    assert status == 200
    assert (answer["product"], answer["node"]) == ("lograft", "n1")
    assert "/health/ready" in str(answer["paths"])


async def test_unknown_path_and_wrong_method_are_answered_in_json(site: Site) -> None:
    assert await site.get("/nothing") == (404, {"error": "Not Found", "path": "/nothing"})
    assert (await site.get("/health/live", method="POST"))[0] == 405


async def test_failure_inside_is_told_without_details_and_logged(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.node.details = {"not json": object()}
    with caplog.at_level(logging.ERROR):
        assert await site.get("/api/lograft/groups") == (500, {"error": "Internal Server Error"})
    assert "http_failed" in caplog.text


async def test_port_in_use_names_port_and_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        complaint = f"--http-port {port}: another process listens on 127.0.0.1:{port} already"
        with pytest.raises(ConfigError, match=complaint):
            await Admin(KnownNode(), name="n1").start(host="127.0.0.1", port=port)

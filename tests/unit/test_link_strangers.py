"""What a node does with peers that lie, dawdle or talk nonsense: only their own link suffers."""

import asyncio
import struct

import pytest

from lograft_log.hot import crc
from lograft_replication import codec, handshake
from lograft_replication.handshake import Identity, Role
from lograft_replication.link_protocol import Limits
from lograft_replication.messages import Append, Stale
from support.link_nodes import LIMITS, NOWHERE, SECRET, Node, RawPeer, identity, shake

GOOD = b"".join(codec.encode(1, Stale(1)))
ALICE = identity("alice")


def listener(limits: Limits = LIMITS) -> Node:
    return Node(identity("bob"), addresses={"alice": NOWHERE}, limits=limits)


async def greeted(node: Node, me: Identity = ALICE) -> RawPeer:
    raw = await RawPeer.connect(node)
    assert (await raw.greet(shake(Role.DIALLER, me))).done
    return raw


async def check_still_serves(node: Node) -> None:
    """An honest peer gets through whatever happened before."""
    ups = node.host.events.count(("up", ALICE.node_id))
    async with await greeted(node) as raw:
        await raw.send(GOOD)
        await node.host.until(lambda: node.host.events.count(("up", ALICE.node_id)) == ups + 1)
        before = len(node.host.frames)
        await raw.send(GOOD)
        await node.host.until(lambda: len(node.host.frames) > before)


async def test_everything_one_byte_at_a_time_gets_through() -> None:
    """Also a frame that is larger than the receive buffer."""
    large = b"".join(codec.encode(1, Append(1, 1, 1, 1, ((b"0123456789" * 205, 2, 1),))))
    limits = Limits(receive_buffer_bytes=2048)
    async with listener(limits) as node, await RawPeer.connect(node) as raw:
        hands = shake(Role.DIALLER, ALICE)
        await raw.greet(hands, byte_by_byte=True)
        assert hands.done
        for value in GOOD + large + GOOD:
            await raw.send(bytes([value]))
            await asyncio.sleep(0)
        await node.host.until(lambda: len(node.host.frames) == 3)
        assert [frame for _, frame in node.host.frames] == [GOOD, large, GOOD]


async def test_frames_may_follow_the_proof_in_the_same_segment() -> None:
    async with listener() as node, await RawPeer.connect(node) as raw:
        hands = shake(Role.DIALLER, ALICE)
        await raw.send(hands.start())
        hello = await raw.reader.read(4096)
        await raw.send(hands.receive(hello) + GOOD + GOOD + GOOD[:5])
        await node.host.until(lambda: len(node.host.frames) == 2)
        await raw.send(GOOD[5:])
        await node.host.until(lambda: node.host.frames == [(ALICE.node_id, GOOD)] * 3)


@pytest.mark.parametrize(
    ("me", "logged"),
    [
        (identity("alice", cluster="other"), "cluster id 'other'"),
        (identity("bob"), "my own"),
        (identity("aaron"), "not among the peers"),
        (identity("carol"), "not among the peers"),
    ],
)
async def test_an_unwelcome_peer_with_the_secret_is_refused_with_the_true_reason(
    me: Identity, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with listener() as node:
        async with await RawPeer.connect(node) as raw:
            hands = await raw.greet(shake(Role.DIALLER, me))
            assert logged in hands.failure
            await raw.until_closed()
        assert logged in caplog.text
        assert node.host.events == []
        await check_still_serves(node)


async def test_a_wrong_secret_is_refused_without_saying_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listener() as node:
        async with await RawPeer.connect(node) as raw:
            hands = await raw.greet(shake(Role.DIALLER, ALICE, secret=b"guess" * 8))
            assert handshake.STRANGER_REASON in hands.failure
            await raw.until_closed()
        assert "secrets differ" in caplog.text
        assert SECRET.decode() not in caplog.text
        assert node.host.events == []
        await check_still_serves(node)


async def test_a_node_with_a_wrong_secret_never_comes_up_and_goes_on_trying() -> None:
    async with listener() as node:
        at = {"bob": node.network.address}
        wrong = Node(ALICE, addresses=at, secret=b"guess" * 8)
        async with wrong:
            await check_still_serves(node)
        assert wrong.host.events == []


async def test_a_replayed_handshake_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with listener() as node:
        async with await greeted(node) as raw:
            recorded = raw.sent
        await node.host.until_events("up", "down")
        async with await RawPeer.connect(node) as thief:
            await thief.send(recorded)
            await thief.until_closed()
        assert "secrets differ" in caplog.text
        assert node.host.events.count(("up", ALICE.node_id)) == 1


async def test_a_reflected_proof_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """A false listener that knows no secret sends the dialler's own proof back to it."""
    refused = asyncio.Event()

    async def reflect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hands = shake(Role.LISTENER, identity("bob"), secret=b"unknown" * 4)
        writer.write(hands.receive(await reader.read(4096)))
        writer.write(await reader.read(4096))
        if handshake.STRANGER_REASON.encode() in await reader.read(4096):
            refused.set()
        writer.transport.abort()

    server = await asyncio.start_server(reflect, "127.0.0.1", 0)
    async with server, Node(ALICE, addresses={"bob": server.sockets[0].getsockname()}) as dialler:
        async with asyncio.timeout(20):
            await refused.wait()
        assert dialler.host.events == []
        assert "secrets differ" in caplog.text


async def test_a_cut_handshake_is_forgotten() -> None:
    async with listener() as node:
        whole = shake(Role.DIALLER, ALICE).start()
        for size in (0, 1, len(whole) // 2, len(whole)):
            async with await RawPeer.connect(node) as raw:
                await raw.send(whole[:size])
                raw.writer.write_eof()
                await raw.until_closed()
        await check_still_serves(node)


async def test_a_stranger_that_dawdles_is_cut_off_at_the_deadline() -> None:
    limits = Limits(handshake_s_max=0.1)
    async with listener(limits) as node, await RawPeer.connect(node) as raw:
        await raw.send(handshake.MAGIC[:1])
        assert await raw.until_closed() == b""
        await check_still_serves(node)


async def test_too_many_strangers_cost_the_oldest_of_them() -> None:
    limits = Limits(handshake_count_max=2, handshake_s_max=60.0)
    async with listener(limits) as node:
        strangers = [await RawPeer.connect(node) for _ in range(5)]
        for stranger in strangers[:3]:
            assert await stranger.until_closed() == b""
        await check_still_serves(node)
        for stranger in strangers:
            stranger.writer.transport.abort()


async def test_another_protocol_gets_nothing_but_a_closed_connection() -> None:
    async with listener() as node:
        async with await RawPeer.connect(node) as raw:
            await raw.send(b"AMQP\x00\x00\x09\x01")
            assert await raw.until_closed() == b""
        await check_still_serves(node)


@pytest.mark.parametrize("length", [0, 15, (64 << 20) + 1, 0xFFFFFFFF])
async def test_a_frame_of_forbidden_length_closes_the_link(
    length: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with listener() as node:
        async with await greeted(node) as raw:
            await raw.send(GOOD + struct.pack("<I", length) + bytes(60))
            await node.host.until_events("up", "down")
        assert node.host.frames == [(ALICE.node_id, GOOD)]
        assert ALICE.node_id in caplog.text
        assert f"length {length} is not allowed" in caplog.text
        await check_still_serves(node)


async def test_a_damaged_frame_closes_the_link_with_its_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The host decodes; what its decoder raises ends the link."""
    async with listener() as node:
        node.host.react = lambda _, frame: codec.decode(frame)
        async with await greeted(node) as raw:
            damaged = bytearray(GOOD)
            damaged[-1] ^= 1
            await raw.send(GOOD + bytes(damaged) + GOOD)
            await node.host.until_events("up", "down")
        assert len(node.host.frames) == 1
        found = crc.checksum(bytes(damaged[8:]))
        assert f"{found:08x}" in caplog.text


async def test_garbage_behind_the_handshake_closes_the_link() -> None:
    async with listener() as node:
        async with await greeted(node) as raw:
            await raw.send(b"\xff" * 100_000)
            await node.host.until_events("up", "down")
        await check_still_serves(node)


async def test_a_peer_that_does_not_read_fills_its_own_allowance_only() -> None:
    limits = Limits(write_bytes_max=4 << 20, socket_buffer_bytes=1 << 16)
    node = Node(identity("bob"), addresses={"alice": NOWHERE, "anna": NOWHERE}, limits=limits)
    async with node:
        anna = identity("anna")
        async with await greeted(node) as deaf, await greeted(node, anna) as good:
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            big = codec.encode(1, Append(1, 1, 1, 1, ((bytes(1 << 20), 2, 1),)))
            taken = 0
            while node.network.send(ALICE.node_id, big):
                taken += 1
                assert taken < 1000
                await asyncio.sleep(0)
            assert 0 < node.network.backlog_bytes(ALICE.node_id) <= 4 << 20
            assert not node.network.send(ALICE.node_id, big)
            assert node.network.send(anna.node_id, [GOOD])
            assert await good.reader.readexactly(len(GOOD)) == GOOD
            deaf.writer.transport.resume_reading()  # type: ignore[attr-defined]
            size = sum(len(bytes(part)) for part in big)
            async with asyncio.timeout(20):
                assert len(await deaf.reader.readexactly(size * taken)) == size * taken
            assert node.network.backlog_bytes(ALICE.node_id) == 0
            assert node.network.send(ALICE.node_id, big)


async def test_one_frame_larger_than_the_allowance_still_goes_alone() -> None:
    limits = Limits(write_bytes_max=1000)
    async with listener(limits) as node, await greeted(node) as raw:
        big = codec.encode(1, Append(1, 1, 1, 1, ((bytes(100_000), 2, 1),)))
        assert node.network.send(ALICE.node_id, big)
        assert not node.network.send(ALICE.node_id, big)
        whole = b"".join(big)
        assert await raw.reader.readexactly(len(whole)) == whole


async def test_a_newer_link_of_the_same_process_takes_over_in_order() -> None:
    async with listener() as node, await greeted(node) as older, await greeted(node) as newer:
        await older.until_closed()
        await newer.send(GOOD)
        await node.host.until(lambda: len(node.host.frames) == 1)
        assert [kind for kind, _ in node.host.events] == ["up", "down", "up"]


async def test_trouble_from_one_place_is_logged_once_per_interval(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listener(Limits(log_s_min=3600.0)) as node:
        for _ in range(20):
            async with await RawPeer.connect(node) as raw:
                await raw.send(b"nonsense that goes on")
                await raw.until_closed()
        assert caplog.text.count("magic") == 1

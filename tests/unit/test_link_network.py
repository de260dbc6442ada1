"""Links between honest nodes through real sockets, on both event loops."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
import uvloop

from lograft_replication import codec
from lograft_replication.messages import Append, Appended, Stale
from lograft_wire.errors import ConfigError, PeerError
from support.link_nodes import LIMITS, NOWHERE, SECRET, LogWatch, Node, identity, introduce

Story = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Story], None]:
    """Runs a story on a fresh loop of either make."""
    factory = asyncio.new_event_loop if request.param == "asyncio" else uvloop.new_event_loop

    def run_story(story: Story) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(story())

    return run_story


def pair() -> tuple[Node, Node]:
    """`a` dials, `b` listens."""
    return (
        Node(identity("a"), addresses={"b": NOWHERE}),
        Node(identity("b"), addresses={"a": NOWHERE}),
    )


def frame(number: int) -> bytes:
    return b"".join(codec.encode(1, Stale(number)))


def test_frames_arrive_whole_and_in_order_both_ways(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        a, b = pair()
        async with a, b:
            introduce(a, b)
            await a.host.until_events("up")
            await b.host.until_events("up")
            for number in range(5000):
                assert a.network.send(b.id, [frame(number)])
                assert b.network.send(a.id, [frame(number)[:9], frame(number)[9:]])
            await a.host.until(lambda: len(a.host.frames) == 5000)
            await b.host.until(lambda: len(b.host.frames) == 5000)
            assert a.host.frames == [(b.id, frame(number)) for number in range(5000)]
            assert b.host.frames == [(a.id, frame(number)) for number in range(5000)]
            assert a.host.boots == [b.me.boot]

    run(story)


def test_frames_of_every_size_arrive_equal(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        a, b = pair()
        async with a, b:
            introduce(a, b)
            await a.host.until_events("up")
            sent = []
            for size in (0, 1, 4096, 300_000, 1 << 20, (1 << 20) + 1, 5_000_000, 17, 2_000_000):
                command = bytes(range(256)) * (size // 256) + bytes(size % 256)
                step = 1 << 20
                cut = [command[at : at + step] for at in range(0, size, step)] or [b""]
                entries = tuple((data, 8 + i, 2) for i, data in enumerate(cut))
                parts = codec.encode(1, Append(2, 1, 7, 1, entries))
                assert a.network.send(b.id, parts)
                sent.append((a.id, b"".join(parts)))
            await b.host.until(lambda: len(b.host.frames) == len(sent))
            assert b.host.frames == sent

    run(story)


def test_one_link_per_pair_when_all_start_at_once(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        names = ["a", "b", "c", "d"]
        nodes = [Node(identity(n), addresses=dict.fromkeys(names, NOWHERE)) for n in names]
        await asyncio.gather(*(node.network.start() for node in nodes))
        introduce(*nodes)
        for node in nodes:
            await node.host.until_events("up", "up", "up")
            others = {other.id for other in nodes if other is not node}
            assert {peer for _, peer in node.host.events} == others
        for node in nodes:
            for other in nodes:
                assert node.network.send(other.id, [frame(1)]) == (other is not node)
        for node in nodes:
            await node.host.until(lambda host=node.host: len(host.frames) == 3)  # type: ignore[misc]
            assert len(node.host.events) == 3
        await asyncio.gather(*(node.network.close() for node in nodes))

    run(story)


@pytest.mark.parametrize(("name", "other"), [("a", "b"), ("b", "a")])
def test_a_restarted_peer_is_down_gone_and_up_again(
    run: Callable[[Story], None], name: str, other: str
) -> None:
    """Seen by the dialling side and by the listening side."""

    async def story() -> None:
        async with Node(identity(name), addresses={other: NOWHERE}) as survivor:
            first = Node(identity(other), addresses={name: NOWHERE})
            async with first:
                introduce(survivor, first)
                port = first.network.address[1]
                await survivor.host.until_events("up")
            await survivor.host.until_events("up", "down", "gone")
            assert not survivor.network.send(first.id, [frame(1)])
            again = Node(identity(other), port=port, addresses={name: survivor.network.address})
            async with again:
                await survivor.host.until_events("up", "down", "gone", "up")
                assert survivor.host.boots == [first.me.boot, again.me.boot]
                assert {peer for _, peer in survivor.host.events} == {again.id}
                assert survivor.network.send(again.id, [frame(1)])
                await again.host.until(lambda: again.host.frames == [(survivor.id, frame(1))])

    run(story)


def test_a_peer_that_lost_its_data_is_another_peer(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        async with Node(identity("b"), addresses={"a": NOWHERE}) as survivor:
            reborn = identity("a", incarnation=b"after the fire".ljust(16))
            old = Node(identity("a"), addresses={"b": survivor.network.address})
            new = Node(reborn, addresses={"b": survivor.network.address})
            async with old:
                await survivor.host.until_events("up")
                async with new:
                    await survivor.host.until_events("up", "down", "gone", "up")
                    assert [peer for _, peer in survivor.host.events] == [old.id] * 3 + [new.id]
                    assert not survivor.network.send(old.id, [frame(1)])
                    assert survivor.network.send(new.id, [frame(1)])

    run(story)


PROCESS = """
import asyncio, sys
from support.link_nodes import Node, identity
async def main(name, other, port):
    async with Node(identity(name), addresses={other: ("127.0.0.1", port)}) as node:
        print(node.network.address[1], flush=True)
        await asyncio.Event().wait()
asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.mark.parametrize(("name", "other"), [("a", "b"), ("b", "a")])
def test_a_killed_process_is_proven_gone(
    run: Callable[[Story], None], name: str, other: str, pytestconfig: pytest.Config
) -> None:
    async def story() -> None:
        async with Node(identity(name), addresses={other: NOWHERE}) as survivor:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                PROCESS,
                other,
                name,
                str(survivor.network.address[1]),
                stdout=asyncio.subprocess.PIPE,
                cwd=pytestconfig.rootpath / "tests",
            )
            try:
                assert process.stdout is not None
                port = int(await process.stdout.readline())
                survivor.network.set_addresses({other: ("127.0.0.1", port)})
                await survivor.host.until_events("up")
            finally:
                process.kill()
                await process.wait()
            await survivor.host.until_events("up", "down", "gone")

    run(story)


def test_a_broken_link_to_a_living_peer_is_never_gone(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        a, b = pair()
        async with a, b:
            introduce(a, b)
            await a.host.until_events("up")
            await b.host.until_events("up")
            b.host.fault = PeerError("frame: cannot be")
            a.network.send(b.id, [frame(1)])
            await a.host.until_events("up", "down", "up")
            await b.host.until_events("up", "down", "up")

    run(story)


def test_an_address_given_later_or_taken_away_is_followed(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        a, b = pair()
        async with a, b:
            b.network.set_addresses({"a": a.network.address})
            a.network.set_addresses({"b": ("localhost", b.network.address[1])})
            await a.host.until_events("up")
            a.network.set_addresses({})
            await a.host.until_events("up", "down")
            await b.host.until(lambda: ("down", a.id) in b.host.events)
            introduce(a, b)
            await a.host.until_events("up", "down", "up")

    run(story)


def test_a_listener_drops_a_peer_that_is_taken_away(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        a, b = pair()
        with LogWatch() as log:
            async with a, b:
                introduce(a, b)
                await b.host.until_events("up")
                b.network.set_addresses({})
                await b.host.until_events("up", "down")
                await log.until("name 'a' is not among the peers of 'b'")
                assert not b.network.send(a.id, [frame(1)])
                assert b.host.events == [("up", a.id), ("down", a.id)]

    run(story)


def test_a_silent_link_is_closed(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        limits = replace(LIMITS, silent_s_max=0.05)
        a = Node(identity("a"), addresses={"b": NOWHERE}, limits=limits)
        b = Node(identity("b"), addresses={"a": NOWHERE})
        async with a, b:
            introduce(a, b)
            await a.host.until(lambda: len(a.host.events) >= 3)
            assert [kind for kind, _ in a.host.events[:3]] == ["up", "down", "up"]

    run(story)


@pytest.mark.parametrize(("name", "other"), [("a", "b"), ("b", "a")])
def test_what_was_sent_before_close_still_arrives(
    run: Callable[[Story], None], name: str, other: str
) -> None:
    """More than the system's buffers hold, so that most of it waits when the closing begins."""

    async def story() -> None:
        limits = replace(LIMITS, socket_buffer_bytes=1 << 16, close_s_max=20.0)
        async with Node(identity(other), addresses={name: NOWHERE}, limits=limits) as there:
            async with Node(identity(name), addresses={other: NOWHERE}, limits=limits) as here:
                introduce(here, there)
                await here.host.until_events("up")
                big = b"".join(codec.encode(1, Append(1, 1, 1, 1, ((bytes(1 << 20), 2, 1),))))
                for _ in range(8):
                    assert here.network.send(there.id, [big])
            await there.host.until(lambda: len(there.host.frames) == 8)
            assert here.host.events == [("up", there.id)]  # no events once closing has begun

    run(story)


def test_frames_across_the_end_of_the_receive_buffer_arrive_equal(
    run: Callable[[Story], None],
) -> None:
    async def story() -> None:
        limits = replace(LIMITS, receive_buffer_bytes=2048)
        a = Node(identity("a"), addresses={"b": NOWHERE})
        b = Node(identity("b"), addresses={"a": NOWHERE}, limits=limits)
        async with a, b:
            introduce(a, b)
            await a.host.until_events("up")
            sent = []
            for number in range(3000):
                command = bytes([number % 251]) * (number * 7 % 2500)
                whole = b"".join(codec.encode(1, Append(1, 1, 1, 1, ((command, 2, 1),))))
                assert a.network.send(b.id, [whole])
                sent.append((a.id, whole))
            await b.host.until(lambda: len(b.host.frames) == len(sent))
            assert b.host.frames == sent

    run(story)


def test_our_own_mistake_in_a_frame_is_loud_and_costs_that_link_only(
    run: Callable[[Story], None],
) -> None:
    async def story() -> None:
        heard: list[BaseException] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: heard.append(context["exception"]))
        a, b = pair()
        c = Node(identity("c"), addresses={"a": NOWHERE, "b": NOWHERE})
        async with a, b, c:
            introduce(a, b, c)
            for node in (a, b, c):
                await node.host.until_events("up", "up")
            b.host.fault = KeyError("a mistake")
            assert a.network.send(b.id, [frame(1)])
            await b.host.until_events("up", "up", "down", "up")
            assert [repr(error) for error in heard] == ["KeyError('a mistake')"]
            assert b.host.events[2:] == [("down", a.id), ("up", a.id)]
            assert b.network.send(c.id, [frame(2)])
            await c.host.until(lambda: c.host.frames == [(b.id, frame(2))])

    run(story)


def test_sending_to_nobody_is_false_and_has_no_backlog(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        a, _ = pair()
        async with a:
            assert not a.network.send("b@00", [frame(1)])
            assert a.network.backlog_bytes("b@00") == 0

    run(story)


def test_settings_that_cannot_work_are_refused(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        with pytest.raises(ConfigError, match="at least 16"):
            Node(identity("a"), addresses={}, secret=SECRET[:15])
        async with Node(identity("a"), addresses={}) as first:
            port = first.network.address[1]
            second = Node(identity("b"), addresses={}, port=port)
            with pytest.raises(ConfigError, match="cannot be listened on"):
                await second.network.start()
            await second.network.close()

    run(story)


def test_an_answer_sent_from_within_on_frame_arrives(run: Callable[[Story], None]) -> None:
    async def story() -> None:
        a, b = pair()
        answer = b"".join(codec.encode(1, Appended(1, 2, False, True)))
        b.host.react = lambda peer, _: b.network.send(peer, [answer])
        async with a, b:
            introduce(a, b)
            await a.host.until_events("up")
            for number in range(100):
                a.network.send(b.id, [frame(number)])
            await a.host.until(lambda: a.host.frames == [(b.id, answer)] * 100)

    run(story)

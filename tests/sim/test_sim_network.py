"""The simulated network: links come and go as TCP's would, and frames keep their order."""

import operator
import random
from functools import partial

from sim.loop import NodeScheduler, SimLoop
from sim.network import POISON, Fabric, SimNetwork, Weather

SEEDS = range(30)


class Ear:
    """Writes down what a carrier tells."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str, bytes]] = []
        self.kept: list[memoryview] = []

    def on_up(self, peer: str, boot: bytes) -> None:
        self.log.append(("up", peer, boot))

    def on_down(self, peer: str) -> None:
        self.log.append(("down", peer, b""))

    def on_gone(self, peer: str) -> None:
        self.log.append(("gone", peer, b""))

    def on_frame(self, peer: str, frame: memoryview) -> None:
        self.log.append(("frame", peer, bytes(frame)))
        self.kept.append(frame[:1])

    def events(self) -> list[str]:
        return [kind for kind, _, _ in self.log if kind != "frame"]

    def frames(self) -> list[bytes]:
        return [content for kind, _, content in self.log if kind == "frame"]


class Net:
    def __init__(self, seed: int, weather: Weather | None = None) -> None:
        self.loop = SimLoop()
        self.fabric = Fabric(self.loop, rng=random.Random(seed), weather=weather or Weather())
        self.ears: dict[str, Ear] = {}
        self.schedulers: dict[str, NodeScheduler] = {}

    def start(self, node: str, boot: bytes = b"1") -> SimNetwork:
        scheduler = NodeScheduler(self.loop, on_crash=lambda: None, after=lambda: None)
        network = self.fabric.join(node, boot=boot, scheduler=scheduler)
        self.ears[node] = Ear()
        self.schedulers[node] = scheduler
        network.attach(self.ears[node])
        return network

    def kill(self, node: str, *, refuses: bool) -> None:
        self.schedulers[node].kill()
        self.fabric.leave(node, refuses=refuses)

    def run(self, seconds: float) -> None:
        self.loop.run_until(self.loop.now + seconds)


def test_links_come_up_on_both_sides_and_frames_keep_their_order() -> None:
    for seed in SEEDS:
        net = Net(seed)
        one, two = net.start("a"), net.start("b", b"2")
        assert not one.send("b", [b"too early"])
        net.run(1.0)
        for number in range(50):
            assert one.send("b", [b"%d" % number, b"!"])
            assert two.send("a", [b"%d" % number])
        net.run(1.0)
        assert net.ears["a"].log[0] == ("up", "b", b"2")
        assert net.ears["b"].log[0] == ("up", "a", b"1")
        assert net.ears["b"].frames() == [b"%d!" % number for number in range(50)]
        assert net.ears["a"].frames() == [b"%d" % number for number in range(50)]


def test_frame_sent_the_moment_the_link_is_up_arrives_behind_the_news() -> None:
    for seed in SEEDS:
        net = Net(seed)
        one = net.start("a")
        net.start("b")
        net.loop.run_until_true(partial(operator.contains, one.links, "b"), limit_s=1.0)
        assert one.send("b", [b"hello"])
        net.run(1.0)
        assert [kind for kind, _, _ in net.ears["b"].log] == ["up", "frame"]


def test_view_of_a_frame_is_spoilt_after_the_call() -> None:
    net = Net(1)
    one = net.start("a")
    net.start("b")
    net.run(1.0)
    one.send("b", [b"hello"])
    net.run(1.0)
    assert net.ears["b"].kept[0][0] == POISON


def test_killed_process_resets_its_links_and_is_proven_gone() -> None:
    for seed in SEEDS:
        net = Net(seed)
        net.start("a")
        net.start("b")
        net.run(1.0)
        net.kill("b", refuses=True)
        net.run(1.0)
        net.start("b", b"again")
        net.run(1.0)
        assert net.ears["a"].events() == ["up", "down", "gone", "up"]
        assert net.ears["a"].log[-1] == ("up", "b", b"again")


def test_machine_without_power_is_silent_and_never_proven_gone() -> None:
    for seed in SEEDS:
        net = Net(seed)
        net.start("a")
        net.start("b")
        net.run(1.0)
        net.kill("b", refuses=False)
        net.run(0.3)
        assert net.ears["a"].events() == ["up"]
        net.run(6.0)
        assert net.ears["a"].events() == ["up", "down"]
        net.fabric.answers_for("b")
        net.run(1.0)
        assert net.ears["a"].events() == ["up", "down", "gone"]


def test_dead_process_behind_a_blocked_path_is_not_proven_gone() -> None:
    net = Net(1)
    net.start("a")
    net.start("b")
    net.run(1.0)
    net.fabric.block("b", "a")
    net.kill("b", refuses=True)
    net.run(10.0)
    assert net.ears["a"].events() == ["up", "down"]
    net.fabric.open("b", "a")
    net.run(1.0)
    assert net.ears["a"].events() == ["up", "down", "gone"]


def test_newcomer_learns_that_a_peer_is_dead() -> None:
    net = Net(1)
    net.start("b")
    net.kill("b", refuses=True)
    net.start("a")
    net.run(1.0)
    assert net.ears["a"].events() == ["gone"]


def test_frames_wait_before_a_blocked_path_and_arrive_when_it_opens() -> None:
    net = Net(2, Weather(silence_s=(60.0, 60.0)))
    one, two = net.start("a"), net.start("b")
    net.run(1.0)
    net.fabric.block("a", "b")
    for number in range(5):
        one.send("b", [b"%d" % number])
    two.send("a", [b"back"])
    net.run(5.0)
    assert net.ears["b"].frames() == []
    assert net.ears["a"].frames() == [b"back"]
    net.fabric.open("a", "b")
    net.run(1.0)
    assert net.ears["b"].frames() == [b"0", b"1", b"2", b"3", b"4"]


def test_silence_ends_a_link_and_its_waiting_frames() -> None:
    for seed in SEEDS:
        net = Net(seed)
        one = net.start("a")
        net.start("b")
        net.run(1.0)
        net.fabric.block("a", "b")
        one.send("b", [b"lost"])
        net.run(6.0)
        assert net.ears["a"].events() == ["up", "down"]
        assert net.ears["b"].events() == ["up", "down"]
        net.fabric.open("a", "b")
        net.run(1.0)
        assert net.ears["a"].events() == ["up", "down", "up"]
        assert net.ears["b"].frames() == []


def test_paused_process_keeps_its_links_and_takes_frames_after_it_resumes() -> None:
    net = Net(3, Weather(silence_s=(60.0, 60.0)))
    one = net.start("a")
    net.start("b")
    net.run(1.0)
    net.schedulers["b"].pause()
    one.send("b", [b"1"])
    one.send("b", [b"2"])
    net.run(5.0)
    assert net.ears["b"].frames() == []
    net.schedulers["b"].resume()
    net.run(1.0)
    assert net.ears["b"].frames() == [b"1", b"2"]
    assert net.ears["b"].events() == ["up"]


def test_reset_loses_what_was_under_way_and_links_again() -> None:
    net = Net(4)
    one = net.start("a")
    net.start("b")
    net.run(1.0)
    one.send("b", [b"lost"])
    net.fabric.reset("a", "b")
    net.run(1.0)
    assert net.ears["b"].frames() == []
    assert net.ears["a"].events() == ["up", "down", "up"]
    assert net.ears["b"].events() == ["up", "down", "up"]


def test_weather_loses_repeats_and_reorders_frames() -> None:
    weather = Weather(loss=0.2, loss_resets=0.0, repeat=0.2, reorder=0.5)
    net = Net(5, weather)
    one = net.start("a")
    net.start("b")
    net.run(1.0)
    for number in range(200):
        one.send("b", [b"%03d" % number])
    net.run(1.0)
    frames = net.ears["b"].frames()
    assert len(set(frames)) < 200, "nothing lost"
    assert len(frames) > len(set(frames)), "nothing repeated"
    assert frames != sorted(frames), "nothing reordered"


def test_lost_frame_may_take_the_link_with_it() -> None:
    net = Net(6, Weather(loss=1.0, loss_resets=1.0))
    one = net.start("a")
    net.start("b")
    net.run(1.0)
    one.send("b", [b"lost"])
    net.run(1.0)
    assert net.ears["a"].events() == ["up", "down", "up"]


def test_backlog_shows_what_the_system_has_not_taken() -> None:
    net = Net(7, Weather(socket_bytes=100, silence_s=(60.0, 60.0)))
    one = net.start("a")
    net.start("b")
    net.run(1.0)
    net.fabric.block("a", "b")
    one.send("b", [bytes(250)])
    assert one.backlog_bytes("b") == 150
    net.fabric.open("a", "b")
    net.run(1.0)
    assert one.backlog_bytes("b") == 0

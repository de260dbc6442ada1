"""A node dies at each single change it makes to its disk, one after the other.

The cluster starts, works a little, and the chosen node dies at its n-th change from then on: in
the middle of a write, before a sync, between a rename and the sync of its folder. Whatever is
left, it must come back, and nothing confirmed may be missing.
"""

from dataclasses import replace

import pytest

from sim import profile
from sim.profile import Profile
from sim.world import World

WARM_S = 1.2  # long enough for a leader
POINTS_MAX = 160  # covers rolls, checkpoints, trims and recycled files under these limits


def calm() -> Profile:
    drawn = profile.draw(1)
    return replace(
        drawn,
        node_count=3,
        voter_count=3,
        group_count=2,
        run_s=WARM_S + 2.0,
        faults=(),
        disk_choices_s=(0.0002, 0.001),
        limits=replace(drawn.limits, checkpoint_bytes=8 << 10),
        journal=replace(drawn.journal, file_bytes=24 << 10),
    )


def crash_at(point: int) -> None:
    world = World(point, calm())
    node = world.nodes[point % len(world.nodes)]
    world.loop.call_later(WARM_S, node.volume.crash_at, point)
    report = world.run()
    assert report.broken is None, f"{report}\n" + "\n".join(report.trace)
    assert any("dies at a crash point" in line for line in report.trace), "never reached"
    assert report.confirmed_count > 0


@pytest.mark.parametrize("point", range(1, POINTS_MAX, 23))
def test_crash_at_some_changes(point: int) -> None:
    crash_at(point)


@pytest.mark.slow
@pytest.mark.parametrize("point", range(1, POINTS_MAX))
def test_crash_at_every_change(point: int) -> None:
    crash_at(point)

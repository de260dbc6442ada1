"""Whole simulated runs: they repeat exactly, and every kind of fault can be survived."""

from dataclasses import replace

import pytest

from sim import profile
from sim.world import World

SHORT_S = 3.0


def test_same_seed_repeats_the_same_run() -> None:
    first, again = World(17).run(), World(17).run()
    assert first == again
    assert first.event_count > 1000
    assert World(18).run() != first


@pytest.mark.parametrize("fault", profile.FAULTS)
def test_cluster_survives_one_kind_of_fault(fault: str) -> None:
    drawn = profile.draw(3)
    report = World(3, replace(drawn, faults=(fault,), run_s=SHORT_S)).run()
    assert report.broken is None, f"{report}\n" + "\n".join(report.trace)
    assert report.fault_count > 0
    assert report.confirmed_count > 0


def test_lagging_member_installs_a_checkpoint() -> None:
    drawn = profile.draw(3)
    limits = replace(drawn.limits, checkpoint_bytes=8 << 10, lag_bytes_max=4 << 10)
    report = World(3, replace(drawn, faults=("isolate", "checkpoint"), limits=limits)).run()
    assert report.broken is None, f"{report}\n" + "\n".join(report.trace)
    assert report.install_count > 0

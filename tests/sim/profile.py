"""What one simulated run is made of: sizes, times and the kinds of trouble in it.

Each seed draws its own mixture (few kinds of faults at once find more than all of them always), so
a seed alone stands for the whole run.
"""

import random
from dataclasses import dataclass, replace

from lograft_replication.bulk import Limits as BulkLimits
from lograft_replication.journal_limits import JournalLimits
from lograft_replication.timing import GroupLimits, Timing

FAULTS = (
    "stop",
    "kill",
    "kill_leader",
    "power_cut",
    "power_cut_all",
    "crash_point",
    "cut_link",
    "cut_one_way",
    "isolate",
    "reset_link",
    "storm_weather",
    "pause",
    "clock_jump",
    "slow_disk",
    "full_disk",
    "sync_error",
    "flip_bit",
    "lose_volume",
    "move_member",
    "resize",
    "transfer",
    "holes",
    "checkpoint",
)
THEMES = (
    ("kill_leader", "power_cut", "power_cut_all", "crash_point", "cut_link", "slow_disk"),
    ("isolate", "pause", "cut_one_way", "cut_link", "storm_weather", "transfer", "clock_jump"),
    ("lose_volume", "flip_bit", "move_member", "checkpoint", "transfer", "kill", "reset_link"),
    ("full_disk", "sync_error", "crash_point", "slow_disk", "checkpoint", "stop", "power_cut"),
    ("slow_disk", "checkpoint", "kill", "kill_leader", "power_cut", "cut_link"),
    ("resize", "move_member", "transfer", "kill_leader", "isolate", "pause", "power_cut"),
    ("holes", "transfer", "kill_leader", "isolate", "cut_link", "checkpoint"),
    FAULTS,
)
FAULTS_AT_LEAST = 3  # kinds in one run

DRIFT_MAX = 0.045  # the lease allows for clocks that differ by so much from the true time
BURST_BYTES = 4 << 10
TIMING = Timing()
GROUP_LIMITS = GroupLimits(command_bytes_max=4 << 10, append_bytes_max=8 << 10)
JOURNAL_LIMITS = JournalLimits(file_bytes=32 << 10, entry_bytes_max=8 << 10, group_count_max=8)
BULK_LIMITS = BulkLimits(
    chunk_bytes_max=2048,
    burst_bytes=64 << 10,
    chunk_s_max=3.0,
    silence_s_max=10.0,
    free_bytes_min=0,
    pin_s_max=3.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    node_count: int = 3
    voter_count: int = 3
    group_count: int = 2
    run_s: float = 12.0
    settle_s: float = 60.0  # how long the healed cluster may take to become whole and live
    fault_gap_s: tuple[float, float] = (0.05, 0.9)
    client_gap_s: tuple[float, float] = (0.004, 0.04)
    command_bytes: tuple[int, ...] = (16, 60, 300, 2000)
    clock_drift: float = 0.01  # rates lie within 1 plus or minus this
    disk_choices_s: tuple[float, ...] = (0.0002, 0.001, 0.005)
    faults: tuple[str, ...] = FAULTS
    timing: Timing = TIMING
    limits: GroupLimits = GROUP_LIMITS
    journal: JournalLimits = JOURNAL_LIMITS
    bulk: BulkLimits = BULK_LIMITS


def draw(seed: int) -> Profile:
    rng = random.Random(f"{seed}/profile")
    node_count = rng.choice((3, 3, 5))
    theme = rng.choice(THEMES)
    most = min(len(theme), rng.choice((6, len(FAULTS))))
    faults = rng.sample(theme, rng.randint(FAULTS_AT_LEAST, most))
    return Profile(
        node_count=node_count,
        voter_count=rng.choice((3, node_count)),
        group_count=rng.choice((1, 2, 3)),
        faults=tuple(sorted(faults)),
        fault_gap_s=rng.choice(((0.05, 0.5), (0.05, 1.0), (0.3, 2.0))),
        client_gap_s=rng.choice(((0.002, 0.02), (0.005, 0.05))),
        clock_drift=rng.choice((0.0, 0.01, DRIFT_MAX)),
        disk_choices_s=rng.choice(((0.0002, 0.001, 0.005), (0.001, 0.005, 0.03, 0.2))),
        limits=replace(
            GROUP_LIMITS,
            window_bytes_max=rng.choice((4 << 10, 64 << 10)),
            apply_bytes_max=rng.choice((1 << 10, 64 << 10)),
            checkpoint_bytes=rng.choice((8 << 10, 64 << 10, 1 << 20)),
            lag_bytes_max=rng.choice((4 << 10, 64 << 10)),
            lag_s_max=rng.choice((1.0, 3600.0)),
            absent_s_max=rng.choice((0.0, 2.0)),
            learner_lag_bytes_max=rng.choice((16 << 10, 1 << 20)),
        ),
        journal=replace(
            JOURNAL_LIMITS,
            file_bytes=rng.choice((24 << 10, 64 << 10)),
            flush_bytes_max=rng.choice((2 << 10, 64 << 10)),
            memory_bytes_max=rng.choice((0, 8 << 10, 1 << 20)),
        ),
        # A slow pull takes seconds, while checkpoints go on.
        bulk=replace(BULK_LIMITS, bytes_per_s=rng.choice((100e6, 20e3)), burst_bytes=BURST_BYTES),
    )

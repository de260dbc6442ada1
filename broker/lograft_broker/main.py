"""Start one node of a Lograft cluster.

`lograft serve`: the choice of the real world for a node. How it is run, and the exit codes, are in
`server`; what it is made of, in `node`.
"""

import sys

from lograft_broker import node, server
from lograft_log import env
from lograft_wire import config
from lograft_wire.config import Settings


def command(argv: list[str]) -> int:
    if "--help" in argv or "-h" in argv:
        sys.stdout.write(config.usage() + "\n")
        return 0
    return server.run(argv, _real_node, out=sys.stdout, errors=sys.stderr)


def _real_node(settings: Settings) -> server.ServedNode:
    return node.Node(settings, clock=env.RealClock(), disk=env.RealDisk())

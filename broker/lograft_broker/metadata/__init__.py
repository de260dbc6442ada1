"""The metadata of the cluster: vhosts, users, policies, exchanges, queues, bindings, nodes.

A pure machine driven by the `meta` Raft group: every change is a command that every replica applies
in the same order. Nothing here reads a clock, chance, a disk or a socket; what a change needs of
them stands in its command. `machine` is the face; channels, the router, queues and the admin API
read its `state` and propose `commands`.
"""

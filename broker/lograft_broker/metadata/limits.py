"""How large metadata may become. Decides what `apply` refuses, so it is the same on every node."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLimits:
    name_bytes_max: int = 255  # an AMQP short string; also for vhosts, users and policies
    text_bytes_max: int = 4096  # descriptions and password hashes
    regex_chars_max: int = 1024
    tag_count_max: int = 32
    arguments_bytes_max: int = 64 << 10  # one table, encoded
    json_bytes_max: int = 256 << 10  # one definition or parameter
    shard_count_max: int = 1024
    vhost_count_max: int = 10_000
    user_count_max: int = 100_000
    grant_count_max: int = 1_000_000  # permissions and topic permissions, each
    policy_count_max: int = 10_000  # policies and operator policies, each
    parameter_count_max: int = 10_000  # of vhosts and global, each
    exchange_count_max: int = 100_000
    queue_count_max: int = 1_000_000
    binding_count_max: int = 5_000_000
    node_count_max: int = 1024


DEFAULT = MetadataLimits()

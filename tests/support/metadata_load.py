"""Random metadata commands that meet each other: few names, so that most of them find something."""

from hypothesis import strategies as st

from lograft_broker.metadata import commands
from lograft_broker.metadata.commands import Command
from lograft_broker.metadata.rows import ApplyTo, ConnectionId, Kind, QueueType
from lograft_broker.metadata.values import Arguments, Json, JsonValue
from lograft_wire.amqp import fields

VHOSTS = st.sampled_from(["/", "/", "/", "v", "w"])
NAMES = st.sampled_from(["a", "b", "c", "d", "amq.direct", "amq.gen-1", "", "x\ny", "é" * 200])
EXCHANGES = st.sampled_from(["a", "b", "c", "d", "amq.topic", "amq.headers", ""])
USERS = st.sampled_from(["guest", "u", "w", ""])
NODES = st.sampled_from(["one", "two"])
BOOTS = st.sampled_from([b"boot-one", b"boot-two", b"x"])
CONNECTIONS = st.builds(ConnectionId, NODES, BOOTS, st.integers(0, 2))
PATTERNS = st.sampled_from(["", ".*", "^a", "b$", "(", "x" * 2000])
TEXTS = st.sampled_from(["", "t", "text", "d" * 5000])
LIMITS = st.sampled_from(["max-queues", "max-connections", "max-channels", "nothing"])
FLAGS = st.booleans()

_VALUE_LIST: list[fields.Value] = [
    None,
    True,
    0,
    5,
    fields.Int8(-1),
    fields.Int64(5),
    2.5,
    float("nan"),
    "classic",
    "quorum",
    "stream",
    "drop-head",
    "topic",
    "all",
    "1D",
    b"\xff",
    fields.LongStr(b"\xff"),
    fields.Timestamp(5),
    fields.Decimal(scale=1, value=5),
    [1, {"a": None}],
    {"n": [True]},
]
_VALUES = st.sampled_from(_VALUE_LIST)
_NO_TABLE: dict[str, fields.Value] = {}
ARGUMENTS = st.one_of(
    st.just(_NO_TABLE),
    st.dictionaries(
        st.sampled_from(
            [
                "x-queue-type",
                "x-max-length",
                "x-message-ttl",
                "x-overflow",
                "x-max-age",
                "x-dead-letter-exchange",
                "x-dead-letter-routing-key",
                "alternate-exchange",
                "x-delayed-type",
                "x-match",
                "hash-header",
                "hash-property",
                "other",
            ]
        ),
        _VALUES,
        max_size=3,
    ),
).map(Arguments)
_JSON_LIST: list[JsonValue] = [
    {"max-length": 5},
    {"message-ttl": 1, "overflow": "drop-head"},
    {"max-age": "1D"},
    {"max-length": "x"},
    {"alternate-exchange": "a"},
    {"unknown": [10**40]},
    {},
    [1],
    None,
]
JSON = st.sampled_from(_JSON_LIST).map(Json)

CLUSTER: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        commands.FirstStart,
        shard_count=st.sampled_from([0, 3, 2000]),
        vhost=VHOSTS,
        user=USERS,
        password_hash=TEXTS,
    ),
    st.builds(commands.NodeBooted, node=NODES, boot=BOOTS),
    st.builds(commands.NodeGone, node=NODES, boot=BOOTS),
    st.builds(commands.ConnectionClosed, connection=CONNECTIONS),
)
ADMIN: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        commands.PutVhost,
        name=VHOSTS,
        description=TEXTS,
        tags=st.sampled_from([(), ("t",), ("",)]),
        default_queue_type=st.sampled_from([None, *QueueType]),
    ),
    st.builds(commands.DeleteVhost, name=VHOSTS),
    st.builds(
        commands.SetVhostLimit,
        vhost=VHOSTS,
        limit=LIMITS,
        value=st.sampled_from([None, -1, 0, 4]),
    ),
    st.builds(commands.PutUser, name=USERS, password_hash=TEXTS),
    st.builds(commands.DeleteUser, name=USERS),
    st.builds(
        commands.SetUserLimit, user=USERS, limit=LIMITS, value=st.sampled_from([None, -1, 0, 4])
    ),
    st.builds(
        commands.SetPermission,
        user=USERS,
        vhost=VHOSTS,
        configure=PATTERNS,
        write=PATTERNS,
        read=PATTERNS,
    ),
    st.builds(commands.ClearPermission, user=USERS, vhost=VHOSTS),
    st.builds(
        commands.SetTopicPermission,
        user=USERS,
        vhost=VHOSTS,
        exchange=EXCHANGES,
        write=PATTERNS,
        read=PATTERNS,
    ),
    st.builds(
        commands.ClearTopicPermission,
        user=USERS,
        vhost=VHOSTS,
        exchange=st.one_of(st.none(), EXCHANGES),
    ),
)
RULES: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        commands.SetPolicy,
        vhost=VHOSTS,
        name=NAMES,
        pattern=PATTERNS,
        apply_to=st.sampled_from(list(ApplyTo)),
        priority=st.sampled_from([0, 1, -1, 1 << 50]),
        definition=JSON,
        operator=FLAGS,
    ),
    st.builds(commands.ClearPolicy, vhost=VHOSTS, name=NAMES, operator=FLAGS),
    st.builds(commands.SetParameter, vhost=VHOSTS, component=NAMES, name=NAMES, value=JSON),
    st.builds(commands.ClearParameter, vhost=VHOSTS, component=NAMES, name=NAMES),
    st.builds(commands.SetGlobalParameter, name=NAMES, value=JSON),
    st.builds(commands.ClearGlobalParameter, name=NAMES),
)
TOPOLOGY: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        commands.DeclareExchange,
        vhost=VHOSTS,
        name=NAMES,
        type=st.sampled_from(
            ["direct", "topic", "headers", "x-consistent-hash", "x-delayed-message", "none"]
        ),
        durable=FLAGS,
        auto_delete=FLAGS,
        internal=FLAGS,
        arguments=ARGUMENTS,
    ),
    st.builds(commands.DeleteExchange, vhost=VHOSTS, name=NAMES, if_unused=FLAGS),
    st.builds(
        commands.DeclareQueue,
        vhost=VHOSTS,
        name=NAMES,
        by=CONNECTIONS,
        durable=FLAGS,
        exclusive=FLAGS,
        auto_delete=FLAGS,
        server_named=FLAGS,
        arguments=ARGUMENTS,
    ),
    st.builds(
        commands.DeleteQueue,
        vhost=VHOSTS,
        name=NAMES,
        by=st.one_of(st.none(), CONNECTIONS),
        id=st.sampled_from([0, 0, 5]),
    ),
    *(
        st.builds(
            kind,
            vhost=VHOSTS,
            source=EXCHANGES,
            kind=st.sampled_from(list(Kind)),
            destination=NAMES,
            by=CONNECTIONS,
            routing_key=st.sampled_from(["", "k", "3", "-+1", "\udcff", "k" * 300]),
            arguments=ARGUMENTS,
        )
        for kind in (commands.Bind, commands.Unbind)
    ),
)
# Mostly topology: it has the cascades.
COMMANDS = st.one_of(TOPOLOGY, TOPOLOGY, TOPOLOGY, TOPOLOGY, TOPOLOGY, CLUSTER, ADMIN, RULES)
START: list[Command] = [
    commands.FirstStart(shard_count=3, vhost="/", user="guest", password_hash=""),
    commands.NodeBooted(node="one", boot=b"boot-one"),
    commands.NodeBooted(node="two", boot=b"boot-two"),
    commands.PutVhost(name="v"),
]
# Valid more often than not, so that sequences build something to take down again.
BUILDING: st.SearchStrategy[Command] = st.one_of(
    st.builds(
        commands.DeclareExchange,
        vhost=st.sampled_from(["/", "v"]),
        name=st.sampled_from(["a", "b", "c", "d"]),
        type=st.sampled_from(["direct", "topic", "fanout"]),
        durable=FLAGS,
        auto_delete=FLAGS,
    ),
    st.builds(
        commands.DeclareQueue,
        vhost=st.sampled_from(["/", "v"]),
        name=st.sampled_from(["a", "b", "c", "d"]),
        by=st.sampled_from(
            [ConnectionId("one", b"boot-one", 1), ConnectionId("two", b"boot-two", 1)]
        ),
        durable=FLAGS,
        exclusive=FLAGS,
    ),
    st.builds(
        commands.Bind,
        vhost=st.sampled_from(["/", "v"]),
        source=st.sampled_from(["a", "b", "c", "d"]),
        kind=st.sampled_from(list(Kind)),
        destination=st.sampled_from(["a", "b", "c", "d"]),
        by=st.sampled_from(
            [ConnectionId("one", b"boot-one", 1), ConnectionId("two", b"boot-two", 1)]
        ),
        routing_key=st.sampled_from(["", "k"]),
    ),
)
SEQUENCES = st.tuples(
    st.lists(BUILDING, min_size=15, max_size=40),
    st.lists(st.one_of(COMMANDS, BUILDING), min_size=10, max_size=40),
).map(lambda parts: [*START, *parts[0], *parts[1]])

"""Where settings come from, and which place wins."""

from collections.abc import Callable

import pytest

from lograft_wire import config
from lograft_wire.config import Settings
from lograft_wire.errors import ConfigError


def files(**texts: str) -> Callable[[str], str]:
    def read(path: str) -> str:
        if path not in texts:
            raise FileNotFoundError(2, "No such file or directory", path)
        return texts[path]

    return read


def load(
    *argv: str,
    environment: dict[str, str] | None = None,
    read_file: Callable[[str], str] = files(),  # noqa: B008
) -> Settings:
    return config.load(argv, environment or {}, read_file=read_file)


def test_defaults_are_a_cluster_of_one_on_loopback() -> None:
    settings = load()
    assert settings.data == "./data"
    assert settings.host == "127.0.0.1"
    assert settings.peers == ()
    assert (settings.amqp_port, settings.http_port) == (5672, 15672)
    assert (settings.feed_port, settings.peer_port) == (7470, 7471)
    assert settings.offset_checkpoint_interval_s == 5.0
    assert settings.journal_file_bytes == 64 * 2**20
    assert settings.shards == 12


def test_command_line_wins_over_environment_and_environment_over_file() -> None:
    read = files(conf="node: from-file\nhost: file-host\ncluster-id: file-id\n")
    environment = {"LOGRAFT_NODE": "from-environment", "LOGRAFT_HOST": "environment-host"}
    settings = load("--config", "conf", "--node=from-line", environment=environment, read_file=read)
    assert settings.node == "from-line"
    assert settings.host == "environment-host"
    assert settings.cluster_id == "file-id"


def test_config_file_may_be_named_in_the_environment() -> None:
    read = files(conf="http-port: 0\noffset-checkpoint-interval: 0\njournal-file-bytes: 16MiB\n")
    settings = load(environment={"LOGRAFT_CONFIG": "conf"}, read_file=read)
    assert (settings.http_port, settings.offset_checkpoint_interval_s) == (0, 0.0)
    assert settings.journal_file_bytes == 2**24


def test_storage_path_is_another_name_of_data_everywhere() -> None:
    assert load("--storage-path", "a").data == "a"
    assert load(environment={"LOGRAFT_STORAGE_PATH": "b"}).data == "b"
    assert load("--config=c", read_file=files(c="storage-path: d")).data == "d"


def test_name_and_alias_in_one_place_are_refused() -> None:
    with pytest.raises(ConfigError, match="LOGRAFT_DATA and LOGRAFT_STORAGE_PATH set the same"):
        load(environment={"LOGRAFT_DATA": "a", "LOGRAFT_STORAGE_PATH": "b"})


def test_last_of_several_options_counts() -> None:
    assert load("--data", "a", "--data", "b").data == "b"


@pytest.mark.parametrize(
    ("argv", "complaint"),
    [
        (["--amqp-prt", "1"], "unknown option '--amqp-prt'; did you mean --amqp-port"),
        (["serve"], "unknown option 'serve'"),
        (["--data"], "--data needs a value: --data DIR"),
        (["--http-port", "99999"], "--http-port: '99999' cannot be used: a port is a number"),
        (["--http-port="], "--http-port: '' cannot be used: a port is a number"),
        (["--log-level", "loud"], "--log-level: 'loud' cannot be used: it must be one of debug"),
        (["--shards", "0"], "--shards: '0' cannot be used: it must be a number from 1"),
        (["--node", "a@b"], "--node: 'a@b' cannot be used: a name is"),
        (["--data", " "], "--data: ' ' cannot be used: it may not be empty"),
        (["--journal-file-bytes", "1KB"], "it must be from 1MiB to 1GiB"),
        (["--config", "none"], "--config: cannot read none"),
        (["--tls-cert", "c"], "--tls-key, --tls-ca not given"),
        (["--amqp-port", "7471"], "--amqp-port and --peer-port are both 7471"),
    ],
)
def test_wrong_command_line_is_named_with_what_would_be_right(
    argv: list[str], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load(*argv)


def test_wrong_environment_names_the_variable() -> None:
    with pytest.raises(ConfigError, match="LOGRAFT_HTTP_PORT: 'web' cannot be used"):
        load(environment={"LOGRAFT_HTTP_PORT": "web"})
    with pytest.raises(ConfigError, match="LOGRAFT_HTTP_PROT; did you mean LOGRAFT_HTTP_PORT"):
        load(environment={"LOGRAFT_HTTP_PROT": "1"})


def test_service_links_of_kubernetes_are_not_settings() -> None:
    settings = load(
        environment={
            "LOGRAFT_SERVICE_HOST": "10.0.0.1",
            "LOGRAFT_SERVICE_PORT_AMQP": "5672",
            "LOGRAFT_AMQP_PORT": "tcp://10.0.0.1:5672",
            "LOGRAFT_PORT_5672_TCP_ADDR": "10.0.0.1",
        }
    )
    assert settings.amqp_port == 5672


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("amqp_port: 1", "unknown setting amqp_port in conf; did you mean amqp-port"),
        ("- a", "conf must hold `name: value` lines, not a list"),
        ("a: [", "conf is not YAML"),
        ("log-level: yes", "log-level in conf: True is a YAML bool: put it in quotes"),
        ("offset-checkpoint-interval: 1.5", "is a YAML float: put it in quotes"),
        ("offset-checkpoint-interval: 5", "'5' cannot be used: it has no unit"),
        ("node: [a, b]", "node in conf: expected one value, not a list"),
        ("config: other", "a config file cannot name another one"),
        ("http-port: !!python/object/apply:os.system [ls]", "conf is not YAML"),
    ],
)
def test_wrong_file_is_named_with_what_would_be_right(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load("--config", "conf", read_file=files(conf=text))


def test_empty_file_sets_nothing() -> None:
    assert load("--config", "conf", read_file=files(conf="# nothing\n")).node == "node-1"


SECRET = "0123456789abcdef"


def test_peers_in_a_file_may_be_one_per_line() -> None:
    text = f"node: b\npeer-secret: '{SECRET}'\npeers:\n  a: host-a:7471\n  b: host-b:7471\n"
    settings = load("--config", "conf", read_file=files(conf=text))
    assert [peer.name for peer in settings.peers] == ["a", "b"]
    assert [peer.host for peer in settings.other_peers] == ["host-a"]


def test_shards_follow_the_number_of_nodes_above_three() -> None:
    def shards(count: int) -> int:
        peers = ",".join(f"n{number}=h:{7000 + number}" for number in range(count))
        return load("--node=n0", f"--peers={peers}", f"--peer-secret={SECRET}").shards

    assert (shards(3), shards(5)) == (12, 20)
    assert load("--shards=5").shards == 5


def test_node_must_be_among_its_peers() -> None:
    with pytest.raises(ConfigError, match=r"--node node-1 is not among --peers \(a, b\)"):
        load("--peers=a=h:1,b=h:2", f"--peer-secret={SECRET}")


def test_peers_without_a_secret_are_refused() -> None:
    with pytest.raises(ConfigError, match="--peers needs --peer-secret-file"):
        load("--node=a", "--peers=a=h:1,b=h:2")


def test_secret_is_read_from_its_file_and_never_shown() -> None:
    settings = load("--peer-secret-file", "s", read_file=files(s=SECRET + "\n"))
    assert settings.peer_secret == SECRET
    assert SECRET not in repr(settings)


def test_short_secret_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError, match="the secret has 5 characters") as caught:
        load("--peer-secret", "hush!")
    assert "hush!" not in str(caught.value)


def test_secret_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="--peer-secret and --peer-secret-file both give"):
        load("--peer-secret", SECRET, "--peer-secret-file", "s", read_file=files(s=SECRET))


def test_usage_lists_every_option_with_its_default() -> None:
    usage = config.usage()
    for option in config.OPTIONS:
        assert f"--{option.name} {option.value}" in usage
        assert option.default in usage
    assert "--storage-path" in usage

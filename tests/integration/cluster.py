"""Clusters of real gyred processes: starts, breaks, asks and stops them.

Every wait has a deadline. A node that ends by itself fails the test that uses it. Nodes die with this process, however
that ends.
"""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.environ["TEST_STUBS"])

import grpc  # noqa: E402
from proto import admin_pb2, admin_pb2_grpc, kv_pb2, kv_pb2_grpc, peer_pb2, peer_pb2_grpc  # noqa: E402

GYRED = os.environ["GYRED"]
GYRE = os.environ["GYRE"]
READY_SECONDS = 30.0
CALL_SECONDS = 10.0

# Below the ports that the kernel gives to outgoing connections, so that none of those can take one of ours.
PORTS = range(20000, 30000)
_next_port = PORTS.start + os.getpid() * 7 % len(PORTS)

_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", 32 << 20),
    ("grpc.max_send_message_length", 32 << 20),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
]
# What the programs are given: no GYRE_… of whoever runs the tests.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GYRE")}


def skip(reason):
    """Ends this process as a test that cannot run here."""
    print("skipped: " + reason)
    sys.exit(77)


def wait_until(what, condition, seconds=READY_SECONDS):
    """Polls until `condition` gives something true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.01)


def free_ports(count):
    """Ports of loopback that nobody listens on now."""
    global _next_port
    ports = []
    for _ in PORTS:
        port, _next_port = _next_port, PORTS.start + (_next_port + 1 - PORTS.start) % len(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise AssertionError("there are no free ports")


def to_toml(sections):
    lines = []
    for section, settings in sections.items():
        lines.append(f"[{section}]")
        for name, value in settings.items():
            if isinstance(value, list):
                text = "[" + ", ".join(f'"{item}"' for item in value) + "]"
            elif isinstance(value, bool):
                text = str(value).lower()
            else:
                text = str(value) if isinstance(value, int) else f'"{value}"'
            lines.append(f"{name} = {text}")
    return "\n".join(lines) + "\n"


# What a program is started through, so that it dies with the test. Not by a function between fork and exec: gRPC has
# threads here, and what these hold locked at the fork stays locked in the child, which then never gets to its exec.
DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"]


class Result:
    """What a program said and how it ended."""

    def __init__(self, code, stdout, stderr, seconds):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr.decode(errors="replace")
        self.seconds = seconds

    def __repr__(self):
        return f"exit {self.code} after {self.seconds:.2f} s, stdout {self.stdout[:500]!r}, stderr {self.stderr[:1000]!r}"


def run(arguments, stdin=b"", seconds=30.0, environment=ENVIRONMENT):
    """Runs a program to its end, which must come within `seconds`."""
    begun = time.monotonic()
    process = subprocess.Popen([*DIE_WITH_PARENT, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=environment)
    try:
        stdout, stderr = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        raise AssertionError(f"not ended after {seconds:g} s: {arguments}, stdout {stdout[-500:]!r}, "
                             f"stderr {stderr[-1000:]!r}") from None
    return Result(process.returncode, stdout, stderr, time.monotonic() - begun)


def open_channel(port, credentials=None, host="127.0.0.1"):
    target = f"{host}:{port}"
    if credentials is None:
        return grpc.insecure_channel(target, _CHANNEL_OPTIONS)
    # gRPC bounds an attempt to connect by this, too, and a handshake takes its time on a busy machine.
    patient = [("grpc.min_reconnect_backoff_ms", 5000)]
    return grpc.secure_channel(target, credentials, [o for o in _CHANNEL_OPTIONS if o[0] != patient[0][0]] + patient)


class Node:
    """One gyred: its files, its process and ways to call it."""

    def __init__(self, directory, index, ports, data_dir=None, host="127.0.0.1", through=()):
        """`through`: what the program is started through; it then listens at `host`."""
        self.index = index
        self.host = host
        self.through = list(through)
        self.directory = directory
        self.data_dir = data_dir or os.path.join(directory, "data")
        self.config = os.path.join(directory, "gyred.toml")
        self.log_path = os.path.join(directory, "gyred.log")
        self.client_port, self.peer_port, self.http_port = ports
        self.address = f"{host}:{self.client_port}"
        self.peer_address = f"{host}:{self.peer_port}"
        self.credentials = None  # of the channels to it
        self.process = None
        self.ready_seconds = None  # from the last start of the process to the first 200 of /readyz
        self._started = 0.0
        self._channels = {}
        os.makedirs(directory, exist_ok=True)

    def write_config(self, expect, seeds, settings):
        sections = {
            "node": {"data_dir": self.data_dir},
            "listen": {"client": self.address, "peer": self.peer_address, "http": f"{self.host}:{self.http_port}"},
            "cluster": {"bootstrap_expect": expect, "seeds": seeds},
        }
        for section, values in settings.items():
            sections.setdefault(section, {}).update(values)
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(to_toml(sections))

    # --- the process

    def start(self):
        # The kernel kills a child when the thread that made it ends.
        assert threading.current_thread() is threading.main_thread()
        assert not self.running()
        with open(self.log_path, "ab") as log:
            self._started = time.monotonic()
            self.process = subprocess.Popen([*DIE_WITH_PARENT, *self.through, GYRED, "--config", self.config],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)
        self.ready_seconds = None

    def running(self):
        return self.process is not None and self.process.poll() is None

    def check_running(self):
        if self.process is not None and self.process.poll() is not None:
            raise AssertionError(f"node {self.index} ended by itself with {self.process.returncode}; its log:\n{self.log_tail()}")

    def wait_ready(self, seconds=READY_SECONDS):
        def ready():
            self.check_running()
            return self.http("/readyz")[0] == 200

        wait_until(f"node {self.index} is ready", ready, seconds)
        self.ready_seconds = time.monotonic() - self._started

    def _end(self, signals, seconds):
        self.check_running()
        for number in signals:
            self.process.send_signal(number)
        begun = time.monotonic()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"node {self.index} still runs {seconds:g} s after {signals}") from None
        self.process = None
        return code, time.monotonic() - begun

    def kill(self):
        self._end([signal.SIGKILL], 10)

    def stop(self, seconds=15.0):
        """SIGTERM. The exit must be clean; returns how long it took."""
        code, took = self._end([signal.SIGTERM], seconds)
        if code != 0:
            raise AssertionError(f"node {self.index} exited with {code} after SIGTERM; its log:\n{self.log_tail()}")
        return took

    def pause(self):
        """Returns when no thread of it runs any more: the signal stops one, which then stops the others."""
        self.check_running()
        self.process.send_signal(signal.SIGSTOP)
        wait_until(f"node {self.index} stands still", lambda: self._thread_states() == {"T"})

    def _thread_states(self):
        states = set()
        for task in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                with open(f"/proc/{self.process.pid}/task/{task}/stat", encoding="utf-8") as stat:
                    states.add(stat.read().rpartition(")")[2].split()[0])
            except FileNotFoundError:
                states.add("gone just now")
        return states

    def resume(self):
        self.check_running()
        self.process.send_signal(signal.SIGCONT)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def log_tail(self, lines=15):
        return "\n".join(self.log().splitlines()[-lines:])

    # --- ways to call it

    def http(self, path):
        """(status, body) of a page, or (0, why) while nobody answers."""
        connection = http.client.HTTPConnection(self.host, self.http_port, timeout=2)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)
        finally:
            connection.close()

    def metric(self, name):
        status, text = self.http("/metrics")
        if status != 200:
            raise AssertionError(f"node {self.index} shows no metrics: {text}")
        for line in text.splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(f"node {self.index} has no metric {name}")

    def channel(self, port):
        if port not in self._channels:
            self._channels[port] = open_channel(port, self.credentials, self.host)
        return self._channels[port]

    @property
    def kv(self):
        return kv_pb2_grpc.KvStub(self.channel(self.client_port))

    @property
    def admin(self):
        return admin_pb2_grpc.AdminStub(self.channel(self.client_port))

    @property
    def peer(self):
        return peer_pb2_grpc.PeerStub(self.channel(self.peer_port))

    def put(self, key, value, timeout=CALL_SECONDS, **fields):
        return self.kv.Put(kv_pb2.PutRequest(key=key, value=value, **fields), timeout=timeout)

    def get(self, key, timeout=CALL_SECONDS, **fields):
        return self.kv.Get(kv_pb2.GetRequest(key=key, **fields), timeout=timeout)

    def values(self, key, **fields):
        return sorted(value.value for value in self.get(key, **fields).values)

    def delete(self, key, timeout=CALL_SECONDS, **fields):
        return self.kv.Delete(kv_pb2.DeleteRequest(key=key, **fields), timeout=timeout)

    def scan(self, timeout=CALL_SECONDS, **fields):
        """All rows of a scan, from its first page to its last."""
        rows = []
        cursor = b""
        while True:
            page = self.kv.Scan(kv_pb2.ScanRequest(cursor=cursor, **fields), timeout=timeout)
            rows += page.rows
            if not page.next_cursor:
                return rows
            assert page.next_cursor > cursor, "the cursor of a scan went backwards"
            cursor = page.next_cursor

    def topology(self):
        return self.kv.Topology(kv_pb2.TopologyRequest(), timeout=CALL_SECONDS).topology

    def session(self, calls, timeout_ms=10_000, batch=64, in_flight=1024):
        """Makes all calls over one stream; their replies in the order of the calls.

        `calls` are dictionaries of what a SessionRequest has beside its id: {"put": PutRequest(...)}.
        """
        room = threading.Semaphore(in_flight // batch)
        replies = [None] * len(calls)

        def batches():
            for begin in range(0, len(calls), batch):
                room.acquire()
                yield kv_pb2.SessionBatch(requests=[
                    kv_pb2.SessionRequest(id=begin + i, timeout_ms=timeout_ms, **call)
                    for i, call in enumerate(calls[begin:begin + batch])])

        answered = 0
        for message in self.kv.Session(batches(), timeout=60 + len(calls) / 1000):
            for reply in message.replies:
                assert replies[reply.id] is None, f"call {reply.id} was answered twice"
                replies[reply.id] = reply
                answered += 1
                if answered % batch == 0:
                    room.release()
        assert answered == len(calls), f"only {answered} of {len(calls)} calls were answered"
        return replies

    def close(self):
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        if self.running():
            self.process.kill()
            self.process.wait(10)
        self.process = None


class Cluster:
    """Nodes in a directory of their own. As a context, started and formed; on leaving, all are ended."""

    def __init__(self, nodes=3, settings=None, data_dirs=None, zones=None, network=None):
        """`zones`: the zone of each node. `network`: each node has a host of its own there."""
        self.directory = tempfile.mkdtemp(prefix="gyre-test-")
        self.made = nodes  # ever; a node that left is no longer among `nodes`
        ports = free_ports(3 * nodes)
        self.nodes = [
            Node(os.path.join(self.directory, f"node-{i + 1}"), i + 1, ports[3 * i:3 * i + 3],
                 data_dirs[i] if data_dirs else None,
                 **({"host": network.address(i + 1), "through": network.on(i + 1)} if network else {}))
            for i in range(nodes)]
        seeds = [node.peer_address for node in self.nodes]
        for i, node in enumerate(self.nodes):
            own = {"node": {"zone": zones[i]}} if zones else {}
            node.write_config(nodes, seeds, {**(settings or {}), **own})

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, error, trace):
        crashed = []
        for node in self.nodes:
            if node.process is not None and node.process.poll() is not None:
                crashed.append(f"node {node.index} ended by itself with {node.process.returncode}:\n{node.log_tail()}")
            elif kind is not None and os.path.exists(node.log_path):
                print(f"--- log of node {node.index}\n{node.log_tail()}", file=sys.stderr)
        for node in self.nodes:
            node.close()
        shutil.rmtree(self.directory, ignore_errors=True)
        if crashed:
            raise AssertionError("\n".join(crashed))

    def start(self):
        """Starts the nodes that do not run, and waits until the cluster is whole."""
        for node in self.nodes:
            if not node.running():
                node.start()
        for node in self.nodes:
            node.wait_ready()
        self.wait_connected()

    def kill_all(self, nodes=None):
        """Kills these nodes (all) at once, as a loss of power would."""
        nodes = nodes or self.nodes
        for node in nodes:
            node.check_running()
        for node in nodes:
            node.process.kill()
        for node in nodes:
            node.process.wait(10)
            node.process = None

    def wait_connected(self, nodes=None, seconds=READY_SECONDS):
        """Until each of these nodes (all) sees each of them up."""
        nodes = nodes or self.nodes
        addresses = {node.address for node in nodes}

        def connected(node):
            node.check_running()
            try:
                topology = node.topology()
            except grpc.RpcError:
                return False
            return addresses <= {n.address for n in topology.nodes if n.state == kv_pb2.Node.UP}

        for node in nodes:
            wait_until(f"node {node.index} sees the others up", lambda node=node: connected(node), seconds)

    def endpoints(self, nodes=None):
        return ",".join(node.address for node in nodes or self.nodes)

    def cli(self, *arguments, stdin=b"", seconds=30.0, nodes=None):
        """Runs `gyre` against these nodes (all); against none, as `arguments` say."""
        where = [] if nodes == [] else ["--endpoints", self.endpoints(nodes)]
        return run([GYRE, *where, *arguments], stdin, seconds)

    def create_keyspace(self, name, **fields):
        """Creates it at the first node, and returns when every running node knows it."""
        request = admin_pb2.CreateKeyspaceRequest(keyspace=kv_pb2.Keyspace(name=name, **fields))
        reply = self.nodes[0].admin.CreateKeyspace(request, timeout=CALL_SECONDS)
        self.wait_epoch(reply.layout_epoch)
        return reply

    def drop_keyspace(self, name):
        """Drops it, and returns when every running node knows that."""
        running = [node for node in self.nodes if node.running()]
        reply = running[0].admin.DropKeyspace(admin_pb2.DropKeyspaceRequest(name=name), timeout=CALL_SECONDS)
        self.wait_epoch(reply.layout_epoch)

    def wait_epoch(self, epoch):
        for node in self.nodes:
            if node.running():
                wait_until(f"node {node.index} knows layout {epoch}",
                           lambda node=node: node.topology().layout_epoch >= epoch)

"""What tests that change the members share: nodes that join, plans, and a load that notices what is lost."""

import json
import os
import random
import threading
import time

import grpc

from cluster import Node, admin_pb2, free_ports, kv_pb2, wait_until

ATTEMPTS = 3
QUORUM = kv_pb2.Replicas(name=kv_pb2.Replicas.QUORUM)


def id_of(node):
    return node.topology().answered_by


def add_node(cluster, settings=None, wait=True):
    """One more node, started, which announces itself and owns nothing."""
    cluster.made += 1
    index = cluster.made
    node = Node(os.path.join(cluster.directory, f"node-{index}"), index, free_ports(3))
    node.write_config(3, [other.peer_address for other in cluster.nodes if other.running()], settings or {})
    cluster.nodes.append(node)
    node.start()
    node.wait_ready()
    if wait:
        wait_known(cluster, [node])
    return node


def wait_known(cluster, news, nodes=None):
    ids = {id_of(node) for node in news}
    for other in nodes or [node for node in cluster.nodes if node.running()]:
        wait_until(f"node {other.index} knows the new ones", lambda other=other: ids <= {
            n.id for n in other.topology().nodes if n.state == kv_pb2.Node.UP})


def plan(cluster, *arguments, nodes=None, path=None):
    path = path or os.path.join(cluster.directory, f"plan-{time.monotonic_ns()}.json")
    result = cluster.cli("-o", "json", "cluster", "plan", *arguments, "--out", path, nodes=nodes)
    if result.code != 0:
        raise AssertionError(f"plan {arguments}: {result}")
    return json.loads(result.stdout), path


def change(cluster, *arguments, nodes=None, seconds=240, flags=("--wait",)):
    """Plans and applies at once; a base that was changed meanwhile is planned for again. Returns the plan."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            made, path = plan(cluster, *arguments, nodes=nodes)
        except AssertionError as error:  # the change before is just being finished
            if "try again" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
            continue
        result = cluster.cli("-o", "json", "cluster", "apply", path, *flags, nodes=nodes, seconds=seconds)
        if result.code == 0:
            return made
        again = "plan again" in result.stderr or "try again" in result.stderr
        if not again or time.monotonic() > deadline:
            raise AssertionError(f"apply {arguments}: {result}")
        time.sleep(0.2)


class Load:
    """The set workload: unique keys, each written once with a quorum and then read again and again with one.

    Where nodes come back while it runs it must be `strict`: else a fallback's hint counts for a write, which a read
    need not meet before it is delivered.
    """

    def __init__(self, nodes, writers=2, readers=2, pause=0.0, strict=False):
        self.nodes = list(nodes)
        self.pause = pause
        self.strict = strict
        self.acked = []
        self.unknown = 0
        self.refused = 0
        self.last_unknown = self.last_refusal = ""
        self.wrong = []  # what must not be
        self.reads = 0
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self._write, args=(i,)) for i in range(writers)]
        self.threads += [threading.Thread(target=self._read, args=(i,)) for i in range(readers)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def _write(self, number):
        chance = random.Random(number)
        count = 0
        while not self.ended.is_set():
            key = b"set-%d-%d" % (number, count)
            count += 1
            if self._put(chance, key):
                self.acked.append(key)
            if self.pause:
                self.ended.wait(self.pause)

    def _put(self, chance, key):
        """As the SDK does: where the outcome is unknown the same write is made again, and happens once."""
        write_id = chance.randbytes(16)
        for attempt in range(ATTEMPTS):
            node = chance.choice(self.nodes)
            try:
                node.put(key, b"value of " + key, w=QUORUM, strict=self.strict, write_id=write_id, retry=attempt > 0,
                         timeout=10)
                return True
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED):
                    self.refused += 1
                    self.last_refusal = error.details()
                    return False
                self.last_unknown = f"{key} at node {node.index}: {error.code()} {error.details()}"
        self.unknown += 1
        return False

    def _read(self, number):
        chance = random.Random(1000 + number)
        while not self.ended.is_set():
            if not self.acked:
                self.ended.wait(0.01)
                continue
            # Old ones and the newest alike.
            place = chance.randrange(len(self.acked)) if chance.random() < 0.7 else len(self.acked) - 1
            key = self.acked[place]
            self.check(chance.choice(self.nodes), key)
            if self.pause:
                self.ended.wait(self.pause)

    def check(self, node, key, timeout=10):
        try:
            values = node.values(key, r=QUORUM, strict=self.strict, timeout=timeout)
            if values != [b"value of " + key]:
                self.wrong.append(f"{key}: {values} at node {node.index}")
        except grpc.RpcError as error:
            self.wrong.append(f"{key} at node {node.index}: {error.code()} {error.details()}")
        self.reads += 1


def holders(nodes, key):
    """How many of the nodes have the row on their disk."""
    dumps = [node.admin.NodeDump(admin_pb2.NodeDumpRequest(key=key), timeout=10) for node in nodes]
    return sum(1 for dump in dumps if dump.record)


def wait_converged(cluster, nodes=None, seconds=120):
    def converged():
        result = cluster.cli("-o", "json", "cluster", "status", nodes=nodes)
        return result.code == 0 and json.loads(result.stdout)["converged"]
    wait_until("the cluster is converged", converged, seconds)

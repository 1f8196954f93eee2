"""What a node has to do for many keys at once, it does in bounded memory: in a control group it would be killed else."""

import contextlib
import os
import unittest

from cases import ClusterTest
from cluster import Cluster, kv_pb2, skip, wait_until

GROUPS = "/sys/fs/cgroup/memory"
LIMIT_BYTES = 256 << 20
KEYS = int(os.environ.get("MEMORY_KEYS", "30000"))  # the case has 500,000, which takes some minutes
CALLS = 20_000  # in one go
SECONDS = 60 + KEYS / 500


class Group:
    """A control group of its own that may use so much memory, without swap."""

    def __init__(self, name):
        self.path = os.path.join(GROUPS, f"gyre-test-{os.getpid()}-{name}")

    def __enter__(self):
        os.mkdir(self.path)
        self.write("memory.limit_in_bytes", LIMIT_BYTES)
        return self

    def __exit__(self, *_):
        # Whoever was in it has ended; the kernel may take a moment to notice.
        def removed():
            with contextlib.suppress(OSError):
                os.rmdir(self.path)
            return not os.path.exists(self.path)
        wait_until("the control group is gone", removed)

    def write(self, name, value):
        with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
            file.write(str(value))


def check_groups():
    """Whether this test can run here at all."""
    try:
        with Group("probe"):
            pass
    except OSError as error:
        skip(f"control groups for memory (version 1) cannot be made: {error}")


def peak_bytes(node):
    """The most of its own memory that the process ever used."""
    with open(f"/proc/{node.process.pid}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) << 10


class Memory(ClusterTest):
    @classmethod
    def setUpClass(cls):
        """The test has a cluster of its own, whose nodes end before their control groups."""

    def setUp(self):
        """See setUpClass."""

    def delete_all(self, node):
        for begin in range(0, KEYS, CALLS):
            calls = [{"delete": kv_pb2.DeleteRequest(key=b"deleted-%d" % i)}
                     for i in range(begin, min(begin + CALLS, KEYS))]
            replies = node.session(calls, timeout_ms=60_000)
            self.assertTrue(all(reply.HasField("delete") for reply in replies))

    def sent(self, nodes):
        for node in nodes:
            node.check_running()
        return sum(node.metric("gyre_repair_records_sent_total") for node in nodes)

    def test_D42_a_long_run_of_tombstones_is_repaired_in_bounded_memory(self):
        groups = [self.enterContext(Group(str(i))) for i in range(3)]
        # Without hints, so that comparing replicas is all that can help the node that was away.
        cluster = self.enterContext(Cluster(3, {"limits": {"hint_bytes": 0}}))
        behind = cluster.nodes[2]
        behind.stop()
        self.delete_all(cluster.nodes[0])
        for node in cluster.nodes[:2]:
            node.stop()
        for node, group in zip(cluster.nodes, groups):
            node.start()
            group.write("cgroup.procs", node.process.pid)
        for node in cluster.nodes:
            node.wait_ready()
        wait_until("all that it missed was sent to it", lambda: self.sent(cluster.nodes) >= KEYS, SECONDS)
        for node in cluster.nodes:
            self.assertLess(peak_bytes(node), LIMIT_BYTES)


if __name__ == "__main__":
    check_groups()
    unittest.main(verbosity=2)

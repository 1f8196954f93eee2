"""A full disk refuses writes and loses none; reads go on; when there is space again, so do writes, by themselves."""

import os
import subprocess
import tempfile
import time
import unittest

import grpc

from cases import ClusterTest
from cluster import Cluster, kv_pb2, skip, wait_until

EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
UNKNOWN = grpc.StatusCode.UNKNOWN
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)
ONE = kv_pb2.Replicas(name=kv_pb2.Replicas.ONE)
DISK_BYTES = 160 << 20  # RocksDB allocates tens of MiB for each log at once
VALUE = b"\xa5" * 60_000


class SmallDisks:
    """Directories that are file systems of DISK_BYTES each."""

    def __init__(self, count):
        self.root = tempfile.mkdtemp(prefix="gyre-test-disks-")
        self.paths = [os.path.join(self.root, str(i)) for i in range(count)]

    def __enter__(self):
        for path in self.paths:
            os.mkdir(path)
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "gyre-test", path],
                                     capture_output=True, text=True, check=False)
            if mounted.returncode != 0:
                self.__exit__()
                skip("small disks need root to mount: " + mounted.stderr.strip())
        return self

    def __exit__(self, *_):
        for path in self.paths:
            if os.path.ismount(path):
                subprocess.run(["umount", path], check=True)
            os.rmdir(path)
        os.rmdir(self.root)

    def fill(self, index, spare=0):
        """Takes all space but `spare` bytes with a file of its own."""
        with open(os.path.join(self.paths[index], "filler"), "ab", buffering=0) as filler:
            while True:
                free = os.statvfs(self.paths[index])
                left = free.f_bavail * free.f_bsize - spare
                if left <= 0:
                    return
                try:
                    filler.write(b"\0" * min(left, 1 << 20))
                except OSError:
                    return

    def free(self, index):
        os.remove(os.path.join(self.paths[index], "filler"))


class DiskFull(ClusterTest):
    """`reserve` is what the nodes want left: with none they run into the end of the disk itself."""

    @classmethod
    def setUpClass(cls):
        pass  # each test has disks of its own

    def setUp(self):
        pass

    def begin(self, reserve):
        self.disks = self.enterContext(SmallDisks(3))
        self.cluster = self.enterContext(Cluster(3, {"limits": {"disk_reserve_bytes": reserve}},
                                                 [os.path.join(path, "data") for path in self.disks.paths]))
        self.nodes = self.cluster.nodes
        self.acknowledged = []
        self.tried = 0

    def put_next(self, node=0, **fields):
        key = b"key-%05d" % self.tried
        self.tried += 1
        code, answer = self.status(self.nodes[node].put, key, key + VALUE, **fields)
        if code is None:
            self.acknowledged.append(key)
        return code, answer

    def check_acknowledged(self, node=1, **fields):
        for key in self.acknowledged:
            self.assertEqual(self.nodes[node].values(key, **fields), [key + VALUE], key)

    def put_until_refused(self):
        """The codes of the refusals, in order, up to the first that says that the disk is full."""
        codes = []
        deadline = time.monotonic() + 30
        while EXHAUSTED not in codes:
            self.assertLess(time.monotonic(), deadline, f"the disk is full and nobody says so: {codes[-10:]}")
            code, message = self.put_next()
            if code is not None:
                codes.append(code)
        return codes, message

    def resumed(self):
        return all(self.put_next(node, w=ALL)[0] is None for node in range(3))

    def fill_all_and_recover(self):
        for _ in range(50):
            self.assertIsNone(self.put_next(w=ALL)[0])
        for i in range(3):
            self.disks.fill(i, spare=1 << 20)
        codes, message = self.put_until_refused()
        self.assertLessEqual(set(codes), {EXHAUSTED, UNKNOWN, UNAVAILABLE})
        self.assertRegex(message, "disk|space")
        for node in range(3):
            self.check_acknowledged(node)
        result = self.cluster.cli("put", "k", "v")
        self.assert_exit((1, 5, 6), result)
        for i in range(3):
            self.disks.free(i)
        wait_until("writes go on by themselves", self.resumed, 20)
        self.check_acknowledged(r=ALL)
        self.cluster.kill_all()
        self.cluster.start()
        for node in range(3):
            self.check_acknowledged(node, r=ALL)

    def test_reserve_reached(self):
        self.begin(reserve=8 << 20)
        self.fill_all_and_recover()

    def test_really_full(self):
        self.begin(reserve=0)
        self.fill_all_and_recover()

    def test_one_of_three_full(self):
        for reserve in (8 << 20, 0):
            with self.subTest(reserve=reserve):
                self.begin(reserve)
                for _ in range(20):
                    self.assertIsNone(self.put_next(w=ALL)[0])
                self.disks.fill(2)
                # Through another node quorum writes go on; a put may go through the full one only to be refused.
                refused = lambda: self.status(self.nodes[2].put, b"probe", VALUE)[0] is not None  # noqa: E731
                wait_until("the full node notices", refused)
                for i in range(100):
                    code, message = self.put_next(node=i % 2)
                    self.assertIsNone(code, message)
                for node in range(3):
                    self.check_acknowledged(node)
                self.disks.free(2)
                wait_until("the full node goes on by itself", self.resumed, 20)
                self.check_acknowledged(2, r=ALL)


if __name__ == "__main__":
    unittest.main()

"""Rotten files: a node whose store is damaged goes out of service, rebuilds it and fills from the others; nothing
acknowledged is lost and no read is wrong while it does."""

import json
import os
import random
import shutil
import threading
import unittest

import grpc

from cases import ClusterTest
from cluster import Cluster, admin_pb2, kv_pb2, wait_until

ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)
ONE = kv_pb2.Replicas(name=kv_pb2.Replicas.ONE)
FULL_SECONDS = 120.0
OUT_OF_SERVICE = "goes out of service"


def key_of(i):
    return b"key-%05d" % i


def value_of(i):
    return random.Random(i).randbytes(200)  # not to be compressed


def store(node, name="store"):
    return os.path.join(node.data_dir, name)


def largest(node, extension):
    files = [os.path.join(store(node), name) for name in os.listdir(store(node)) if name.endswith(extension)]
    return max(files, key=os.path.getsize)


def flip(path, fraction):
    """Three bytes rot, at this fraction of the file."""
    with open(path, "r+b") as file:
        place = int(os.path.getsize(path) * fraction)
        file.seek(place)
        rotten = bytes(byte ^ 0x55 for byte in file.read(3))
        file.seek(place)
        file.write(rotten)


class Reader(threading.Thread):
    """Reads keys from a quorum, through any node, until it is told to end. Whoever does not answer is asked again."""

    def __init__(self, nodes, keys):
        super().__init__()
        self.nodes = nodes
        self.keys = keys
        self.right = 0
        self.failed = 0
        self.wrong = []
        self.end = threading.Event()

    def run(self):
        chance = random.Random(1)
        while not self.end.is_set():
            i = chance.randrange(self.keys)
            try:
                values = chance.choice(self.nodes).values(key_of(i), timeout=2)
            except grpc.RpcError:
                self.failed += 1
                self.end.wait(0.01)
                continue
            if values == [value_of(i)]:
                self.right += 1
            else:
                self.wrong.append((i, values))


class Damage(ClusterTest):
    @classmethod
    def setUpClass(cls):
        pass  # each test has a cluster of its own: a store is not rebuilt twice in an hour

    def setUp(self):
        self.cluster = self.enterContext(Cluster(3))
        self.nodes = self.cluster.nodes
        self.cluster.start()

    def put_all(self, keys, first=0):
        calls = [{"put": kv_pb2.PutRequest(key=key_of(i), value=value_of(i), w=ALL)} for i in range(first, keys)]
        for reply in self.nodes[0].session(calls, timeout_ms=30_000):
            self.assertEqual(reply.code, 0, reply.message)

    def into_tables(self, node):
        """A start writes what the log holds into tables."""
        node.stop()
        node.start()
        node.wait_ready()
        self.cluster.wait_connected()

    def filling(self, node):
        """None while it does not serve."""
        node.check_running()
        try:
            return node.metric("gyre_filling") == 1
        except AssertionError:
            return None

    def wait_full(self, *nodes):
        for node in nodes:
            wait_until(f"node {node.index} is full and has let go of what it set aside",
                       lambda node=node: self.filling(node) is False and not os.path.exists(store(node, "store.damaged")),
                       FULL_SECONDS)
        self.cluster.wait_connected()

    def cli_json(self, *arguments, nodes=None):
        result = self.cluster.cli("-o", "json", *arguments, seconds=120, nodes=nodes)
        self.assert_exit(0, result)
        return json.loads(result.stdout)

    def check_all_equal(self, keys):
        """All values are there, from a quorum and on each node, and the replicas are byte for byte the same."""
        for node in self.nodes:
            for r in (None, ONE):
                calls = [{"get": kv_pb2.GetRequest(key=key_of(i), r=r)} for i in range(keys)]
                for i, reply in enumerate(node.session(calls, timeout_ms=30_000)):
                    self.assertEqual((reply.code, [value.value for value in reply.get.values]), (0, [value_of(i)]),
                                     f"key {i} at node {node.index}, r={r}: {reply.message}")
        self.assertEqual(self.cli_json("cluster", "repair", "--wait")["records_sent"], 0)
        by_range = {}
        for digest in self.cli_json("cluster", "digests"):
            by_range.setdefault((digest["keyspace"], digest["range"]), set()).add(digest["sum"])
        self.assertTrue(by_range and all(len(sums) == 1 and "" not in sums for sums in by_range.values()), by_range)
        for node in self.nodes:
            verified = node.admin.NodeVerify(admin_pb2.NodeVerifyRequest(), timeout=60)
            self.assertEqual(verified.differences, 0)
            self.assertGreaterEqual(verified.rows, keys)

    def start_all(self):
        for node in self.nodes:
            if not node.running():
                node.start()
        for node in self.nodes:
            node.wait_ready()
        self.cluster.wait_connected()

    def test_G79_a_block_rots_under_a_node_that_serves(self):
        keys = 20_000
        self.put_all(keys)
        sick = self.nodes[2]
        self.into_tables(sick)
        reader = Reader(self.nodes, keys)
        reader.start()
        wait_until("reads are under way", lambda: reader.right > 100)
        flip(largest(sick, ".sst"), 0.5)
        code, message = self.status(sick.admin.NodeVerify, admin_pb2.NodeVerifyRequest(), timeout=60)
        self.assertEqual(code, grpc.StatusCode.DATA_LOSS, message)
        self.assertIn(".sst", message)
        wait_until("it says what it does", lambda: OUT_OF_SERVICE in sick.log())
        wait_until("it has rebuilt its store", lambda: "was rebuilt" in sick.log())
        wait_until("it serves again", lambda: self.filling(sick) is not None)
        self.assertGreaterEqual(sick.metric("gyre_store_damage_total"), 1)
        self.wait_full(sick)
        reader.end.set()
        reader.join(30)
        self.assertEqual(reader.wrong, [])
        print(f"{reader.right} reads were right, {reader.failed} were tried again")
        # What it could read did not travel. (Each of a block's keys comes from one of the others.)
        self.assertLess(sum(node.metric("gyre_repair_records_sent_total") for node in self.nodes), keys / 2)
        self.check_all_equal(keys)

    def test_G79_damage_is_met_by_reads_after_a_start_and_the_rebuild_is_killed(self):
        keys = 5_000
        self.put_all(keys)
        sick = self.nodes[2]
        self.into_tables(sick)
        sick.stop()
        flip(largest(sick, ".sst"), 0.3)
        sick.start()
        self.cluster.wait_connected()
        for i in range(keys):  # no read of a quorum is wrong, also while the damage is not known
            if OUT_OF_SERVICE in sick.log():
                break
            code, answer = self.status(self.nodes[i % 3].values, key_of(i))
            self.assertTrue(code is not None or answer == [value_of(i)], f"key {i}: {answer}")
            self.status(sick.values, key_of(i), r=ONE)
        wait_until("it sets its store aside", lambda: os.path.exists(store(sick, "store.damaged")))
        sick.kill()
        sick.start()
        self.wait_full(sick)
        self.check_all_equal(keys)

    def test_G84_a_log_rots_in_the_middle(self):
        keys = 5_000
        self.put_all(keys)
        sick = self.nodes[1]
        sick.kill()
        flip(largest(sick, ".log"), 0.5)
        reader = Reader([self.nodes[0], self.nodes[2]], keys)
        reader.start()
        sick.start()
        sick.wait_ready()
        self.assertIn("was rebuilt", sick.log())
        self.assertGreaterEqual(sick.metric("gyre_store_damage_total"), 1)
        self.wait_full(sick)
        reader.end.set()
        reader.join(30)
        self.assertEqual(reader.wrong, [])
        self.check_all_equal(keys)

    def test_G84_all_three_rot_in_different_places(self):
        keys = 5_000
        self.put_all(keys // 2)
        self.into_tables(self.nodes[2])
        self.put_all(keys, first=keys // 2)
        self.cluster.kill_all()
        flip(largest(self.nodes[0], ".log"), 0.3)
        flip(largest(self.nodes[1], ".log"), 0.7)
        flip(largest(self.nodes[2], ".sst"), 0.5)
        self.start_all()
        for node in self.nodes[:2]:
            self.assertIn("was rebuilt", node.log())
        self.wait_full(*self.nodes[:2])
        # The third one's damage is met when somebody looks.
        self.status(self.nodes[2].admin.NodeVerify, admin_pb2.NodeVerifyRequest(), timeout=60)
        wait_until("it has rebuilt its store", lambda: "was rebuilt" in self.nodes[2].log(), FULL_SECONDS)
        self.wait_full(*self.nodes)
        self.check_all_equal(keys)

    def test_G81_the_logs_of_all_three_end_in_rubbish(self):
        keys = 3_000
        self.put_all(keys)
        self.cluster.kill_all()
        # A batch of which the half was written; bytes that nobody wrote; a batch whose checksum is wrong. None of them
        # was ever synced.
        endings = [b"\x01\x02\x03\x04\xff\x00\x01" + b"half", random.Random(7).randbytes(300),
                   b"\x01\x02\x03\x04\x32\x00\x01" + bytes(50)]
        for node, ending in zip(self.nodes, endings):
            with open(largest(node, ".log"), "ab") as log:
                log.write(ending)
        self.start_all()
        self.wait_full(*self.nodes)
        self.check_all_equal(keys)

    def test_G90_a_store_that_cannot_be_opened_is_refused_with_the_way_out(self):
        keys = 1_000
        self.put_all(keys)
        sick = self.nodes[0]
        sick.stop()
        manifest = next(name for name in os.listdir(store(sick)) if name.startswith("MANIFEST"))
        flip(os.path.join(store(sick), manifest), 0)
        sick.start()
        self.assertEqual(sick.process.wait(30), 1)
        sick.process = None
        self.assertIn("move that directory away and start again", sick.log())
        shutil.move(store(sick), os.path.join(sick.directory, "away"))
        sick.start()
        self.wait_full(sick)
        self.check_all_equal(keys)


if __name__ == "__main__":
    unittest.main()

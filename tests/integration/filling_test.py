"""A node whose store is gone comes back empty-handed, and counts for no read until it has what the others have."""

import json
import os
import shutil
import unittest

import grpc

from cases import ClusterTest
from cluster import kv_pb2, wait_until

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
ONE = kv_pb2.Replicas(name=kv_pb2.Replicas.ONE)
ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)
KEYS = 1000


class Filling(ClusterTest):
    def lose_store(self, node):
        node.kill()
        shutil.rmtree(os.path.join(node.data_dir, "store"))

    def filling(self, node):
        return node.metric("gyre_filling") == 1

    def cli_json(self, *arguments):
        result = self.cluster.cli("-o", "json", *arguments, seconds=60)
        self.assert_exit(0, result)
        return json.loads(result.stdout)

    def test_it_fills_from_the_others_and_then_counts(self):
        for i in range(KEYS):
            self.nodes[0].put(b"key-%d" % i, b"value-%d" % i, w=ALL)
        lost = self.nodes[2]
        self.lose_store(lost)
        self.nodes[1].kill()  # without it the lost one cannot be full
        lost.start()
        lost.wait_ready()
        self.cluster.wait_connected(nodes=[self.nodes[0], lost])
        self.assertTrue(self.filling(lost))
        wait_until("the status tells that it is filling",
                   lambda: [node["filling"] for node in self.cli_json("cluster", "status")["nodes"]].count(True) == 1)
        self.assertFalse(self.cli_json("cluster", "status")["converged"])
        # It holds what it was sent by now, or not; it does not say "not found" either way.
        for node in (self.nodes[0], lost):
            self.assert_status(UNAVAILABLE, ["replicas"], node.get, b"key-1")
            self.assertEqual(node.values(b"key-1", r=ONE), [b"value-1"])
        self.nodes[1].start()
        self.cluster.wait_connected()
        wait_until("it is full", lambda: not self.filling(lost), seconds=60)
        for i in range(KEYS):
            self.assertEqual(lost.values(b"key-%d" % i, r=ONE), [b"value-%d" % i])
        self.assertEqual(self.cli_json("cluster", "repair", "--wait")["records_sent"], 0)
        by_range = {}
        for digest in self.cli_json("cluster", "digests"):
            by_range.setdefault((digest["keyspace"], digest["range"]), set()).add(digest["sum"])
        self.assertTrue(all(len(sums) == 1 and "" not in sums for sums in by_range.values()))
        # And it stays full over a restart.
        lost.kill()
        lost.start()
        self.cluster.wait_connected()
        self.assertFalse(self.filling(lost))

    def test_what_it_writes_afterwards_supersedes_what_it_wrote_before(self):
        lost = self.nodes[1]
        before = lost.put(b"again", b"before", w=ALL)
        self.lose_store(lost)
        lost.start()
        self.cluster.wait_connected()
        wait_until("it is full", lambda: not self.filling(lost), seconds=60)
        lost.put(b"again", b"after", context=before.context, w=ALL)
        for node in self.nodes:
            self.assertEqual(node.values(b"again", r=ALL), [b"after"])


if __name__ == "__main__":
    unittest.main()

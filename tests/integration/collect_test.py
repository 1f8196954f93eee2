"""Deleted and expired data leaves the disks of all replicas, when it is proven that nobody can bring it back."""

import json
import unittest

from cases import ClusterTest
from cluster import kv_pb2, wait_until

ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)
RISES_SECONDS = 60.0  # in which a stable cut rises in a healthy cluster
KEYS = 300


class CollectTest(ClusterTest):
    def status(self):
        result = self.cluster.cli("-o", "json", "cluster", "status", nodes=[n for n in self.nodes if n.running()])
        self.assert_exit(0, result)
        return json.loads(result.stdout)

    def collectible(self):
        return [int(node.metric("gyre_collectible_rows")) for node in self.nodes if node.running()]

    def wait_collected(self):
        wait_until("nothing is left to be collected", lambda: sum(self.collectible()) == 0, seconds=RISES_SECONDS)

    def assert_same_digests(self):
        result = self.cluster.cli("-o", "json", "cluster", "digests")
        self.assert_exit(0, result)
        sums = {}
        for digest in json.loads(result.stdout):
            sums.setdefault((digest["keyspace"], digest["range"]), set()).add(digest["sum"])
        self.assertTrue(all(len(each) == 1 for each in sums.values()), sums)

    def put_keys(self):
        for i in range(KEYS):
            self.nodes[0].put(b"kept-%d" % i, b"v")
            self.nodes[1].put(b"deleted-%d" % i, b"v")
            self.nodes[2].put(b"expires-%d" % i, b"v", ttl_ms=1000)

    def delete_keys(self):
        for i in range(KEYS):
            self.nodes[i % 2].delete(b"deleted-%d" % i)

    def assert_only_kept(self):
        keys = [row.key for row in self.nodes[0].scan() if row.key != b"again"]
        self.assertEqual(sorted(keys), sorted(b"kept-%d" % i for i in range(KEYS)))
        for node in self.nodes:
            self.assertEqual(node.values(b"deleted-7", r=ALL), [])
            self.assertEqual(node.values(b"expires-7", r=ALL), [])

    def test_a_cut_rises_by_itself_and_what_is_deleted_or_expired_goes(self):
        self.put_keys()
        self.delete_keys()
        self.assertEqual(self.collectible(), [2 * KEYS] * 3)
        self.wait_collected()
        self.assert_only_kept()
        self.assert_same_digests()
        cut = self.status()["stable_cut"]
        self.assertLess(cut["lag_seconds"], RISES_SECONDS)
        wait_until("the status is converged", lambda: self.status()["converged"], seconds=RISES_SECONDS)

    def test_a_member_that_is_away_stops_it_and_is_named_until_it_is_back(self):
        self.put_keys()
        away = self.nodes[2]
        away.kill()
        self.delete_keys()
        wait_until("the member that is away is named",
                   lambda: [blocker["why"] for blocker in self.status()["stable_cut"]["blocked_by"]]
                   == ["it is away"])
        before = self.collectible()
        wait_until("the cut is older than it takes to rise",
                   lambda: (self.status()["stable_cut"]["lag_seconds"] or 0) > 25, seconds=RISES_SECONDS)
        self.assertEqual(self.collectible(), before)
        away.start()
        self.cluster.wait_connected()
        self.wait_collected()
        self.assert_only_kept()
        self.assert_same_digests()

    def test_a_key_deleted_and_collected_can_be_written_again(self):
        self.nodes[0].put(b"again", b"first")
        context = self.nodes[0].get(b"again").context
        self.nodes[0].delete(b"again", context=context)
        self.wait_collected()
        self.nodes[1].put(b"again", b"second", context=context)
        self.nodes[2].put(b"again", b"third", context=self.nodes[2].get(b"again", r=ALL).context)
        self.assertEqual(self.nodes[0].values(b"again", r=ALL), [b"third"])
        for node in self.nodes:
            node.kill()
        self.cluster.start()
        self.cluster.wait_connected()
        self.assertEqual(self.nodes[1].values(b"again", r=ALL), [b"third"])


if __name__ == "__main__":
    unittest.main()

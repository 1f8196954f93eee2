"""What operators ask of a cluster: whether a node can be restarted, which keys are hot, how fast it is."""

import json
import unittest

from cases import ClusterTest
from cluster import wait_until


class Operators(ClusterTest):
    def document(self, *arguments, code=0):
        result = self.cluster.cli("-o", "json", *arguments)
        self.assert_exit(code, result) if code == 0 else self.assertEqual(result.code, code, result)
        return json.loads(result.stdout)

    def ids(self):
        return {node["address"]: node["id"] for node in self.document("cluster", "status")["nodes"]}

    def test_can_restart(self):
        ids = self.ids()
        for node in self.nodes:
            told = self.document("cluster", "can-restart", node.address)
            self.assertEqual(told, {"node": ids[node.address], "can_restart": True, "why_not": []})
        self.nodes[0].kill()
        wait_until("it is seen to be away",
                   lambda: self.cluster.cli("cluster", "can-restart", ids[self.nodes[1].address]).code == 1)
        told = self.document("cluster", "can-restart", ids[self.nodes[1].address], code=1)
        self.assertFalse(told["can_restart"])
        self.assertIn(ids[self.nodes[0].address], told["why_not"][0])
        self.assert_exit(2, self.cluster.cli("cluster", "can-restart", "ffffffffffffffff"), "no member's id begins with")
        # What is down already may be started again.
        self.assertTrue(self.document("cluster", "can-restart", ids[self.nodes[0].address])["can_restart"])
        self.cluster.start()
        self.assert_exit(0, self.cluster.cli("cluster", "can-restart", ids[self.nodes[1].address], "--wait"))

    def test_hot_keys(self):
        self.assert_exit(0, self.cluster.cli("bench", "--op", "mixed", "--keys", "1", "--seconds", "2"))
        hot = self.document("node", "hotkeys", "--limit", "1")
        hottest = max(hot, key=lambda one: one["calls"])
        self.assertEqual((hottest["keyspace"], hottest["key"]), ("default", "bench-000000000"))
        self.assertEqual(set(hottest), {"node", "keyspace", "key", "calls", "too_many", "share"})
        self.assertGreater(hottest["share"], 0.5)
        text = self.cluster.cli("node", "hotkeys", "--node", hottest["node"])
        self.assert_exit(0, text)
        self.assertIn(b"bench-000000000", text.stdout)

    def test_workloads(self):
        for workload in "abcdf":
            report = self.document("bench", "--workload", workload, "--load", "--keys", "500", "--seconds", "0.5", "--in-flight", "16")
            self.assertEqual((report["op"], report["errors"]), (workload, {}))
            self.assertGreater(report["operations"], 16)
        report = self.document("bench", "--workload", "b", "--distribution", "uniform", "--keys", "500", "--seconds", "1", "--rate",
                               "200", "--histogram")
        self.assertEqual(report["operations"], 200)
        self.assertEqual(sum(bucket["count"] for bucket in report["histogram"]), 200)
        self.assert_exit(2, self.cluster.cli("bench", "--workload", "e"))
        self.assert_exit(2, self.cluster.cli("bench", "--workload", "a", "--op", "put"))
        self.assert_exit(2, self.cluster.cli("bench"))


if __name__ == "__main__":
    unittest.main()

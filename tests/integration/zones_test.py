"""Zones: the replicas of a key are in different ones, so that a whole zone may die."""

import unittest

from cases import ClusterTest
from cluster import Cluster, admin_pb2, kv_pb2, wait_until
from moving import Load, QUORUM, wait_converged

ZONES = ["a", "a", "b", "b", "c", "c"]


class Zones(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(6, zones=ZONES))
        cls.nodes = cls.cluster.nodes

    def zones_of(self, key):
        """The zones of the disks that have a row of this key."""
        return sorted(ZONES[place] for place, node in enumerate(self.nodes)
                      if node.admin.NodeDump(admin_pb2.NodeDumpRequest(key=key), timeout=10).record)

    def test_a_zone_dies(self):
        keys = [b"key-%d" % number for number in range(1000)]
        for place, key in enumerate(keys):
            self.nodes[place % 6].put(key, b"value", w=kv_pb2.Replicas(name=kv_pb2.Replicas.ALL))
        for key in keys:
            self.assertEqual(self.zones_of(key), ["a", "b", "c"], key)

        for zone in ("b", "c"):
            dead = [node for place, node in enumerate(self.nodes) if ZONES[place] == zone]
            left = [node for node in self.nodes if node not in dead]
            with Load(left) as load:
                wait_until("something is written", lambda: len(load.acked) > 200)
                self.cluster.kill_all(dead)
                count = len(load.acked)
                wait_until("more is written", lambda: len(load.acked) > count + 500)
            self.assertEqual(load.wrong, [])
            self.assertEqual((load.refused, load.unknown), (0, 0), load.last_refusal + load.last_unknown)
            for place, key in enumerate(keys):
                self.assertEqual(left[place % 4].values(key, r=QUORUM), [b"value"], key)
            self.cluster.start()
            wait_converged(self.cluster)
            # What was written meanwhile is where it belongs, too.
            for key in load.acked[:: max(1, len(load.acked) // 200)]:
                wait_until(f"{key} is in each zone, and no copy is left elsewhere",
                           lambda key=key: self.zones_of(key) == ["a", "b", "c"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

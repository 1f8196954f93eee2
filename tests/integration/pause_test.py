"""A node that stands still, or that nobody hears, is gone around within seconds; and it takes nobody else for gone."""

import json
import time
import unittest

import grpc

from cases import ClusterTest
from cluster import kv_pb2, wait_until

UP = kv_pb2.Node.UP
DOWN = kv_pb2.Node.DOWN
ONE = kv_pb2.Replicas(name=kv_pb2.Replicas.ONE)
ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)
BOUND_SECONDS = 5.0  # within which a node that is gone is noticed
PAUSE_SECONDS = 15.0


class PauseTest(ClusterTest):
    def state(self, asked, of):
        return next(node.state for node in asked.topology().nodes if node.address == of.address)

    def cluster_status(self, nodes):
        result = self.cluster.cli("-o", "json", "cluster", "status", nodes=nodes)
        self.assert_exit(0, result)
        return json.loads(result.stdout)

    def layout(self):
        return {(node.topology().layout_epoch, node.topology().layout_digest) for node in self.nodes}

    def test_a_paused_node_is_gone_around_and_accuses_nobody(self):
        """Case E63. Not the first test: who is paused before its first round of gossip cannot say for how long that was."""
        first, second, paused = self.nodes
        layout = self.layout()
        dropped = paused.metric("gyre_hints_refused_total")
        begun = time.monotonic()
        paused.pause()
        for node in (first, second):
            wait_until("the pause is noticed", lambda node=node: self.state(node, paused) != UP,
                       begun + BOUND_SECONDS - time.monotonic())
        # From now on nobody waits for it, and both others suffice.
        written = 0
        while time.monotonic() < begun + PAUSE_SECONDS:
            for node in (first, second):
                self.assertEqual(node.put(b"paused-%d" % written, b"value").acks, 2)
                written += 1
            self.assertEqual(self.state(first, second), UP)
            self.assertEqual(self.state(second, first), UP)
        for node in (first, second):
            self.assertEqual(self.state(node, paused), DOWN)
            self.assertEqual(node.metric('gyre_peers{state="down"}'), 1)
            self.assertEqual(node.metric('gyre_peers{state="up"}'), 1)
            self.assertIn("is down", node.log())
        status = {node["address"]: node for node in self.cluster_status([first])["nodes"]}
        self.assertEqual(status[paused.address]["state"], "down")
        self.assertGreater(status[paused.address]["state_ms"], 1000 * (PAUSE_SECONDS - BOUND_SECONDS))
        self.assertEqual(sum(node.metric("gyre_hints_held") for node in (first, second)), written)

        paused.resume()
        self.cluster.wait_connected()
        result = self.cluster.cli("-o", "json", "cluster", "hints", "--wait", seconds=60)
        self.assert_exit(0, result)
        for i in range(written):  # with R=1 it asks itself alone
            self.assertEqual(paused.values(b"paused-%d" % i, r=ONE), [b"value"])
        wait_until("the status is converged", lambda: self.cluster_status([paused])["converged"])
        self.assertIn("This node did not run for 1", paused.log())
        self.assertNotIn("is down", paused.log())
        self.assertNotIn("is not heard of", paused.log())
        self.assertEqual(paused.metric("gyre_hints_held"), 0)
        self.assertEqual(paused.metric("gyre_hints_delivered_total"), 0)
        self.assertEqual(paused.metric("gyre_hints_refused_total"), dropped)
        self.assertEqual(self.layout(), layout, "nobody was removed")

    def test_a_killed_node_is_noticed_at_once(self):
        first, second, killed = self.nodes
        killed.kill()
        for node in (first, second):
            wait_until("the death is noticed", lambda node=node: self.state(node, killed) != UP, BOUND_SECONDS)
            wait_until("and certain", lambda node=node: self.state(node, killed) == DOWN, BOUND_SECONDS)
        killed.start()
        self.cluster.wait_connected()


if __name__ == "__main__":
    unittest.main()

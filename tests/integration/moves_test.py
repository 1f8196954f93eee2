"""The members change while clients write and read: nothing is missed, and each key ends where it belongs."""

import json
import os
import shutil
import time
import unittest

from cases import ClusterTest
from cluster import Cluster, Node, free_ports, kv_pb2, wait_until
from moving import Load, add_node, change, holders, id_of, plan, wait_converged, wait_known

ONE = kv_pb2.Replicas(name=kv_pb2.Replicas.ONE)
ROUNDS = int(os.environ.get("MOVE_ROUNDS", "1"))


class Moves(ClusterTest):
    @classmethod
    def setUpClass(cls):
        """Each test has a cluster of its own, as it changes who the members are."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(3))
        self.nodes = self.cluster.nodes

    def assert_in_place(self, nodes, keys):
        """Each of these keys is on exactly three disks."""
        for key in keys:
            self.assertEqual(holders(nodes, key), 3, key)

    def assert_refused_for_good(self, node):
        """It is told that it was removed, and ends; the next time it knows by itself."""
        for _ in range(2):
            node.start()
            self.assertNotEqual(node.process.wait(30), 0)
            node.process = None
            self.assertIn("removed", node.log_tail())

    def test_E48_E50_E54_E56_E57_grow_and_shrink_under_load(self):
        spares = [add_node(self.cluster), add_node(self.cluster)]
        with Load(self.nodes[:3]) as load:
            for round_ in range(ROUNDS):
                for spare in spares:
                    change(self.cluster, "--add", id_of(spare))
                    load.nodes.append(spare)
                for spare in spares:
                    change(self.cluster, "--remove", id_of(spare))
                    load.nodes.remove(spare)
                for spare in spares:
                    spare.stop()
                    self.assert_refused_for_good(spare)
                    self.nodes.remove(spare)
                if round_ + 1 < ROUNDS:
                    spares = [add_node(self.cluster), add_node(self.cluster)]
        self.assertEqual(load.wrong, [])
        self.assertGreater(len(load.acked), 100)
        wait_converged(self.cluster)
        for key in load.acked:
            load.check(self.nodes[0], key)
        self.assertEqual(load.wrong, [])
        self.assert_in_place(self.nodes[:3], load.acked[:: max(1, len(load.acked) // 100)])

    def test_E45_a_dead_node_is_replaced_under_load(self):
        dead = self.nodes[2]
        old = id_of(dead)
        with Load(self.nodes[:2]) as load:
            wait_until("something is written", lambda: len(load.acked) > 200)
            dead.kill()
            spare = add_node(self.cluster, wait=False)
            alive = [self.nodes[0], self.nodes[1], spare]
            wait_known(self.cluster, [spare], nodes=alive)
            change(self.cluster, "--replace", f"{old}={id_of(spare)}", nodes=self.nodes[:2])
            load.nodes.append(spare)
            count = len(load.acked)
            wait_until("more is written", lambda: len(load.acked) > count + 100)
        self.assertEqual(load.wrong, [])
        wait_converged(self.cluster, nodes=alive)
        for key in load.acked:
            load.check(spare, key)
        self.assertEqual(load.wrong, [])
        self.assert_in_place(alive, load.acked[:: max(1, len(load.acked) // 100)])
        self.assert_refused_for_good(dead)
        self.nodes.remove(dead)
        members = {n.id for n in self.nodes[0].topology().nodes}
        self.assertNotIn(old, members)

    def test_E53_E61_reads_of_one_by_way_of_who_joins_and_who_leaves(self):
        keys = [b"key-%d" % number for number in range(3000)]
        replies = self.nodes[0].session([{"put": kv_pb2.PutRequest(key=key, value=b"v" * 100)} for key in keys])
        self.assertTrue(all(reply.HasField("put") for reply in replies))
        spare = add_node(self.cluster)
        self.assert_exit(0, self.cluster.cli("cluster", "moves", "rate", "150000"))
        for step in ("--add", "--remove"):
            _, path = plan(self.cluster, step, id_of(spare))
            self.assert_exit(0, self.cluster.cli("cluster", "apply", path))
            reads = 0
            # Until it is over, and for some time after that, in which the leaver drops what it had.
            ended = None
            while ended is None or time.monotonic() < ended + 6:
                for key in keys[reads % 2900:][:100]:
                    self.assertEqual(spare.values(key, r=ONE), [b"v" * 100], (step, key, reads))
                reads += 100
                if ended is None and not self.is_moving():
                    ended = time.monotonic()
                self.assertLess(reads, 1_000_000, "the movement does not end")
        wait_until("it holds nothing", lambda: all(holders([spare], key) == 0 for key in keys[::50]), 60)
        for key in keys[::10]:
            self.assertEqual(spare.values(key, r=ONE), [b"v" * 100])
        spare.stop()
        self.nodes.remove(spare)

    def is_moving(self):
        status = json.loads(self.cluster.cli("-o", "json", "cluster", "status").stdout)
        return status["active_layouts"] != 1

    def test_E58_a_fresh_node_at_the_address_of_a_dead_one_is_nobody(self):
        self.nodes[0].put(b"key", b"value")
        dead = self.nodes[2]
        old = id_of(dead)
        dead.kill()
        shutil.rmtree(dead.data_dir)
        dead.start()
        dead.wait_ready()
        wait_until("it answers", lambda: self.status(dead.topology)[0] is None)
        fresh = id_of(dead)
        self.assertNotEqual(fresh, old)
        status = json.loads(self.cluster.cli("-o", "json", "cluster", "status", nodes=self.nodes[:2]).stdout)
        self.assertEqual(status["layout"]["version"], 1)
        self.assertEqual(self.nodes[1].values(b"key"), [b"value"])
        owned = {node["id"]: node["tokens"] for node in status["nodes"]}
        self.assertGreater(owned[old], 0)
        self.assertEqual(owned.get(fresh, 0), 0)
        self.assertEqual(holders([dead], b"key"), 0)
        wait_known(self.cluster, [dead])
        change(self.cluster, "--replace", f"{old}={fresh}", nodes=self.nodes[:2])
        wait_converged(self.cluster)
        self.assertEqual(holders([dead], b"key"), 1)

    def test_giver_and_taker_crash_and_what_was_fetched_is_not_fetched_again(self):
        keys = 20_000
        result = self.cluster.cli("-o", "json", "bench", "--op", "put", "--keys", str(keys), "--seconds", "3",
                                  "--in-flight", "256", seconds=60)
        self.assert_exit(0, result)
        spare = add_node(self.cluster)
        new = id_of(spare)
        made, path = plan(self.cluster, "--add", new)
        self.assert_exit(0, self.cluster.cli("cluster", "moves", "rate", "1000000"))
        self.assert_exit(0, self.cluster.cli("-o", "json", "cluster", "apply", path))
        received = 0
        for round_ in range(4):
            time.sleep(0.7)  # somewhere in the middle
            victim = spare if round_ % 2 == 0 else self.nodes[round_ % 3]
            if victim is spare:
                received += spare.metric("gyre_move_received_bytes_total")
            victim.kill()
            victim.start()
            victim.wait_ready()
        self.cluster.cli("cluster", "moves", "rate", "100000000")
        wait_until("it is moved", self.moved, 120)
        received += spare.metric("gyre_move_received_bytes_total")
        planned = sum(move["bytes"] for move in made["moves"])
        self.assertLess(received, planned * 1.15, "what was fetched is not fetched again")
        wait_converged(self.cluster)

    def moved(self):
        status = json.loads(self.cluster.cli("-o", "json", "cluster", "status").stdout)
        return status["active_layouts"] == 1 and len(status["nodes"]) == 4

    def test_paused_resumed_and_abandoned(self):
        keys = [b"key-%d" % number for number in range(5000)]
        replies = self.nodes[0].session([{"put": kv_pb2.PutRequest(key=key, value=b"v" * 100)} for key in keys])
        self.assertTrue(all(reply.HasField("put") for reply in replies))
        spare = add_node(self.cluster)
        _, path = plan(self.cluster, "--add", id_of(spare))
        self.assert_exit(0, self.cluster.cli("cluster", "moves", "pause"))
        self.assert_exit(0, self.cluster.cli("cluster", "apply", path))
        moves = json.loads(self.cluster.cli("-o", "json", "cluster", "moves").stdout)
        self.assertTrue(moves)
        self.assertEqual({move["to"] for move in moves}, {id_of(spare)})
        # Another change is refused meanwhile, and says how far this one is.
        other = self.cluster.cli("keyspace", "create", "more")
        self.assert_exit(1, other, "data moves")
        self.assert_exit(0, self.cluster.cli("cluster", "moves", "abort"))
        wait_until("the way back is done", lambda: json.loads(
            self.cluster.cli("-o", "json", "cluster", "status").stdout)["active_layouts"] == 1, 60)
        wait_until("the new one holds nothing", lambda: all(holders([spare], key) == 0 for key in keys[::50]), 60)
        self.assert_exit(0, self.cluster.cli("cluster", "moves", "resume"))
        change(self.cluster, "--add", id_of(spare))
        wait_converged(self.cluster)

    def test_E59_E64_all_addresses_change(self):
        """All start on new addresses, with one seed; and that one with a seed that is nobody."""
        for node in self.nodes:
            node.put(b"key %d" % node.index, b"value")
        for node in self.nodes:
            node.stop()
        moved = [Node(node.directory, node.index, free_ports(3)) for node in self.nodes]
        for i, node in enumerate(moved):
            seeds = [moved[0].peer_address] if i else ["127.0.0.1:1"]
            node.write_config(3, seeds, {})
        self.nodes[:] = moved
        self.cluster.start()
        for node in self.nodes:
            self.assertEqual(node.values(b"key %d" % node.index), [b"value"])


if __name__ == "__main__":
    unittest.main(verbosity=2)

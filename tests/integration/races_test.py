"""Plans that race for one base, on one side of a partition or on both: at most one is applied, and nothing is lost."""

import json
import threading
import unittest

import network

network.enter()

import grpc  # noqa: E402

from cases import ClusterTest  # noqa: E402
from cluster import Cluster, kv_pb2, wait_until  # noqa: E402
from moving import Load, QUORUM, add_node, change, holders, id_of, plan, wait_converged  # noqa: E402


def at_once(calls):
    """Makes all of these calls at the same moment, each on a thread; their results."""
    together = threading.Barrier(len(calls))
    results = [None] * len(calls)

    def make(place):
        together.wait()
        results[place] = calls[place]()

    threads = [threading.Thread(target=make, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def layout(node):
    topology = node.topology()
    return topology.layout_epoch, sorted((n.id, n.weight) for n in topology.nodes if n.member)


class Races(ClusterTest):
    @classmethod
    def setUpClass(cls):
        """Each test has a cluster of its own, as it changes who the members are."""

    def setUp(self):
        """As above."""

    def assert_one_line(self, nodes):
        """All of them have come to one layout."""
        wait_until("all nodes have one layout", lambda: len({str(layout(node)) for node in nodes}) == 1, 60)

    def test_three_clients_add_three_nodes(self):
        cluster = self.enterContext(Cluster(3))
        members = list(cluster.nodes)
        with Load(members) as load:
            spares = [add_node(cluster) for _ in range(3)]
            paths = [plan(cluster, "--add", id_of(spare), nodes=[member])[1] for spare, member in zip(spares, members)]
            results = at_once([
                lambda path=path, member=member: cluster.cli("-o", "json", "cluster", "apply", path, nodes=[member])
                for path, member in zip(paths, members)])
            applied = [result for result in results if result.code == 0]
            self.assertEqual(len(applied), 1, results)
            for result in results:
                if result.code != 0:
                    self.assert_exit(1, result, "plan again")
            for spare, result in zip(spares, results):
                if result.code != 0:
                    wait_until("the first movement is over", lambda: self.status(cluster)["active_layouts"] == 1, 120)
                    change(cluster, "--add", id_of(spare))
        self.assertEqual(load.wrong, [])
        self.assertEqual(load.refused, 0)
        self.assert_one_line(cluster.nodes)
        self.assertEqual(len(self.status(cluster)["nodes"]), 6)
        wait_converged(cluster)
        for key in load.acked[:: max(1, len(load.acked) // 200)]:
            self.wait_in_place(cluster, key)

    def wait_in_place(self, cluster, key):
        """Old copies are dropped some time after the movement."""
        wait_until(f"{key} is on three nodes", lambda: holders(cluster.nodes, key) == 3, 60)

    def status(self, cluster):
        return json.loads(cluster.cli("-o", "json", "cluster", "status").stdout)

    def put_some(self, nodes, name, count=200):
        """Writes unique keys with a quorum; those that were acknowledged."""
        acked = []
        for number in range(count):
            key = b"%s-%d" % (name, number)
            try:
                nodes[number % len(nodes)].put(key, b"value of " + key, w=QUORUM)
                acked.append(key)
            except grpc.RpcError:
                pass  # what a side may do without the other is not asked here
        return acked

    def see_down(self, nodes, others):
        ids = {id_of(other) for other in others}
        for node in nodes:
            wait_until(f"node {node.index} sees the others down", lambda node=node: all(
                n.state == kv_pb2.Node.DOWN for n in node.topology().nodes if n.id in ids))

    def test_plans_on_both_sides_of_a_partition(self):
        hosts = network.Network(5)
        cluster = self.enterContext(Cluster(5, {"security": {"allow_insecure": True}}, network=hosts))
        left, right = cluster.nodes[:3], cluster.nodes[3:]
        acked = self.put_some(cluster.nodes, b"before")
        self.assertEqual(len(acked), 200)
        # Made before the cut, for one base.
        _, of_left = plan(cluster, "--weight", f"{id_of(left[0])}=3", nodes=left)
        _, of_right = plan(cluster, "--weight", f"{id_of(right[0])}=3", nodes=right)
        base, members = layout(left[0])

        hosts.cut([1, 2, 3], [4, 5])

        def apply(path, nodes):
            return cluster.cli("-o", "json", "cluster", "apply", path, nodes=nodes, seconds=60)

        results = at_once([lambda: apply(of_left, left), lambda: apply(of_right, right),
                           lambda: self.put_some(left, b"left"), lambda: self.put_some(right, b"right")])
        self.assert_exit(0, results[0])
        self.assert_exit(5, results[1])
        acked += results[2] + results[3]
        self.assertEqual(layout(right[0]), (base, members))
        self.see_down(right, left)
        self.assert_exit(5, apply(of_right, right))  # as it does when the cut is known

        hosts.heal()
        cluster.wait_connected()
        self.assert_one_line(cluster.nodes)
        wait_converged(cluster)
        weights = {member[0]: member[1] for member in layout(right[0])[1]}
        self.assertEqual(weights[id_of(left[0])], 3)
        self.assertEqual(weights[id_of(right[0])], 1)
        self.assert_exit(1, apply(of_right, right), "plan again")
        for key in acked:
            self.assertEqual(cluster.nodes[4].values(key, r=QUORUM), [b"value of " + key])
            self.wait_in_place(cluster, key)

        # Two and two of five: nobody can change anything, on either side.
        epoch = layout(left[0])[0]
        _, of_left = plan(cluster, "--weight", f"{id_of(left[1])}=2", nodes=left)
        _, of_right = plan(cluster, "--weight", f"{id_of(right[0])}=2", nodes=right)
        cluster.nodes[4].stop()
        hosts.cut([1, 2], [3, 4])
        results = at_once([lambda: apply(of_left, cluster.nodes[:2]), lambda: apply(of_right, cluster.nodes[2:4])])
        for result in results:
            self.assert_exit(5, result)
        hosts.heal()
        cluster.start()
        self.assert_one_line(cluster.nodes)
        # An attempt that had no majority may have left its proposal with some: then it, and no other, may be finished.
        self.assertIn(layout(left[0])[0], (epoch, epoch + 1))
        change(cluster, "--weight", f"{id_of(left[2])}=2")
        wait_converged(cluster)
        for key in acked:
            self.assertEqual(cluster.nodes[4].values(key, r=QUORUM), [b"value of " + key])


if __name__ == "__main__":
    unittest.main(verbosity=2)

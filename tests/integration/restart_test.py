"""SIGTERM answers what is under way and ends; a rolling restart loses nothing; keyspaces change everywhere or nowhere."""

import json
import threading
import time
import unittest

import grpc

from cases import ClusterTest
from cluster import admin_pb2, kv_pb2, wait_until

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)
STOP_SECONDS_MAX = 8.0


class Load(threading.Thread):
    """Puts a key, reads it, goes on; at another node when one is away. Notes what was acknowledged and what went wrong."""

    def __init__(self, nodes, name):
        super().__init__()
        self.nodes = nodes
        self.name = name
        self.acknowledged = {}
        self.wrong = []
        self.failed = 0
        self.stopping = threading.Event()

    def attempt(self, call, deadline=10.0):
        """Tries nodes in turn; None if a single attempt could not say whether it took effect, and then failed for good."""
        give_up = time.monotonic() + deadline
        turn = 0
        while True:
            try:
                return call(self.nodes[turn % len(self.nodes)])
            except grpc.RpcError as error:
                self.failed += 1
                if time.monotonic() > give_up:
                    self.wrong.append(f"{error.code()} for {deadline} s: {error.details()}")
                    return None
                turn += 1

    def run(self):
        count = 0
        while not self.stopping.is_set() and not self.wrong:
            key = f"{self.name}-{count}".encode()
            if self.attempt(lambda node: node.put(key, key, timeout=3)) is not None:
                self.acknowledged[key] = key
            read = self.attempt(lambda node: node.get(key, timeout=3))
            if read is not None and {value.value for value in read.values} != {key}:
                self.wrong.append(f"read {read} of {key}")
            count += 1

    def finish(self):
        self.stopping.set()
        self.join(30)


class Restart(ClusterTest):
    def begin(self, writers):
        loads = [Load(self.nodes, f"{self.id()}-{i}") for i in range(writers)]
        for load in loads:
            load.start()
            self.addCleanup(load.finish)
        wait_until("the load runs", lambda: all(len(load.acknowledged) > 50 for load in loads))
        return loads

    def end(self, loads):
        for load in loads:
            load.finish()
            self.assertEqual(load.wrong, [])
        acknowledged = [key for load in loads for key in load.acknowledged]
        replies = self.nodes[0].session([{"get": kv_pb2.GetRequest(key=key, r=ALL)} for key in acknowledged])
        for key, reply in zip(acknowledged, replies):
            self.assertEqual(reply.code, 0, reply.message)
            self.assertEqual({value.value for value in reply.get.values}, {key})
        print(f"{len(acknowledged)} acknowledged puts, {sum(load.failed for load in loads)} attempts failed and went elsewhere")

    def test_stop_answers_what_is_under_way(self):
        calls = [{"put": kv_pb2.PutRequest(key=b"way-%d" % i, value=b"v" * 100)} for i in range(200_000)]
        answered = {}
        sent = [0]
        ended = []

        def batches():
            for begin in range(0, len(calls), 16):
                wait_until("answers come", lambda: sent[0] - len(answered) < 512 or ended, 10)
                if ended:
                    return
                sent[0] += 16
                yield kv_pb2.SessionBatch(requests=[kv_pb2.SessionRequest(id=begin + i, **calls[begin + i]) for i in range(16)])

        def run():
            try:
                for message in self.nodes[0].kv.Session(batches(), timeout=60):
                    for reply in message.replies:
                        answered[reply.id] = reply.code
            except grpc.RpcError as error:
                ended.append(error.code())

        thread = threading.Thread(target=run)
        thread.start()
        wait_until("the load runs", lambda: len(answered) > 2000)
        took = self.nodes[0].stop()
        thread.join(15)
        self.assertFalse(thread.is_alive())
        print(f"stopped in {took:.2f} s")
        self.assertLess(took, STOP_SECONDS_MAX)
        self.assertLessEqual(set(answered.values()), {0, UNAVAILABLE.value[0]})
        good = [id for id, code in answered.items() if code == 0]
        for id, reply in zip(good, self.nodes[1].session([{"get": kv_pb2.GetRequest(key=b"way-%d" % id)} for id in good])):
            self.assertEqual([value.value for value in reply.get.values], [b"v" * 100], id)

    def test_unary_calls_are_answered_when_it_stops(self):
        outcomes = []

        def load():
            while True:
                code, _ = self.status(self.nodes[2].put, b"unary", b"v", timeout=5)
                outcomes.append(code)
                if code is not None:
                    return

        threads = [threading.Thread(target=load) for _ in range(8)]
        for thread in threads:
            thread.start()
        wait_until("the load runs", lambda: len(outcomes) > 200)
        self.assertLess(self.nodes[2].stop(), STOP_SECONDS_MAX)
        for thread in threads:
            thread.join(10)
            self.assertFalse(thread.is_alive())
        # UNKNOWN and CANCELLED: the call came in the moment between the end of the lane and that of the port.
        self.assertLessEqual(set(outcomes), {None, UNAVAILABLE, grpc.StatusCode.UNKNOWN, grpc.StatusCode.CANCELLED})

    def test_idle_nodes_stop_quickly(self):
        for node in self.nodes:
            self.assertLess(node.stop(), STOP_SECONDS_MAX)

    def test_rolling_restart(self):
        loads = self.begin(3)
        for node in self.nodes:
            node.stop()
            wait_until("the others go on", lambda: self.progress(loads))
            node.start()
            node.wait_ready()
            self.cluster.wait_connected()
        self.end(loads)

    def test_rolling_kills(self):
        loads = self.begin(3)
        for node in self.nodes:
            node.kill()
            wait_until("the others go on", lambda: self.progress(loads))
            node.start()
            node.wait_ready()
            self.cluster.wait_connected()
        self.end(loads)

    def progress(self, loads):
        before = getattr(self, "_seen", None)
        now = [len(load.acknowledged) for load in loads]
        if before is None:
            self._seen = now
            return False
        done = all(n > b + 50 or load.wrong for n, b, load in zip(now, before, loads))
        if done:
            self._seen = None
        return done

    def names(self, node):
        return {keyspace.name for keyspace in node.topology().keyspaces}

    def test_keyspaces_over_restarts(self):
        self.cluster.create_keyspace("kept", n=3)
        self.nodes[0].put(b"k", b"of kept", keyspace="kept", w=ALL)
        self.nodes[0].put(b"k", b"of default", w=ALL)
        self.cluster.create_keyspace("dropped", n=3)
        self.nodes[0].put(b"k", b"of dropped", keyspace="dropped", w=ALL)
        self.cluster.drop_keyspace("dropped")
        self.cluster.kill_all()
        self.cluster.start()
        for node in self.nodes:
            self.assertIn("kept", self.names(node))
            self.assertNotIn("dropped", self.names(node))
            self.assertEqual(node.values(b"k", keyspace="kept", r=ALL), [b"of kept"])
            self.assertEqual(node.values(b"k", r=ALL), [b"of default"])
        # A new one of the same name is another one.
        self.cluster.create_keyspace("dropped", n=3)
        self.assertEqual(self.nodes[1].values(b"k", keyspace="dropped", r=ALL), [])

    def test_a_minority_changes_nothing(self):
        epoch = self.nodes[0].topology().layout_epoch
        self.nodes[1].kill()
        self.nodes[2].kill()
        request = admin_pb2.CreateKeyspaceRequest(keyspace=kv_pb2.Keyspace(name="minority", n=3))
        with self.within(8, "a change ends by its deadline"):
            self.assert_status(UNAVAILABLE, ["majority", "nothing was changed"], self.nodes[0].admin.CreateKeyspace, request, timeout=8)
        self.cluster.start()
        for node in self.nodes:
            self.assertNotIn("minority", self.names(node))
            self.assertEqual(node.topology().layout_epoch, epoch)
        self.cluster.create_keyspace("majority", n=3)


class KeyspacesOnTheCommandLine(ClusterTest):
    def cli_json(self, *arguments):
        result = self.cluster.cli("-o", "json", *arguments)
        self.assert_exit(0, result)
        return json.loads(result.stdout)

    def test_create_list_set_drop(self):
        self.cli_json("keyspace", "create", "carts", "--n", "3", "--w", "all")
        for node in self.nodes:
            wait_until("the keyspace is known", lambda node=node: "carts" in {k.name for k in node.topology().keyspaces})
            self.assert_exit(0, self.cluster.cli("-k", "carts", "put", "k%d" % node.index, "v", nodes=[node]))
        self.assertEqual(self.cluster.cli("-k", "carts", "get", "k2").stdout, b"v")
        self.assert_exit(3, self.cluster.cli("get", "k2"))
        self.assertIn("carts", json.dumps(self.cli_json("keyspace", "list")))
        self.cli_json("keyspace", "set", "carts", "--w", "quorum")
        self.assert_exit(0, self.cluster.cli("keyspace", "drop", "carts"))
        for node in self.nodes:
            wait_until("it is gone", lambda node=node: "carts" not in {k.name for k in node.topology().keyspaces})
        self.assert_exit(2, self.cluster.cli("-k", "carts", "get", "k2"), "carts")
        self.assert_exit(2, self.cluster.cli("keyspace", "create", "a/b"), "name")
        self.assertNotIn("carts", json.dumps(self.cli_json("keyspace", "list")))

    def test_a_minority_cannot_create(self):
        self.nodes[1].kill()
        self.nodes[2].kill()
        self.assert_exit(5, self.cluster.cli("keyspace", "create", "minority", nodes=[self.nodes[0]]))

    def test_status(self):
        status = self.cli_json("cluster", "status")
        self.assertEqual([node["state"] for node in status["nodes"]], ["up"] * 3)
        self.assertEqual({node["address"] for node in status["nodes"]}, {node.address for node in self.nodes})
        self.assertAlmostEqual(sum(node["owned"] for node in status["nodes"]), 1, places=6)
        located = self.cli_json("locate", "cart")
        self.assertEqual({node["address"] for node in located["preference_list"]}, {node.address for node in self.nodes})


if __name__ == "__main__":
    unittest.main()

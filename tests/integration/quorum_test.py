"""Without a quorum calls fail honestly and in time, however the nodes were lost; nobody hangs."""

import json
import socket
import threading
import time
import unittest

import grpc

from cases import ClusterTest
from cluster import kv_pb2, wait_until

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
UNKNOWN = grpc.StatusCode.UNKNOWN
DEADLINE = grpc.StatusCode.DEADLINE_EXCEEDED
ONE = kv_pb2.Replicas(name=kv_pb2.Replicas.ONE)
ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)
TIMEOUT = 3.0


class SilentServer:
    """Takes connections and never says a word."""

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._taken = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self):
        while True:
            try:
                self._taken.append(self._listener.accept()[0])
            except OSError:
                return

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)
        for connection in self._taken:
            connection.close()


class Quorum(ClusterTest):
    def setUp(self):
        super().setUp()
        self.paused = []
        self.addCleanup(self.resume)
        self.nodes[0].put(b"key", b"before", w=ALL)

    def pause(self, *nodes):
        for node in nodes:
            node.pause()
            self.paused.append(node)

    def resume(self):
        while self.paused:
            self.paused.pop().resume()

    def acknowledgements(self, codes, call, *arguments, **fields):
        """(got, needed) of a call that fails with one of `codes`."""
        with self.assertRaises(grpc.RpcError) as failed:
            call(*arguments, **fields)
        self.assertIn(failed.exception.code(), codes, failed.exception.details())
        told = dict(failed.exception.trailing_metadata()).get("gyre-acknowledgements-bin")
        self.assertIsNotNone(told, failed.exception.details())
        message = kv_pb2.Acknowledgements.FromString(told)
        return message.got, message.needed

    def timed_cli(self, *arguments, nodes=None):
        """A command that must end by its deadline and a second."""
        result = self.cluster.cli("--timeout", f"{TIMEOUT:g}s", *arguments, nodes=nodes)
        self.assertLess(result.seconds, TIMEOUT + 1, result)
        return result

    def test_F70_two_of_three_killed(self):
        self.nodes[1].kill()
        self.nodes[2].kill()
        node = self.nodes[0]
        with self.within(TIMEOUT + 1, "each call ends by its deadline"):
            self.assert_status(UNAVAILABLE, "nothing was changed", node.put, b"key", b"lost", timeout=TIMEOUT)
            self.assert_status(UNAVAILABLE, "2 of 3", node.get, b"key", timeout=TIMEOUT)
            self.assert_status(UNAVAILABLE, "", node.delete, b"key", timeout=TIMEOUT)
            self.assert_status(UNAVAILABLE, "", node.scan, timeout=TIMEOUT)
        self.assertEqual(node.values(b"key", r=ONE), [b"before"])
        self.assertEqual(node.put(b"alone", b"v", w=ONE).acks, 1)
        for command in (["put", "key", "lost"], ["get", "key"], ["delete", "key"], ["scan"]):
            self.assert_exit(5, self.timed_cli(*command))
        self.assert_json_error(5, self.timed_cli("-o", "json", "put", "key", "lost"))
        self.assertEqual(self.timed_cli("get", "key", "-r", "one").stdout, b"before")
        self.cluster.start()
        self.assertEqual(self.nodes[1].values(b"key", r=ALL), [b"before"])
        # Written with W=1: only a read of all is promised to see it (R + W > N), until anti-entropy has spread it.
        self.assertEqual(self.nodes[2].values(b"alone", r=ALL), [b"v"])

    def test_one_of_three_killed(self):
        self.nodes[1].kill()
        for node in (self.nodes[0], self.nodes[2]):
            wait_until("the loss is noticed", lambda node=node: self.status(node.put, b"probe", b"v")[0] is None, 5)
            for i in range(100):
                self.assertEqual(node.put(b"%d" % i, b"v").acks, 2)
                self.assertEqual(node.values(b"%d" % i), [b"v"])
            self.assert_status(UNAVAILABLE, "3 of 3", node.put, b"key", b"lost", w=ALL)
            self.assert_status(UNAVAILABLE, "3 of 3", node.get, b"key", r=ALL)
            self.assertEqual(self.acknowledgements([UNAVAILABLE], node.put, b"key", b"lost", w=ALL), (0, 3))
            self.assertEqual(self.acknowledgements([UNAVAILABLE], node.get, b"key", r=ALL), (0, 3))
            reply, = node.session([{"put": kv_pb2.PutRequest(key=b"key", value=b"lost", w=ALL)}])
            self.assertEqual((reply.code, reply.acknowledgements.got, reply.acknowledgements.needed), (UNAVAILABLE.value[0], 0, 3))
        for _ in range(5):
            self.assert_exit(0, self.timed_cli("put", "key", "after"))
            self.assertEqual(self.timed_cli("get", "key").stdout, b"after")
        self.assert_exit(5, self.timed_cli("put", "key", "lost", "-w", "all"))

    def test_F70_two_of_three_paused(self):
        self.pause(self.nodes[1], self.nodes[2])
        node = self.nodes[0]
        with self.within(TIMEOUT + 1, "a put ends by its deadline"):
            self.assert_status((UNKNOWN, UNAVAILABLE, DEADLINE), "", node.put, b"key", b"perhaps", timeout=TIMEOUT)
        with self.within(TIMEOUT + 1, "a get ends by its deadline"):
            self.assert_status((UNAVAILABLE, DEADLINE), "", node.get, b"key", timeout=TIMEOUT)
        self.assert_exit(5, self.timed_cli("get", "key"))
        self.assert_exit((5, 6), self.timed_cli("put", "key", "perhaps"))
        self.assert_exit((5, 6), self.timed_cli("delete", "nothing"))
        self.assert_exit(5, self.timed_cli("get", "key", nodes=[node]))
        self.resume()
        self.cluster.wait_connected()
        values = self.nodes[1].values(b"key", r=ALL)
        self.assertLessEqual(set(values), {b"before", b"perhaps"})
        self.assertNotEqual(values, [])
        self.nodes[2].put(b"key", b"after", w=ALL, context=self.nodes[2].get(b"key").context)
        self.assertEqual(self.nodes[0].values(b"key", r=ALL), [b"after"])

    def test_who_forwards_a_write_passes_on_how_many_confirmed_it(self):
        self.cluster.create_keyspace("pairs", n=2)
        self.addCleanup(self.cluster.drop_keyspace, "pairs")
        self.addCleanup(self.resume)
        located = json.loads(self.cluster.cli("-k", "pairs", "-o", "json", "locate", "key").stdout)
        first, second = (each["address"] for each in located["preference_list"])
        asked, = (node for node in self.nodes if node.address not in (first, second))
        self.pause(*(node for node in self.nodes if node.address == second))
        counts = self.acknowledgements([UNKNOWN], asked.put, b"key", b"v", keyspace="pairs", w=ALL, strict=True, timeout=TIMEOUT)
        self.assertEqual(counts, (1, 2))

    def test_all_paused(self):
        self.pause(*self.nodes)
        self.assert_exit((5, 6), self.timed_cli("get", "key"))
        self.assert_exit(6, self.timed_cli("put", "key", "perhaps"))

    def test_F71_coordinator_killed_under_load(self):
        victim = self.nodes[0]
        late = []
        outcomes = []
        stop = threading.Event()

        def load(worker):
            count = 0
            while not stop.is_set():
                begun = time.monotonic()
                call = victim.put if count % 2 == 0 else victim.get
                arguments = (b"%d-%d" % (worker, count), b"v") if count % 2 == 0 else (b"key",)
                outcomes.append(self.status(call, *arguments, timeout=TIMEOUT)[0])
                if time.monotonic() - begun > TIMEOUT + 1:
                    late.append((worker, count))
                count += 1

        workers = [threading.Thread(target=load, args=(i,)) for i in range(8)]
        for worker in workers:
            worker.start()
        try:
            wait_until("the load runs", lambda: len(outcomes) > 500)
            victim.kill()
            after = len(outcomes)
            wait_until("all calls after the kill return", lambda: len(outcomes) > after + 8, 3 * TIMEOUT)
        finally:
            stop.set()
            for worker in workers:
                worker.join(TIMEOUT + 5)
        self.assertEqual(late, [])
        self.assertLessEqual(set(outcomes), {None, UNAVAILABLE, UNKNOWN, DEADLINE})
        self.assertEqual(set(outcomes[:400]), {None})

    def test_F77_forwarding_target_killed_under_load(self):
        """With n=1 most calls go on to the one node that has the key; when it dies, each is still answered."""
        self.cluster.create_keyspace("single", n=1)
        self.addCleanup(self.cluster.drop_keyspace, "single")
        calls = [{"put": kv_pb2.PutRequest(keyspace="single", key=b"%d" % i, value=b"v")} for i in range(20_000)]
        replies = []
        thread = threading.Thread(target=lambda: replies.extend(self.nodes[0].session(calls, timeout_ms=int(TIMEOUT * 1000))))
        thread.start()
        wait_until("the load runs", lambda: self.nodes[0].metric("gyre_session_calls_total") > 2000)
        self.nodes[1].kill()
        thread.join(30)
        self.assertFalse(thread.is_alive(), "calls were left without an answer")
        codes = {reply.code for reply in replies}
        self.assertLessEqual(codes, {0, UNAVAILABLE.value[0], UNKNOWN.value[0]})
        self.assertIn(0, codes)

    def test_nobody_there(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            nowhere = f"127.0.0.1:{closed.getsockname()[1]}"
        for command in (["put", "k", "v"], ["get", "k"], ["delete", "k"], ["scan"], ["cluster", "status"], ["locate", "k"]):
            self.assert_exit(5, self.timed_cli("--endpoints", nowhere, *command, nodes=[]))

    def test_server_that_never_replies(self):
        with SilentServer() as silent:
            self.assert_exit(6, self.timed_cli("--endpoints", silent, "put", "k", "v", nodes=[]))
            self.assert_exit(6, self.timed_cli("--endpoints", silent, "delete", "k", nodes=[]))
            self.assert_exit(5, self.timed_cli("--endpoints", silent, "get", "k", nodes=[]))
            # One that serves is enough.
            both = f"{silent},{self.nodes[0].address}"
            self.assert_exit(0, self.timed_cli("--endpoints", both, "put", "k", "v", nodes=[]))


if __name__ == "__main__":
    unittest.main()

"""Concurrent writes are kept as siblings until somebody who saw them all writes; nobody's update is lost silently."""

import base64
import json
import threading
import unittest

from cases import ClusterTest
from cluster import kv_pb2

ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)


class Siblings(ClusterTest):
    def cli_json(self, *arguments):
        result = self.cluster.cli("-o", "json", *arguments)
        self.assert_exit(0, result)
        return json.loads(result.stdout)

    def test_two_puts_with_one_context(self):
        for first, second in ((0, 0), (0, 1), (1, 2)):
            key = b"cart-%d-%d" % (first, second)
            seen = self.nodes[0].put(key, b"milk", w=ALL).context
            self.nodes[first].put(key, b"bread", context=seen, w=ALL)
            self.nodes[second].put(key, b"eggs", context=seen, w=ALL)
            for node in self.nodes:
                reply = node.get(key)
                self.assertEqual(sorted(value.value for value in reply.values), [b"bread", b"eggs"])
                self.assertEqual(len({value.dot for value in reply.values}), 2)
            self.nodes[second].put(key, b"both", context=reply.context, w=ALL)
            for node in self.nodes:
                self.assertEqual(node.values(key), [b"both"])

    def test_on_the_command_line(self):
        context = self.cli_json("put", "cart", "milk", "-w", "all")["context"]
        self.cli_json("put", "cart", "bread", "--context", context, "-w", "all")
        self.cli_json("put", "cart", "eggs", "--context", context, "-w", "all")
        shown = self.cli_json("get", "cart")
        self.assertEqual(sorted(value["value"] for value in shown["values"]), ["bread", "eggs"])
        self.assertIs(shown["found"], True)
        self.assertIsInstance(shown["context"], str)
        conflict = self.cluster.cli("get", "cart")
        self.assert_exit(4, conflict, "bread")
        self.assert_exit(4, conflict, "eggs")
        self.assertEqual(conflict.stdout, b"")
        self.assert_exit(0, self.cluster.cli("get", "cart", "--siblings"))
        self.cli_json("put", "cart", "bread and eggs", "--context", shown["context"])
        self.assertEqual(self.cluster.cli("get", "cart").stdout, b"bread and eggs")

    def test_bytes_that_are_no_text(self):
        self.nodes[0].put(b"bin", b"\xff\x00", w=ALL)
        value = self.cli_json("get", "bin")["values"][0]
        self.assertEqual(base64.b64decode(value["value_base64"]), b"\xff\x00")
        self.assertNotIn("value", value)

    def test_one_after_the_other(self):
        for node in self.nodes:
            key = b"row-%d" % node.index
            for i in range(20):
                node.put(key, b"%d" % i)
            self.assertEqual(self.nodes[0].values(key, r=ALL), [b"19"])
        for i in range(20):
            self.assert_exit(0, self.cluster.cli("put", "row", str(i), nodes=[self.nodes[0]]))
        self.assertEqual(self.cluster.cli("get", "row").stdout, b"19")

    def test_delete_and_create_again(self):
        for node in self.nodes:
            key = b"again-%d" % node.index
            old = node.put(key, b"old", w=ALL).context
            node.delete(key, context=old, w=ALL)
            gone = self.nodes[0].get(key, r=ALL)
            self.assertEqual(len(gone.values), 0)
            # Not found comes with a context, too: writing with it continues the deleted history.
            node.put(key, b"new", context=gone.context, w=ALL)
            self.assertEqual(self.nodes[1].values(key, r=ALL), [b"new"])
            node.delete(key, w=ALL)
            node.put(key, b"newer", w=ALL)
            self.assertEqual(self.nodes[2].values(key, r=ALL), [b"newer"])

    def test_delete_of_an_old_state_spares_what_came_later(self):
        old = self.nodes[0].put(b"late", b"old", w=ALL).context
        self.nodes[1].put(b"late", b"new", context=old, w=ALL)
        self.nodes[2].delete(b"late", context=old, w=ALL)
        self.assertEqual(self.nodes[0].values(b"late", r=ALL), [b"new"])

    def test_read_modify_writes_at_once_lose_nothing(self):
        """Two writers add words of their own to a set, each through its own node; all words survive."""
        def add_words(writer):
            node = self.nodes[writer]
            for i in range(60):
                reply = node.get(b"set")
                words = {word for value in reply.values for word in value.value.split()}
                words.add(b"%d-%d" % (writer, i))
                node.put(b"set", b" ".join(sorted(words)), context=reply.context)
                most.append(len(reply.values))

        most = []
        failures = []
        threading.excepthook = lambda failure: failures.append(failure.exc_value)
        writers = [threading.Thread(target=add_words, args=(i,)) for i in range(2)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(60)
        threading.excepthook = threading.__excepthook__
        self.assertEqual(failures, [])
        reply = self.nodes[2].get(b"set", r=ALL)
        words = {word for value in reply.values for word in value.value.split()}
        self.assertEqual(words, {b"%d-%d" % (writer, i) for writer in range(2) for i in range(60)})
        # Never more siblings than writers.
        self.assertLessEqual(max(most), 2)
        self.assertLessEqual(len(reply.values), 2)

    def test_interleaved_writers_do_not_pile_up_siblings(self):
        contexts = [self.nodes[0].get(b"explosion").context] * 2
        for i in range(50):
            for writer in range(2):
                contexts[writer] = self.nodes[writer].put(b"explosion", b"%d-%d" % (writer, i), context=contexts[writer]).context
        self.assertEqual(self.nodes[2].values(b"explosion", r=ALL), [b"0-49", b"1-49"])


if __name__ == "__main__":
    unittest.main()

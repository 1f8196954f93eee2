"""Debian's packages, imported: every record comes back byte for byte while a node is dead. With --all: all of them."""

import base64
import itertools
import json
import os
import sys
import unittest

from cases import ClusterTest
from cluster import kv_pb2, skip
from packages import lines, packages

ALL_OF_THEM = "--all" in sys.argv
COUNT = None if ALL_OF_THEM else 5000
SECONDS = 600 if ALL_OF_THEM else 60
QUORUM = kv_pb2.Replicas(name=kv_pb2.Replicas.QUORUM)
ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)


def text_of(line, name):
    return line[name].encode() if name in line else base64.b64decode(line[name + "_base64"])


class Packages(ClusterTest):
    def read_all(self, node, records, r):
        replies = node.session([{"get": kv_pb2.GetRequest(key=key, r=r)} for key in records])
        for (key, value), reply in zip(records.items(), replies):
            self.assertEqual(reply.code, 0, reply.message)
            self.assertEqual([v.value for v in reply.get.values], [value], key)

    def export(self):
        result = self.cluster.cli("export", seconds=SECONDS)
        self.assert_exit(0, result)
        pairs = [(text_of(line, "key"), text_of(line, "value")) for line in map(json.loads, result.stdout.splitlines())]
        self.assertEqual(len(dict(pairs)), len(pairs), "export gave a key twice")
        return dict(pairs)

    def test_import_and_read_while_a_node_is_dead(self):
        records = dict(itertools.islice(packages(), COUNT))
        if len(records) < 100:
            skip("apt has no package lists; apt-get update fetches them")
        path = os.path.join(self.cluster.directory, "packages.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(lines(records.items()))
        imported = self.cluster.cli("-o", "json", "import", path, seconds=SECONDS)
        self.assert_exit(0, imported)
        self.assertEqual(json.loads(imported.stdout), {"imported": len(records), "failed": 0})
        print(f"{len(records)} records, {os.path.getsize(path)} bytes, imported in {imported.seconds:.1f} s")
        self.nodes[1].kill()
        for node in (self.nodes[0], self.nodes[2]):
            self.read_all(node, records, QUORUM)
        key, value = next(iter(records.items()))
        shown = self.cluster.cli("get", key, "-r", "quorum")
        self.assertEqual((shown.code, shown.stdout), (0, value))
        self.assertEqual(self.export(), records)
        self.nodes[1].start()
        self.nodes[1].wait_ready()
        self.cluster.wait_connected()
        self.read_all(self.nodes[1], records, ALL)
        self.assertEqual(self.export(), records)


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--all"])

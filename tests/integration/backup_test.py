"""A backup of three nodes, restored into five: all keys, siblings, bytes and times of expiry; interrupted, damaged, again."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from cases import ClusterTest
from cluster import DIE_WITH_PARENT, ENVIRONMENT, GYRE, Cluster, kv_pb2, wait_until

QUORUM = kv_pb2.Replicas(name=kv_pb2.Replicas.QUORUM)
ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)
KEYS = 2000
MANY = 60_000
EXPIRING = 3 * 20 + 2 * 20  # rows, on all nodes
LONG_SECONDS = 120.0
HOUR_MS = 3600 * 1000


def contents(node, keyspace):
    """Every key of a keyspace, with its values and their times of expiry."""
    return {row.key: sorted((value.value, value.expires_at_ms) for value in row.values)
            for row in node.scan(keyspace=keyspace, r=QUORUM, timeout=LONG_SECONDS)}


def load(node, prefix, number, value=b"v"):
    replies = node.session([{"put": kv_pb2.PutRequest(key=b"%s-%d" % (prefix, i), value=b"%s-%d" % (value, i))}
                            for i in range(number)])
    assert all(reply.code == 0 for reply in replies), [reply for reply in replies if reply.code != 0][:3]


def collectible(cluster):
    return sum(int(node.metric("gyre_collectible_rows")) for node in cluster.nodes)


class BackupTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.create_keyspace("wins", n=2, conflict="last-write-wins", ttl_ms=HOUR_MS, strict=True)
        cls.directory = tempfile.mkdtemp(prefix="gyre-backup-test-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        node = cls.nodes[0]
        load(node, b"key", KEYS)
        for i in range(20):
            context = node.get(b"cart-%d" % i).context
            for value in (b"milk", b"bread", b"milk"):
                cls.nodes[i % 3].put(b"cart-%d" % i, value, context=context)
            node.put(b"expires-%d" % i, b"v", ttl_ms=HOUR_MS + i)
            node.put(b"wins-%d" % i, b"w-%d" % i, keyspace="wins")
            node.put(b"forever-%d" % i, b"f", keyspace="wins", expires_at_ms=0)
            node.put(b"deleted-%d" % i, b"d")
            node.delete(b"deleted-%d" % i)
        for key in (b"\x00", b"\xff" * 4096, b"../../etc/passwd", b"line\nline", "schlüssel".encode()):
            node.put(key, key[::-1])
        node.put(b"empty", b"")
        node.put(b"large", os.urandom(1 << 20))
        # Rows that are collected change the chunk that they are in.
        wait_until("tombstones are collected", lambda: collectible(cls.cluster) == EXPIRING, LONG_SECONDS)

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.directory, self.id().rpartition(".")[2])

    def gyre_json(self, cluster, *arguments, seconds=LONG_SECONDS):
        result = cluster.cli("-o", "json", *arguments, seconds=seconds)
        self.assert_exit(0, result)
        self.assertEqual(result.stderr, "", "nobody looks, so there is no progress to be seen")
        return json.loads(result.stdout)

    def backup(self, path=None):
        return self.gyre_json(self.cluster, "cluster", "backup", path or self.path)

    def restore(self, cluster, *flags, path=None):
        return self.gyre_json(cluster, "cluster", "restore", path or self.path, *flags)

    def assert_same(self, cluster):
        for keyspace in ("default", "wins"):
            want = contents(self.nodes[0], keyspace)
            got = contents(cluster.nodes[-1], keyspace)
            self.assertEqual(got.keys(), want.keys(), keyspace)
            self.assertEqual(got, want, keyspace)

    def run_and_kill(self, cluster, begun, *arguments):
        """Starts a command, and kills it as soon as `begun()`; False when it had ended by then."""
        process = subprocess.Popen([*DIE_WITH_PARENT, GYRE, "--endpoints", cluster.endpoints(), "cluster", *arguments],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT)
        try:
            wait_until(f"{arguments} has begun", lambda: begun() or process.poll() is not None, LONG_SECONDS)
            killed = process.poll() is None
            process.kill()
        finally:
            process.communicate()
        return killed

    def chunks(self, path=None):
        found = {}
        for folder, _, names in os.walk(os.path.join(path or self.path, "chunks")):
            for name in names:
                if name.endswith(".part"):
                    continue  # under way: it has its name when it is whole
                about = os.stat(os.path.join(folder, name))
                found[name] = (about.st_ino, about.st_size)
        return found

    # --- what must be right

    def test_three_nodes_into_five(self):
        taken = self.backup()
        keys = len(contents(self.nodes[0], "default")) + len(contents(self.nodes[0], "wins"))
        self.assertEqual(taken["nodes"], 3)
        self.assertEqual(taken["keys"], keys)
        self.assertEqual(taken["reused"], 0)
        self.assertEqual(taken["files"], len(self.chunks()))
        self.assertEqual(taken["bytes"], sum(size for _, size in self.chunks().values()))
        with Cluster(5) as target:
            restored = self.restore(target)
            self.assertEqual(restored, {"nodes": 3, "keys": keys, "written": keys, "kept": 0,
                                        "bytes": taken["bytes"], "files": taken["files"], "resumed": False})
            self.assert_same(target)
            made = {k.name: k for k in target.nodes[0].topology().keyspaces}["wins"]
            self.assertEqual((made.n, made.conflict, made.ttl_ms, made.strict), (2, "last-write-wins", HOUR_MS, True))
            # Once more changes nothing.
            before = contents(target.nodes[0], "default")
            again = self.restore(target)
            self.assertEqual((again["written"], again["kept"]), (0, keys))
            self.assertEqual(contents(target.nodes[0], "default"), before)
            # What is deleted stays deleted, and every tombstone goes.
            for node in target.nodes:
                self.assertEqual(node.values(b"deleted-7", r=ALL), [])
            expiring = collectible(target)
            for i in range(50):
                target.nodes[i % 5].delete(b"key-%d" % i, w=ALL)
            self.assertEqual(collectible(target), expiring + 3 * 50)
            wait_until("all tombstones are collected", lambda: collectible(target) == expiring, LONG_SECONDS)
            for node in target.nodes:
                for i in range(50):
                    self.assertEqual(node.values(b"key-%d" % i, r=ALL), [])

    def test_what_the_cluster_has_is_kept_unless_overwritten(self):
        self.backup()
        with Cluster(3) as target:
            for key, value in ((b"key-1", b"newer"), (b"cart-1", b"resolved"), (b"only here", b"x")):
                target.nodes[0].put(key, value)
            target.nodes[0].put(b"key-2", b"newer")
            target.nodes[0].delete(b"key-2")
            restored = self.restore(target)
            self.assertEqual(restored["kept"], 2)
            self.assertEqual(target.nodes[1].values(b"key-1"), [b"newer"])
            self.assertEqual(target.nodes[1].values(b"cart-1"), [b"resolved"])
            # A key that was deleted since is not there, and so it is restored.
            self.assertEqual(target.nodes[1].values(b"key-2"), [b"v-2"])
            restored = self.restore(target, "--overwrite")
            self.assertEqual(restored["written"], 2)
            self.assertEqual(target.nodes[1].values(b"only here"), [b"x"])
            target.nodes[0].delete(b"only here")
            self.assert_same(target)

    def test_again_sends_only_what_changed(self):
        first = self.backup()
        before = self.chunks()
        copy = self.path + "-copy"
        subprocess.run(["cp", "-al", self.path, copy], check=True)
        changed = 5
        for i in range(changed):
            self.nodes[0].put(b"key-%d" % (i * 100), b"changed")
        self.cluster.cli("cluster", "repair", "--wait")
        second = self.backup()
        after = self.chunks()
        self.assertLessEqual(second["files"] - second["reused"], 3 * changed)
        self.assertGreaterEqual(second["reused"], first["files"] - 3 * changed)
        self.assertEqual(second["files"], len(after), "what no manifest names is removed")
        for name in before.keys() & after.keys():
            self.assertEqual(before[name], after[name], "a file that is used again is the same file")
        self.assertEqual(self.chunks(copy), before, "a copy by hard links is a backup of its own")
        with Cluster(1) as target:
            self.restore(target, path=copy)
            self.assertEqual(target.nodes[0].values(b"key-100"), [b"v-100"])
            self.restore(target, "--overwrite")
            self.assert_same(target)
        third = self.backup()
        self.assertEqual((third["reused"], third["files"]), (second["files"], second["files"]))
        for i in range(changed):
            self.nodes[0].put(b"key-%d" % (i * 100), b"v-%d" % (i * 100))

    def test_interrupted_anywhere_it_goes_on(self):
        load(self.nodes[0], b"many", MANY)
        self.assertTrue(self.run_and_kill(self.cluster, lambda: len(self.chunks()) > 200, "backup", self.path))
        self.assertFalse(os.path.exists(os.path.join(self.path, "manifest.jsonl")))
        self.assert_exit(1, self.cluster.cli("cluster", "restore", self.path), "has no complete backup")
        # A node that dies is no other than the command that does.
        killed = self.nodes[2]
        process = subprocess.Popen([*DIE_WITH_PARENT, GYRE, "--endpoints", self.nodes[0].address, "cluster", "backup",
                                    self.path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT)
        there = len(self.chunks())
        wait_until("it fetches", lambda: len(self.chunks()) > there + 100 or process.poll() is not None, LONG_SECONDS)
        killed.kill()
        errors = process.communicate(timeout=LONG_SECONDS)[1].decode()
        self.assertEqual(process.returncode, 5, errors)
        self.assertIn("node ", errors)
        there = len(self.chunks())
        killed.start()
        self.cluster.wait_connected()
        taken = self.backup()
        self.assertGreaterEqual(taken["reused"], there - 10)
        with Cluster(5) as target:
            place = os.path.join(self.path, "restore-%016x.json" % target.nodes[0].topology().cluster_id)

            def written():
                try:
                    with open(place, encoding="utf-8") as file:
                        return json.loads(file.readline())["written"]
                except FileNotFoundError:
                    return 0

            self.assertTrue(self.run_and_kill(target, lambda: written() > 0, "restore", self.path))
            self.assertTrue(self.run_and_kill(target, lambda before=written(): written() > before, "restore", self.path))
            before = written()
            self.assertGreater(before, 0)
            restored = self.restore(target)
            self.assertIs(restored["resumed"], True)
            self.assertEqual((restored["written"], restored["kept"]), (taken["keys"], 0))
            self.assertFalse(os.path.exists(place))
            self.assert_same(target)
        replies = self.nodes[0].session([{"delete": kv_pb2.DeleteRequest(key=b"many-%d" % i)} for i in range(MANY)])
        self.assertTrue(all(reply.code == 0 for reply in replies))

    def test_a_flipped_bit_is_found_and_named_before_anything_is_written(self):
        self.backup()
        names = sorted(self.chunks())
        damaged = os.path.join(self.path, "chunks", names[-1][:2], names[-1])
        with Cluster(1) as target:
            for path in (damaged, os.path.join(self.path, "manifest.jsonl")):
                with open(path, "r+b") as file:
                    byte = file.read()[100]
                    file.seek(100)
                    file.write(bytes([byte ^ 4]))
                result = target.cli("-o", "json", "cluster", "restore", self.path)
                self.assert_json_error(1, result, os.path.basename(path))
                self.assertEqual(target.nodes[0].scan(), [])
            os.unlink(os.path.join(self.path, "chunks", names[0][:2], names[0]))
            # The next backup finds all that, and fetches it again.
            taken = self.backup()
            self.assertEqual((taken["damaged"], taken["files"] - taken["reused"]), (2, 2))
            self.restore(target)
            self.assert_same(target)

    def test_nothing_leaves_the_directory(self):
        self.backup()
        outside = os.path.join(self.directory, "outside")
        os.makedirs(outside, exist_ok=True)
        name = sorted(self.chunks())[0]
        folder = os.path.join(self.path, "chunks", name[:2])
        shutil.move(folder, os.path.join(outside, name[:2]))
        os.symlink(os.path.join(outside, name[:2]), folder)
        with Cluster(1) as target:
            self.assert_exit(1, target.cli("cluster", "restore", self.path), "symbolic link")
            self.assert_exit(1, self.cluster.cli("cluster", "backup", self.path), "symbolic link")
            self.assertEqual(target.nodes[0].scan(), [])
        self.assertIn(name, os.listdir(os.path.join(outside, name[:2])))

    def test_what_is_wrong_is_said(self):
        self.backup()
        self.assert_exit(2, self.cluster.cli("cluster", "backup"), "DIR")
        self.assert_exit(2, self.cluster.cli("cluster", "backup", ""), "empty")
        self.assert_exit(2, self.cluster.cli("cluster", "backup", self.path, "--without", "nobody"), "nobody")
        self.assert_exit(1, self.cluster.cli("cluster", "restore", self.path + "-missing"), "missing")
        strange = os.path.join(self.directory, "strange")
        os.makedirs(strange, exist_ok=True)
        with open(os.path.join(strange, "letter.txt"), "w", encoding="utf-8") as file:
            file.write("dear")
        self.assert_exit(1, self.cluster.cli("cluster", "backup", strange), "letter.txt")
        with Cluster(1) as other:
            self.assert_exit(1, other.cli("cluster", "backup", self.path), "another cluster")
            other.create_keyspace("wins", n=2)
            self.assert_exit(1, other.cli("cluster", "restore", self.path), "last-write-wins")
            self.assertEqual(other.nodes[0].scan(), [])
        self.assert_json_error(5, self.cluster.cli("-o", "json", "cluster", "restore", self.path, "--endpoints",
                                                   "127.0.0.1:1", nodes=[]))

    def test_a_member_that_is_away_is_named_and_can_be_left_out(self):
        away = self.nodes[1]
        member = next(n.id for n in self.nodes[0].topology().nodes if n.address == away.address)
        away.kill()
        up = [self.nodes[0], self.nodes[2]]
        result = self.cluster.cli("cluster", "backup", self.path, nodes=up)
        self.assert_exit(5, result, "--without " + member)
        result = self.cluster.cli("-o", "json", "cluster", "backup", self.path, "--without", member, nodes=up)
        self.assert_exit(0, result)
        self.assertEqual(json.loads(result.stdout)["nodes"], 2)
        away.start()
        self.cluster.wait_connected()
        with Cluster(1) as target:
            self.restore(target)
            self.assert_same(target)


if __name__ == "__main__":
    unittest.main()

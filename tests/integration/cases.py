"""What the integration tests share: a cluster for each class of tests, and assertions about statuses."""

import contextlib
import json
import time
import unittest

import grpc

from cluster import Cluster


class ClusterTest(unittest.TestCase):
    """Tests that share one cluster, which is whole when each begins."""

    NODES = 3
    SETTINGS = {}

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(cls.NODES, cls.SETTINGS))
        cls.nodes = cls.cluster.nodes

    def setUp(self):
        self.cluster.start()

    def status(self, call, *arguments, **fields):
        """(code, message) of the failure of a call, or (None, reply)."""
        try:
            return None, call(*arguments, **fields)
        except grpc.RpcError as error:
            return error.code(), error.details()

    def assert_status(self, codes, words, call, *arguments, **fields):
        """The call fails with one of `codes`, and its message names all of `words`."""
        code, message = self.status(call, *arguments, **fields)
        self.assertIn(code, codes if isinstance(codes, tuple) else (codes,), message)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, message)
        return message

    def assert_exit(self, codes, result, words=""):
        """A program ended with one of these codes; when it failed it said why, on stderr and only there."""
        self.assertIn(result.code, codes if isinstance(codes, tuple) else (codes,), result)
        if result.code != 0:
            self.assertNotEqual(result.stderr.strip(), "", result)
        self.assertIn(words, result.stderr, result)

    def assert_json_error(self, codes, result, words=""):
        self.assert_exit(codes, result, words)
        error = json.loads(result.stderr.strip().splitlines()[-1])["error"]
        self.assertEqual(set(error), {"code", "message"})

    @contextlib.contextmanager
    def within(self, seconds, what):
        begun = time.monotonic()
        yield
        self.assertLess(time.monotonic() - begun, seconds, what)

"""The SDK as a package: installed, and linked by an application outside the tree, by CMake and by pkg-config."""

import os
import shlex
import subprocess
import tempfile
import unittest

from cases import ClusterTest
from cluster import ENVIRONMENT, GYRED, kv_pb2, run, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.path.abspath(GYRED))
APPLICATION = os.path.join(ROOT, "tests", "integration", "application")
EXAMPLES = [os.path.join(ROOT, "client", "examples", name)
            for name in sorted(os.listdir(os.path.join(ROOT, "client", "examples"))) if name.endswith(".cc")]
BUILD_SECONDS = 240

SAID = {
    "first_steps": "bread,milk\n",
    "shopping_cart": "siblings: 2\nsiblings: 1\nbread\neggs\nmilk\n",
    "pipeline": "written 5000, failed 0\n",
    "session_store": "begun: ada\nunused for a second: nobody\nlogged out: nobody\n",
    "members": "3 members, client 0.1.0\n",
    "refused": "INVALID_ARGUMENT: endpoints is empty: give at least one HOST:PORT\n",
}


class Package(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gyre-test-"))
        cls.prefix = os.path.join(cls.directory, "installed")
        cls.tool("cmake", "--install", BUILD, "--prefix", cls.prefix)
        cls.lib = os.path.join(cls.prefix, "lib")

    @staticmethod
    def tool(*arguments, environment=ENVIRONMENT):
        result = run(list(arguments), seconds=BUILD_SECONDS, environment=environment)
        assert result.code == 0, result
        return result.stdout.decode()

    def says_what_it_should(self, application, environment=ENVIRONMENT):
        for example, said in SAID.items():
            with self.subTest(example):
                result = run([application, example, self.nodes[0].address], environment=environment)
                self.assert_exit(0, result)
                self.assertEqual(result.stdout.decode(), said)

    def test_by_cmake(self):
        build = os.path.join(self.directory, "by-cmake")
        self.tool("cmake", "-G", "Ninja", "-S", APPLICATION, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                  f"-DEXAMPLES={';'.join(EXAMPLES)}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror -Wno-missing-field-initializers")
        self.tool("ninja", "-C", build)
        self.says_what_it_should(os.path.join(build, "application"))
        self.tool(os.path.join(build, "mocked"))
        # With a node away, all replicas cannot answer.
        self.nodes[2].kill()
        wait_until("the loss is noticed", lambda: self.nodes[2].address in {
            node.address for node in self.nodes[0].topology().nodes if node.state != kv_pb2.Node.UP})
        result = run([os.path.join(build, "application"), "too_few", self.nodes[0].address])
        self.assert_exit(0, result)
        self.assertEqual(result.stdout, b"0 of 3\n0 of 3\n")

    def test_by_pkg_config(self):
        environment = {**ENVIRONMENT, "PKG_CONFIG_PATH": os.path.join(self.lib, "pkgconfig"), "LD_LIBRARY_PATH": self.lib}
        self.assertEqual(self.tool("pkg-config", "--modversion", "gyre", environment=environment), "0.1.0\n")
        flags = shlex.split(self.tool("pkg-config", "--cflags", "--libs", "gyre", environment=environment))
        application = os.path.join(self.directory, "application")
        self.tool("g++", "-std=c++20", os.path.join(APPLICATION, "main.cc"), *EXAMPLES, *flags, "-o", application)
        self.says_what_it_should(application, environment)

    def test_the_library_shows_its_interface_and_nothing_else(self):
        library = os.path.join(self.lib, "libgyre.so")
        self.assertEqual(os.readlink(library), "libgyre.so.0.1")
        self.assertIn("libgyre.so.0.1", self.tool("objdump", "-p", library).split("SONAME")[1].split("\n")[0])
        names = self.tool("nm", "--dynamic", "--defined-only", "--demangle", library).splitlines()
        self.assertTrue(any("gyre::" in name and "Client::Connect" in name for name in names))
        # Weak symbols are what the compiler makes of templates of others; ours are strong.
        foreign = [name for name in names if name.split(maxsplit=2)[1] in "TDBR" and "gyre::" not in name]
        self.assertEqual(foreign, [])
        for hidden in ("RetryPlan", "Routing", "SessionStream", "::Ring", "PutRequest::"):
            self.assertEqual([name for name in names if hidden in name], [], hidden)

    def test_headers_drag_nothing_in(self):
        headers = []
        for folder, _, files in os.walk(os.path.join(self.prefix, "include")):
            headers += [os.path.relpath(os.path.join(folder, name), os.path.join(self.prefix, "include")) for name in files]
        self.assertIn("gyre/client.h", headers)
        self.assertIn("gyre/mocks/mock_connection.h", headers)
        # Each alone, and without gRPC, the protocol or anything of this tree.
        for header in sorted(headers):
            with self.subTest(header):
                made = subprocess.run(
                    ["g++", "-std=c++20", "-fsyntax-only", "-M", f"-I{self.prefix}/include", "-include", header, "-x", "c++", "/dev/null"],
                    capture_output=True, text=True, check=True, timeout=BUILD_SECONDS).stdout
                for dragged in ("grpc", "google/protobuf", ".pb.h", ROOT + "/client"):
                    self.assertNotIn(dragged, made)


if __name__ == "__main__":
    unittest.main()

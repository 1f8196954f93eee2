"""The reference of the SDK: Doxygen builds it without a warning, and all that is public has a comment."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from cluster import skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOXYFILE = os.path.join(ROOT, "deploy", "doxygen", "Doxyfile")
# A field whose name and type say it all, and equality, need no words.
SAID_BY_ITSELF = re.compile(r"\(variable\) of struct|operator==|~\w+\(\)")


class Reference(unittest.TestCase):
    def doxygen(self, *settings):
        with tempfile.TemporaryDirectory(prefix="gyre-test-") as directory, open(DOXYFILE, encoding="utf-8") as file:
            text = "\n".join([file.read(), f"OUTPUT_DIRECTORY = {directory}", *settings])
            result = subprocess.run(["doxygen", "-"], input=text, capture_output=True, text=True, cwd=ROOT, timeout=240, check=False)
            pages = os.listdir(os.path.join(directory, "html")) if result.returncode == 0 else []
        return result, pages

    def test_it_is_built_without_a_warning(self):
        result, pages = self.doxygen()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(any("Client.html" in page for page in pages))

    def test_all_that_is_public_has_a_comment(self):
        result, _ = self.doxygen("EXTRACT_ALL = NO", "WARN_AS_ERROR = NO")
        bare = [line for line in result.stderr.splitlines() if "not documented" in line and not SAID_BY_ITSELF.search(line)]
        self.assertEqual(bare, [])


if __name__ == "__main__":
    if shutil.which("doxygen") is None:
        skip("there is no doxygen here")
    unittest.main()

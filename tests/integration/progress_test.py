"""Commands that take their time draw how far they are: for a person only, on one line that is gone in the end."""

import json
import os
import unittest

from cases import ClusterTest
from cluster import ENVIRONMENT, GYRE
from terminal import Terminal

ROWS = 2000


class Progress(ClusterTest):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.cluster.directory, "rows.json")
        with open(self.file, "w", encoding="utf-8") as file:
            for i in range(ROWS):
                file.write(json.dumps({"key": f"{i:05}", "value": "v"}) + "\n")

    def watched(self, *arguments):
        """What a person is shown of a command: (lines drawn and erased, what stands there in the end, its exit code)."""
        # NO_COLOR asks for no more than there is: nothing here is coloured.
        terminal = Terminal([GYRE, "--endpoints", self.cluster.endpoints(), *arguments], {**ENVIRONMENT, "NO_COLOR": "1"})
        self.addCleanup(terminal.close)
        shown, code = terminal.read()
        self.assertNotRegex(shown, r"\x1b\[[0-9;]*m")
        *drawn, left = shown.replace("\r\n", "\n").split("\r\x1b[K")
        return [line for line in drawn if line], left, code

    def assert_bars(self, drawn, doing):
        self.assertNotEqual(drawn, [])
        for line in drawn:
            self.assertRegex(line, r"^\[=*>? *\] [0-9]+%  " + doing + "$")

    def test_import_and_export(self):
        drawn, left, code = self.watched("import", self.file)
        self.assertEqual((left, code), (f"imported {ROWS}, failed 0\n", 0))
        self.assert_bars(drawn, "importing")
        exported = os.path.join(self.cluster.directory, "exported.json")
        drawn, left, code = self.watched("export", exported)
        self.assertEqual((left, code), ("", 0))
        self.assert_bars(drawn, "exporting")
        with open(exported, encoding="utf-8") as file:
            self.assertEqual(sum(1 for _ in file), ROWS)

    def test_an_error_stands_on_a_line_of_its_own(self):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write('nonsense\n{"key": "00000", "value": "v"}\n')
        drawn, left, code = self.watched("import", self.file)
        self.assertEqual(code, 2)
        said = [text for text in [*drawn, left] if not text.startswith("[")]
        self.assertEqual("".join(said), "gyre: line 1: is not a JSON object (IMPORT)\nimported 1, failed 1\n")

    def test_repair(self):
        drawn, left, code = self.watched("cluster", "repair", "--wait")
        self.assertEqual(code, 0)
        self.assertRegex(left, r"^ranges +[0-9]+\n")
        self.assertEqual(len(drawn), 3)
        self.assert_bars(drawn, "repairing node [0-9a-f]{16}")

    def test_nobody_looks(self):
        exported = os.path.join(self.cluster.directory, "exported.json")
        for command in (["import", self.file], ["export", exported], ["cluster", "repair", "--wait"]):
            result = self.cluster.cli(*command)
            self.assert_exit(0, result)
            self.assertEqual(result.stderr, "")
        # Rows that a person looks at are not written over.
        drawn, left, code = self.watched("export")
        self.assertEqual((drawn, left.count("\n"), code), ([], ROWS, 0))


if __name__ == "__main__":
    unittest.main()

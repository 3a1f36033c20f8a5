#!/usr/bin/env python3
"""tools/scripts/pages.py and header_comments.py: links that lead nowhere are named, pages of a site have links of the site.

usage: test_pages.py FOLDER-OF-THE-SCRIPTS"""
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(sys.argv.pop(1))


def load(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / (name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name).resolve()
        self.pages = load("pages")
        self.pages.ROOT = self.root
        for name in self.pages.TOP:
            self.write(name, "# Top\n")
        self.write("docs/README.md", "# Pages\n\n- [one](one.md): first\n- [two](two.md)\n")
        self.write("docs/one.md", "# One\n\n## A `thing` to do\n")
        self.write("docs/two.md", "# Two\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def test_links_that_lead_somewhere(self):
        self.write("docs/two.md", "# Two\n\n[a](one.md#a-thing-to-do) [b](../README.md) [c](#two) [d](https://nowhere.invalid/x) "
                   "`[e](none.md)`\n```\n[f](none.md)\n```\n")
        self.assertEqual(self.pages.check(), [])

    def test_links_that_lead_nowhere(self):
        self.write("docs/two.md", "# Two\n\n[a](none.md) [b](one.md#none) [c](#none) [d](../docs/../../outside.md)\n")
        self.assertEqual(self.pages.check(), [
            "docs/two.md: none.md leads to no file", "docs/two.md: one.md#none leads to no heading of docs/one.md",
            "docs/two.md: #none leads to no heading of docs/two.md", "docs/two.md: ../docs/../../outside.md leads to no file"])

    def test_a_page_that_only_a_link_finds(self):
        self.write("docs/two.md", "# Two\n\n[spec](../formats/SPEC.md)\n")
        self.write("formats/SPEC.md", "# Spec\n\n[wrong](none.c)\n")
        self.assertEqual(self.pages.check(), ["formats/SPEC.md: none.c leads to no file"])

    def test_a_site(self):
        self.write("README.md", "# Top\n\n[one](docs/one.md#a-thing-to-do), [source](a/b.c), [all](docs/README.md), `[x](docs/one.md)`\n")
        self.write("a/b.c", "int x;\n")
        self.write("docs/one.md", "# One\n\n## A `thing` to do\n\n[spec](../formats/SPEC.md) [up](../README.md)\n")
        self.write("formats/SPEC.md", "# Spec\n\n[back](../docs/one.md)\n")
        self.write("base/include/millrace/base.h", "#define MR_VERSION_MAJOR 1\n#define MR_VERSION_MINOR 20\n#define MR_VERSION_PATCH 3\n")
        out = self.root / "out"
        self.pages.lay(out)
        text = (out / "docs" / "index.md").read_text(encoding="utf-8")
        self.assertIn("[one](one.md#a-thing-to-do), [source](files/a/b.c), [all](pages.md), `[x](docs/one.md)`", text)
        self.assertEqual((out / "docs/files/a/b.c").read_text(encoding="utf-8"), "int x;\n")
        self.assertIn("[spec](formats/SPEC.md) [up](index.md)", (out / "docs/one.md").read_text(encoding="utf-8"))
        self.assertIn("[back](../one.md)", (out / "docs/formats/SPEC.md").read_text(encoding="utf-8"))
        site = json.loads((out / "mkdocs.yml").read_text(encoding="utf-8"))
        menu = site["nav"]
        self.assertEqual(site["site_name"], "millrace 1.20.3")
        self.assertEqual(menu[2], {"Manual": [{"One": "one.md"}, {"Two": "two.md"}]})
        self.assertIn({"Spec": "formats/SPEC.md"}, menu[3]["Project"])


class Comments(unittest.TestCase):
    def test_what_doxygen_gets(self):
        text = "/* x.h: all. */\n/* f .. g\n * \\xNN */\nint f(void);\nint a; /* one */\n"
        self.assertEqual(load("header_comments").marked(text),
                         "/** @file\n * x.h: all. */\n/** f ..\\ g\n * \\\\xNN */\nint f(void);\nint a; /**< one */\n")

    def test_names_headings_and_rows(self):
        text = "/* millrace/x.h: all. */\n/* ---- part ---- */\n/* f.\n *\n * MR_OK      good,\n *            or so\n * other < 0  bad */\nint f(void);\n"
        self.assertEqual(load("header_comments").marked(text),
                         "/** @file\n * all. */\n/* ---- part ---- */\n/** f.\n *\n * - <b>MR_OK</b> good,\n *            or so\n"
                         " * - <b>other &lt; 0</b> bad */\nint f(void);\n")


if __name__ == "__main__":
    unittest.main()

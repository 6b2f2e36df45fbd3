"""Tests of oci_image.py: python3 oci_image_test.py."""

import gzip
import io
import json
import os
import tarfile
import tempfile
import unittest

import oci_image

EPOCH = 1700000000


def layer(entries):
    """The bytes of a layer. Entries: (path, content or None for a folder or (type, target) for a link, mtime)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content, mtime in entries:
            member = tarfile.TarInfo(path)
            member.mtime = mtime
            if content is None:
                member.type = tarfile.DIRTYPE
                tar.addfile(member)
            elif isinstance(content, tuple):
                member.type, member.linkname = content
                tar.addfile(member)
            else:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


class OciImageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def convert(self, name, layers, **settings):
        """Returns the digest, and the archive's files by path."""
        saved, out = os.path.join(self.folder, name + ".tar"), os.path.join(self.folder, name + ".oci.tar")
        config = {"architecture": "amd64", "os": "linux", "created": name, "config": {"User": "65532:65532", **settings}}
        files = {"c.json": json.dumps(config).encode()}
        files.update({f"{i}/layer.tar": content for i, content in enumerate(layers)})
        paths = [f"{i}/layer.tar" for i in range(len(layers))]
        files["manifest.json"] = json.dumps([{"Config": "c.json", "RepoTags": ["x:1"], "Layers": paths}]).encode()
        with tarfile.open(saved, "w") as tar:
            for path, content in files.items():
                member = tarfile.TarInfo(path)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        found = oci_image.convert(saved, "x", "1", out, EPOCH)
        with tarfile.open(out) as tar:
            return found, {member.name: tar.extractfile(member).read() for member in tar}

    def content(self, files):
        """The image's files: {path: content or the target of a link}."""
        manifest = json.loads(files["manifest.json"])[0]
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(files[manifest["Layers"][0]]))) as tar:
            return {m.name: m.linkname or (b"/" if m.isdir() else tar.extractfile(m).read()) for m in tar}

    def test_order_times_and_traces_of_the_build_do_not_count(self):
        one = [layer([("usr", None, 1), ("usr/b", b"B", 2), ("usr/a", b"A", 3), ("var/log/dpkg.log", b"one", 4)])]
        other = [layer([("usr", None, 9)]), layer([("usr/a", b"A", 8), ("etc/machine-id", b"m", 7), ("usr/b", b"B", 7)])]
        first, files = self.convert("one", one)
        second, _ = self.convert("other", other)
        self.assertEqual(first, second)
        self.assertEqual(self.content(files), {"usr": b"/", "usr/a": b"A", "usr/b": b"B"})
        with open(os.path.join(self.folder, "one.oci.tar"), "rb") as a, open(os.path.join(self.folder, "other.oci.tar"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_content_and_settings_count(self):
        digests = {
            self.convert("a", [layer([("a", b"A", 1)])])[0],
            self.convert("b", [layer([("a", b"B", 1)])])[0],
            self.convert("c", [layer([("a", b"A", 1)])], Cmd=["sh"])[0],
        }
        self.assertEqual(len(digests), 3)

    def test_layers_replace_and_remove(self):
        _, files = self.convert("image", [
            layer([("d", None, 1), ("d/old", b"1", 1), ("gone", b"2", 1), ("e", None, 1), ("e/old", b"3", 1), ("f", None, 1), ("f/x", b"4", 1)]),
            layer([("d/.wh..wh..opq", b"", 1), ("d/new", b"5", 1), (".wh.gone", b"", 1), ("e/old", b"6", 1), ("f", b"7", 1)]),
        ])
        self.assertEqual(self.content(files), {"d": b"/", "d/new": b"5", "e": b"/", "e/old": b"6", "f": b"7"})

    def test_links(self):
        _, files = self.convert("image", [
            layer([("a", b"A", 1), ("hard", (tarfile.LNKTYPE, "a"), 1), ("soft", (tarfile.SYMTYPE, "a"), 1)]),
            layer([("a", b"new", 1)]),
        ])
        self.assertEqual(self.content(files), {"a": b"new", "hard": b"A", "soft": "a"})

    def test_digests_lead_to_the_content(self):
        found, files = self.convert("image", [layer([("a", b"A", 1)])], Cmd=["sh"], Hostname="build-7")
        index = json.loads(files["index.json"])
        self.assertEqual(index["manifests"][0]["digest"], found)
        for path, content in files.items():
            if path.startswith("blobs/"):
                self.assertEqual("blobs/" + oci_image.digest(content).replace(":", "/"), path)
        config = json.loads(files[json.loads(files["manifest.json"])[0]["Config"]])
        self.assertEqual(config["config"], {"User": "65532:65532", "Cmd": ["sh"]})
        self.assertEqual(config["created"], "2023-11-14T22:13:20Z")

    def test_several_images_are_an_error(self):
        saved = os.path.join(self.folder, "two.tar")
        with tarfile.open(saved, "w") as tar:
            member = tarfile.TarInfo("manifest.json")
            content = b"[{},{}]"
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        with self.assertRaisesRegex(ValueError, "expected one image, found 2"):
            oci_image.convert(saved, "x", "1", saved + ".out", EPOCH)


if __name__ == "__main__":
    unittest.main()

"""oci_image.py SAVED NAME VERSION OUT: from `docker save` (.tar or .tar.gz) an image archive with the same bytes for the same content.

All layers become one, sorted, with the time SOURCE_DATE_EPOCH and without files that only name the build. OUT is an OCI
image layout which `docker load`, skopeo and crane read. Prints `NAME:VERSION sha256:…`, the digest of the manifest: an
image that is pushed with skopeo or crane has it in the registry.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time

# Written by the build or by dpkg's and ldconfig's runs in it; the images do not use them.
VOLATILE = ("var/log/", "var/cache/", "var/lib/apt/lists/", "tmp/", "run/lock/")
VOLATILE_FILES = (".dockerenv", "etc/machine-id", "etc/hostname", "etc/hosts", "etc/resolv.conf")
KEPT_SETTINGS = ("User", "Env", "Entrypoint", "Cmd", "WorkingDir", "Healthcheck", "Labels", "ExposedPorts", "Volumes", "StopSignal")
WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"


def is_volatile(path, member):
    return path in VOLATILE_FILES or (not member.isdir() and path.startswith(VOLATILE))


def remove_below(files, folder):
    for path in [path for path in files if path.startswith(folder + "/")]:
        del files[path]


def merged(layers):
    """The files that a container sees: {path: (member, layer)}. Each layer is an open tarfile; later ones win."""
    files = {}
    for layer in layers:
        added = []
        for member in layer:
            path = os.path.normpath(member.name).lstrip("/")
            folder, name = os.path.split(path)
            if name == OPAQUE:
                remove_below(files, folder)
            elif name.startswith(WHITEOUT):
                gone = os.path.join(folder, name[len(WHITEOUT):])
                files.pop(gone, None)
                remove_below(files, gone)
            elif path != ".":
                added.append((path, member))
        # A layer's removals are about the layers below it.
        for path, member in added:
            if not member.isdir():
                remove_below(files, path)
            files[path] = (member, layer)
    return files


def content_of(files, path):
    """The bytes of a regular file. A hard link leads to a file of its own layer, whatever replaced that since."""
    member, layer = files[path]
    stream = layer.extractfile(member)
    return b"" if stream is None else stream.read()


def one_layer(files, epoch):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(files):
            old = files[path][0]
            if is_volatile(path, old):
                continue
            new = tarfile.TarInfo(path)
            new.mode, new.uid, new.gid, new.mtime = old.mode, old.uid, old.gid, epoch
            if old.isreg() or old.islnk():
                content = content_of(files, path)
                new.size = len(content)
                tar.addfile(new, io.BytesIO(content))
            else:
                new.type, new.linkname, new.devmajor, new.devminor = old.type, old.linkname, old.devmajor, old.devminor
                tar.addfile(new)
    return out.getvalue()


def compressed(data):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as stream:
        stream.write(data)
    return out.getvalue()


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def convert(saved, name, version, out, epoch):
    """Writes `out`; returns the manifest's digest."""
    with tarfile.open(saved) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))
        if len(manifest) != 1:
            raise ValueError(f"{saved}: expected one image, found {len(manifest)}")
        old = json.load(archive.extractfile(manifest[0]["Config"]))
        layers = [tarfile.open(fileobj=io.BytesIO(archive.extractfile(path).read())) for path in manifest[0]["Layers"]]
        data = one_layer(merged(layers), epoch)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    config = as_json({
        "created": created,
        "architecture": old["architecture"],
        "os": old["os"],
        "config": {key: old["config"][key] for key in KEPT_SETTINGS if old["config"].get(key)},
        "rootfs": {"type": "layers", "diff_ids": [digest(data)]},
        "history": [{"created": created, "created_by": f"{name} {version}"}],
    })
    layer = compressed(data)
    image = as_json({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(config), "size": len(config)},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest(layer), "size": len(layer)}],
    })
    index = as_json({
        "schemaVersion": 2,
        "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(image), "size": len(image),
            "annotations": {"io.containerd.image.name": f"{name}:{version}", "org.opencontainers.image.ref.name": version},
        }],
    })

    def blob(content):
        return "blobs/" + digest(content).replace(":", "/")

    # docker load reads manifest.json, others the layout.
    docker = as_json([{"Config": blob(config), "RepoTags": [f"{name}:{version}"], "Layers": [blob(layer)]}])
    files = {"oci-layout": as_json({"imageLayoutVersion": "1.0.0"}), "index.json": index, "manifest.json": docker}
    files.update({blob(content): content for content in (config, layer, image)})
    with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(files):
            member = tarfile.TarInfo(path)
            member.size, member.mtime, member.mode = len(files[path]), epoch, 0o644
            tar.addfile(member, io.BytesIO(files[path]))
    return digest(image)


def main():
    saved, name, version, out = sys.argv[1:]
    print(f"{name}:{version} {convert(saved, name, version, out, int(os.environ['SOURCE_DATE_EPOCH']))}")


if __name__ == "__main__":
    main()

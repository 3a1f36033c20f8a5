#!/usr/bin/env python3
"""The dependencies of the artefacts of a release, as CycloneDX 1.5.

usage: sbom.py --version V --time SECONDS --wheel-sources FOLDER DIST > FILE

For the wheel: the sources that python/manylinux/build.sh unpacked and linked in (FOLDER/NAME-VERSION). For the packages of Debian:
what their control files depend on. The same input gives the same bytes: times and identifiers come from the arguments.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse
import uuid

WHEEL_SOURCES = ("liburing", "libjpeg-turbo", "libspng", "zlib", "libisal", "xxhash", "cjson")


def debian_field(package: pathlib.Path, field: str) -> str:
    return subprocess.run(["dpkg-deb", "--field", str(package), field], check=True, capture_output=True, text=True).stdout.strip()


def component(name: str, version: str, purl: str, scope: str) -> dict:
    found = {"type": "library", "bom-ref": purl, "name": name, "purl": purl, "scope": scope}
    if version:
        found["version"] = version
    return found


def linked_into_the_wheel(sources: pathlib.Path) -> list:
    """Versions are the distribution's, with its patches: the first line of debian/changelog in the folder that dpkg-source made."""
    found = []
    for name in WHEEL_SOURCES:
        folders = sorted(p.name for p in sources.glob(name + "-*") if p.is_dir())
        if len(folders) != 1:
            sys.exit("sbom.py: %d folders called %s-VERSION in %s; expected one" % (len(folders), name, sources))
        with open(sources / folders[0] / "debian" / "changelog", encoding="utf-8") as f:
            version = re.match(r"[^ ]+ \(([^)]+)\)", f.readline())[1]
        found.append(component(name, version, "pkg:deb/debian/%s@%s?arch=source" % (name, urllib.parse.quote(version, "")), "required"))
    return found


def needed_by_packages(packages: list, own: set) -> list:
    """Names in Depends and Recommends; alternatives count as their first."""
    found = {}
    for package in packages:
        for field, scope in (("Depends", "required"), ("Recommends", "optional")):
            for entry in debian_field(package, field).split(","):
                m = re.match(r"\s*([a-z0-9][a-z0-9+.-]*)(?::any)?\s*(?:\(([<>=]+)\s*([^)]*)\))?", entry)
                if m and m.group(1) not in own and (m.group(1) not in found or scope == "required"):
                    found[m.group(1)] = component(m.group(1), "", "pkg:deb/debian/" + m.group(1), scope)
    return [found[k] for k in sorted(found)]


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--version", required=True)
    p.add_argument("--time", type=int, required=True)
    p.add_argument("--wheel-sources", type=pathlib.Path, required=True)
    p.add_argument("dist", type=pathlib.Path)
    a = p.parse_args()
    packages = sorted(a.dist.glob("*.deb"))
    wheels = sorted(a.dist.glob("*.whl"))
    components = linked_into_the_wheel(a.wheel_sources) if wheels else []
    components += needed_by_packages(packages, {debian_field(d, "Package") for d in packages})
    ours = "pkg:generic/millrace@" + a.version
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": "urn:uuid:%s" % uuid.uuid5(uuid.NAMESPACE_URL, "%s?%d" % (ours, a.time)),
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(a.time)),
            "component": {"type": "application", "bom-ref": ours, "name": "millrace", "version": a.version, "purl": ours,
                          "licenses": [{"license": {"id": "MIT"}}]},
        },
        "components": components,
        "dependencies": [{"ref": ours, "dependsOn": [c["bom-ref"] for c in components]}],
    }
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()

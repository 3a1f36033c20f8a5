"""Reads a source tree: all its files, and the arrows between them."""

import os

from graph_file import File, declarations, names_in

TOP_FOLDERS = ("base", "settings", "formats", "kernels", "pipeline", "ranks", "train", "run", "tools")
ENDINGS = (".c", ".h", ".cu", ".cuh", ".cc")


class Tree:
    """All files below root, and the arrows between them."""

    def __init__(self, root):
        self.files = {}
        for top in TOP_FOLDERS:
            for folder, _, names in sorted(os.walk(os.path.join(root, top))):
                for name in sorted(names):
                    if name.endswith(ENDINGS):
                        path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
                        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
                            self.files[path] = File(path, file.read())
        self.rooms = {file.room for file in self.files.values()}
        self.includes = self.find_includes()
        self.included = {}
        for source, target in self.includes:
            self.included.setdefault(source, []).append(target)
        self.calls = self.find_calls()

    def find_includes(self):
        """{(file, file): ['include']}"""
        public = {path.split("/include/", 1)[1]: path for path in self.files if "/include/" in path}
        arrows = {}
        for file in self.files.values():
            for name in file.includes:
                beside = os.path.normpath(os.path.join(os.path.dirname(file.path), name)).replace(os.sep, "/")
                target = next((p for p in (name, beside, public.get(name)) if p in self.files), None)
                if target and target != file.path:
                    arrows[(file.path, target)] = ["include"]
        return arrows

    def find_calls(self):
        """{(file, file): names}. Of files that define one name, that in the caller's room is meant.

        An inline function of a public header is its caller's: NAME() stands for the library's NAME_sized()."""
        definers = self.find_definers()
        inline = self.find_inline(definers)
        arrows = {}
        for file in self.files.values():
            if "/include/" in file.path:
                continue
            seen = self.seen_by(file.path)
            for name in sorted(file.uses()):
                name = name if name in definers or name + "_sized" not in definers else name + "_sized"
                targets = definers.get(name) or [t for t in inline.get(name, ()) if t.path in seen]
                near = [t for t in targets if t.room == file.room] or [
                    t for t in targets if t.top == file.top
                ]
                for target in near or targets:
                    if target.unit != file.unit:
                        arrows.setdefault((file.path, target.path), []).append(name)
        return arrows

    def find_definers(self):
        """{function or global: files that define it for others}"""
        found = {}
        declared = set().union(*(declarations(file) for file in self.files.values()))
        for file in self.files.values():
            for name in file.defines & declared:
                found.setdefault(name, []).append(file)
        return found

    def find_inline(self, definers):
        """{name: headers that define it}: inline functions, and macros that use a function or global."""
        found = {}
        for file in self.files.values():
            if file.is_header():
                macros = {name for name, tokens in file.macros.items() if names_in(tokens) & definers.keys()}
                for name in file.inline_functions() | macros:
                    found.setdefault(name, []).append(file)
        return found

    def seen_by(self, path):
        """Headers that a file includes, directly or through others."""
        seen, queue = {path}, [path]
        for source in queue:
            for target in self.included.get(source, ()):
                if target not in seen:
                    seen.add(target)
                    queue.append(target)
        return seen

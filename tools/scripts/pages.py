#!/usr/bin/env python3
"""Makes the pages of the repository into pages of a site, and checks their links.

usage: pages.py check              every link of a page leads to a file of the tree, and to a heading of it
       pages.py lay FOLDER         pages and mkdocs.yml for `mkdocs build`; files that are no pages lie in FOLDER/docs/files

The pages are README.md and its neighbours, docs/*.md and every other page that one of them links to. The order of the menu is that of
docs/README.md. Exit status 1: links that lead nowhere, one a line."""
import json
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOP = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
LINK = re.compile(r"(!?\[[^][]*(?:\[[^][]*\][^][]*)*\])\(([^()\s]+)\)")


def blocks(text):
    """Pieces of a page: (is it code, piece)."""
    for k, piece in enumerate(re.split(r"(^ *```.*?^ *```[^\S\n]*$|`[^`\n]*`)", text, flags=re.S | re.M)):
        yield k % 2 == 1, piece


def links(page):
    """Targets of the links of a page, outside of code and of the web: (file, heading or "")."""
    for is_code, piece in blocks((ROOT / page).read_text(encoding="utf-8")):
        for m in [] if is_code else LINK.finditer(piece):
            if "://" not in m.group(2) and not m.group(2).startswith("mailto:"):
                path, _, heading = m.group(2).partition("#")
                yield m.group(2), (str(resolve(page, path)) if path else page), heading


def resolve(page, path):
    target = (ROOT / page).parent.joinpath(path).resolve()
    return target.relative_to(ROOT) if target.is_relative_to(ROOT) else path


def anchors(page):
    """The name of a heading in a link, as the forges and MkDocs make it."""
    found, fence = set(), False
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            fence = not fence
        m = None if fence else re.match(r"#+ +(.*?) *#*$", line)
        if m:
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", m.group(1)).replace("`", "").lower()
            name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            found.add(name if name not in found else name + "-1")
    return found


def pages():
    """All pages, each with the reason why it is one: a link, or its place."""
    found = TOP + sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))
    for page in found:  # grows meanwhile
        for _, target, _ in links(page):
            if target.endswith(".md") and target not in found and (ROOT / target).is_file():
                found.append(target)
    return found


def check():
    wrong = []
    for page in pages():
        for text, target, heading in links(page):
            if not (ROOT / target).exists():
                wrong.append("%s: %s leads to no file" % (page, text))
            elif heading and target.endswith(".md") and heading not in anchors(target):
                wrong.append("%s: %s leads to no heading of %s" % (page, text, target))
    return wrong


def place_of(page):
    """Where a page lies on the site. Its front page is README.md."""
    if page == "README.md":
        return "index.md"
    if page == "docs/README.md":
        return "pages.md"
    return page[len("docs/"):] if page.startswith("docs/") else page


def lay(folder):
    all_pages = pages()
    site = folder / "docs"
    shutil.rmtree(site, ignore_errors=True)
    files = set()

    def change(page):
        here = pathlib.PurePosixPath(place_of(page)).parent

        def changed(m):
            if "://" in m.group(2) or m.group(2).startswith(("#", "mailto:")):
                return m.group(0)
            path, _, heading = m.group(2).partition("#")
            target = str(resolve(page, path))
            if target in all_pages:
                to = place_of(target)
            elif (ROOT / target).is_dir():
                return m.group(1).strip("![]")  # a folder of the sources: no page
            else:
                files.add(target)
                to = "files/" + target
            up = "../" * (0 if str(here) == "." else len(here.parts))
            return "%s(%s%s%s)" % (m.group(1), up, to, "#" + heading if heading else "")
        return changed

    for page in all_pages:
        text = (ROOT / page).read_text(encoding="utf-8")
        out = site / place_of(page)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("".join(piece if code else LINK.sub(change(page), piece) for code, piece in blocks(text)), encoding="utf-8")
    for name in files:
        (site / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, site / "files" / name)
    (folder / "mkdocs.yml").write_text(settings(all_pages), encoding="utf-8")


def title(page):
    return re.search(r"^# +(.*)$", (ROOT / page).read_text(encoding="utf-8"), re.M).group(1)


def version():
    text = (ROOT / "base/include/millrace/base.h").read_text(encoding="utf-8")
    return ".".join(re.search(r"#define MR_VERSION_%s +(\d+)" % part, text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def settings(all_pages):
    """JSON is YAML."""
    in_order = [target for _, target, _ in links("docs/README.md") if target.startswith("docs/")]
    manual = [{title(p): place_of(p)} for p in dict.fromkeys(in_order)]
    rest = [p for p in all_pages if p not in in_order and p not in ("README.md", "docs/README.md")]
    return json.dumps({
        "site_name": "millrace " + version(),
        "docs_dir": "docs",
        "site_dir": "html",
        "theme": {"name": "mkdocs", "highlightjs": False, "navigation_depth": 2},
        "plugins": ["search"],
        "use_directory_urls": False,
        "markdown_extensions": ["tables", "fenced_code", {"toc": {"permalink": True}}],
        "nav": [{"Start": "index.md"}, {"Pages by task": "pages.md"}, {"Manual": manual},
                {"Project": [{title(p): place_of(p)} for p in rest]}, {"C interface": "api/index.html"}],
    }, indent=1)


def main():
    if sys.argv[1:] == ["check"]:
        wrong = check()
        print("\n".join(wrong) or "no complaints: %d pages" % len(pages()))
        return 1 if wrong else 0
    if len(sys.argv) == 3 and sys.argv[1] == "lay":
        lay(pathlib.Path(sys.argv[2]))
        return 0
    print(__doc__.split("\n\n")[1], file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())

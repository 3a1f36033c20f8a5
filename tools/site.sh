#!/bin/sh
# The manual as a site with a search, and the C interface as manual pages of section 3.
#
# usage: tools/site.sh [FOLDER]     default: build/site
#   FOLDER/html          the site: README.md is its front page
#   FOLDER/man/man3      man -M FOLDER/man mr_loader_open
# Needs doxygen, and MkDocs: the one on the path, or MKDOCS, or one from the package index. Exit status 77 where one is missing; 1 when
# a link leads nowhere or doxygen has complaints.
set -eu
cd "$(dirname "$0")/.."
case ${1-} in
-*)
    sed -n '4,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
folder=$(mkdir -p "${1:-build/site}" && cd "${1:-build/site}" && pwd)
command -v doxygen >/dev/null || { echo "SKIP: doxygen is not installed (apt install doxygen)"; exit 77; }
mkdocs=${MKDOCS:-$(command -v mkdocs || true)}
if [ -z "$mkdocs" ]; then
    mkdocs=$folder/venv/bin/mkdocs
    [ -x "$mkdocs" ] || { python3 -m venv "$folder/venv" && "$folder/venv/bin/python" -m pip install -q --disable-pip-version-check 'mkdocs<2'; } \
        >"$folder/venv.log" 2>&1 || { echo "SKIP: MkDocs cannot be had from the package index: $(tail -1 "$folder/venv.log")"; exit 77; }
fi
version=$(sed -n 's/^#define MR_VERSION_\(MAJOR\|MINOR\|PATCH\) *\([0-9]*\)$/\2/p' base/include/millrace/base.h | paste -sd.)

python3 tools/scripts/pages.py check
rm -rf "$folder/html" "$folder/man" "$folder/doxygen"
mkdir "$folder/doxygen"
{
    cat packaging/site/Doxyfile
    printf 'PROJECT_NUMBER = %s\nOUTPUT_DIRECTORY = "%s"\n' "$version" "$folder/doxygen"
} | doxygen -
python3 tools/scripts/pages.py lay "$folder"
cp -r "$folder/doxygen/html" "$folder/docs/api"
(cd "$folder" && "$mkdocs" build --quiet --strict)

# One page for each header, and a link for each function, struct and enumeration of ours.
mkdir -p "$folder/man/man3"
for page in "$folder"/doxygen/man/man3/mr_*.3 "$folder"/doxygen/man/man3/*.h.3; do
    sed "s/^\.so man3\//.so man3\//; s/^\.TH \"\([^\"]*\)\" 3 .*/.TH \"\1\" 3 \"\" \"millrace $version\" \"C interface\"/" "$page" \
        >"$folder/man/man3/$(basename "$page")"
done
echo "site: $folder/html/index.html; $(find "$folder/man/man3" -name 'mr_*' | wc -l) manual pages: man -M $folder/man mr_loader_open"

#!/bin/sh
# The program shellcheck over every script of the tree; .shellcheckrc says which rules are left out, and why.
# usage: tools/scripts/shellcheck.sh     exit status 77: the program is not here
set -eu
cd "$(dirname "$0")/../.."
command -v shellcheck >/dev/null || { echo "SKIP: shellcheck is not installed"; exit 77; }
# shellcheck disable=SC2046 # no name has a space
shellcheck -s sh -f gcc $(find . -name .git -prune -o -path './build*' -prune -o -name '*.sh' -print | sort) .ci/run
echo "no complaints"

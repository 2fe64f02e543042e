#!/usr/bin/env bash
# Runs real clients (openai, LangChain and the Vercel AI SDK; Python and Node) against flashgate.
# Installs what it needs into the test cache, and ends with `N passed, N failed`.
#   run.sh [--quick]   --quick leaves the real model out
# Environment: FLASHGATE_BIN (default build/release/flashgate); FLASHGATE_DIRECT=1 leaves the
# gateway out and tries the tests against the fake backend itself.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
. "$root/tests/real_model/env.sh"
. "$here/install.sh"

quick=()
for option in "$@"; do
  case "$option" in
    --quick) quick=(--quick) ;;
    *) say "usage: run.sh [--quick]"; exit 2 ;;
  esac
done

need_gateway "$root"
install_clients "$here"
if [ "${#quick[@]}" -eq 0 ]; then "$root/tests/real_model/setup.sh" >/dev/null; fi

results="$(mktemp -d)"
trap 'rm -rf "$results"' EXIT
failed=0
cd "$here"
"$CLIENTS_PYTHON" -m pytest -rP --show-capture=stdout --junitxml="$results/python.xml" \
  "${quick[@]}" >"$results/python.txt" 2>&1 || failed=1
# Of the tests that passed, only the measurements that they print.
grep -vE '^(_+ .* _+|-+ Captured .* -+|=+ PASSES =+)$' "$results/python.txt" || true
node --test --test-concurrency=1 --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=tap --test-reporter-destination="$results/node.tap" ./*.test.mjs || failed=1

"$CLIENTS_PYTHON" - "$results" "$failed" <<'PYTHON'
import pathlib
import re
import sys
import xml.etree.ElementTree

folder, status = pathlib.Path(sys.argv[1]), int(sys.argv[2])
passed = failed = 0
report = folder / "python.xml"
if report.exists():
    suite = xml.etree.ElementTree.parse(report).getroot().find("testsuite")
    total = int(suite.get("tests"))
    failed = int(suite.get("failures")) + int(suite.get("errors"))
    passed = total - failed
tap = (folder / "node.tap").read_text() if (folder / "node.tap").exists() else ""
for name, count in re.findall(r"^# (pass|fail|cancelled) (\d+)$", tap, re.MULTILINE):
    if name == "pass":
        passed += int(count)
    else:
        failed += int(count)
if status and not failed:
    failed = 1
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed or not passed else 0)
PYTHON

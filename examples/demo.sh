#!/usr/bin/env bash
# The main job of adp on the small files beside this script: files into a store, questions to the
# store, and the same files back. It writes into a temporary folder only.
#
#   make demo                       or, with adp installed: bash examples/demo.sh
#   ADP="python -m adp.cli.main"    another way to call the command
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
read -ra adp <<<"${ADP:-adp}"
work=$(mktemp -d "${TMPDIR:-/tmp}/adp-demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
store=$work/store
export COLUMNS=${COLUMNS:-100}

title() { printf '\n== %s\n' "$1"; }
run() {
    printf '\n$ adp'
    printf ' %q' "$@"
    printf '\n'
    "${adp[@]}" "$@"
}
same() {
    cmp "$1" "$2"
    echo "$1: the same $(wc -c <"$1" | tr -d ' ') bytes"
}

title "Two formats and some broken records become one store"
run convert chat adp broken -o "$store"

title "What is in it? --verify hashes every file again"
run info "$store" --verify

title "Which tools were called, and did the runs succeed?"
sql='SELECT name AS tool, count(*) AS calls,
    count(*) FILTER (WHERE success) AS in_solved_runs,
    count(*) FILTER (WHERE NOT success) AS in_failed_runs
FROM calls_with_results GROUP BY name ORDER BY calls DESC, tool'
printf "\n\$ adp query %s -c '\n%s'\n" "$store" "$sql"
"${adp[@]}" query "$store" -c "$sql"

title "One run, for reading"
run show "$store" booking-2

title "What could not be converted, and why?"
run rejects "$store"

title "Back to files: each format gives the bytes that came in"
run export "$store" --to openai_chat -o "$work/as-chat"
run export "$store" --to adp_v1 -o "$work/as-adp"
echo
same chat/booking.jsonl "$work/as-chat/chat/booking.jsonl"
same adp/shop.json "$work/as-adp/adp/shop.json"

title "A page with plots, and the data set that would be published"
run report data "$store" -o "$work/report.html"
run publish "$store" you/travel-runs --license cc-by-4.0 --dry-run --out "$work/folder"
sed -n '/^# /,/^## What/p' "$work/folder/README.md" | head -n 20

title "Done"

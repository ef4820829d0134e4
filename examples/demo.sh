#!/usr/bin/env bash
# The main jobs of adp on the small files beside this script: files into a store, questions to the
# store, the same files back, curation by recipes, and training on what they made. It writes into a temporary folder only.
#
#   make demo                       or, with adp installed: bash examples/demo.sh
#   ADP="python -m adp.cli.main"    another way to call the command
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
here=$PWD
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

title "Curation: runs of two travel agents, and four recipes"
python3 curation/make_runs.py "$work/curation"
cp curation/*.yaml "$work/curation"
cd "$work/curation"
run convert chats/round-1.jsonl -o round-1
run convert chats/round-2.jsonl -o round-2
run convert m3 -o helped

title "Rows for SFT: filter, decontaminate, dedup, mix, mask, split"
run curate sft.yaml -o sft
run why sft task-2-attempt-0
run query sft/train -c "SELECT op, verdict, reason, count(*) AS n FROM ledger GROUP BY ALL ORDER BY ALL"

title "What another threshold would change"
run curate sft.yaml -o sft-2 --set ops.mix.method=temperature --set ops.dedup_near.threshold=0.6
run diff sft sft-2

title "Step-level preference pairs: what the agent did, and what the expert would have done"
run curate step_dpo.yaml -o step-dpo

title "Tasks for RL: those whose attempts differ most"
run curate pareto.yaml -o rl

title "Two rounds of continual training: a coreset of each, and replay of the first in the second"
run curate coreset_replay.yaml -o round1
run curate coreset_replay.yaml -o round2 --set inputs.runs=round-2 --set inputs.buffer.store=round1/buffer

export ADP_CACHE="$work/cache"
if ! "${adp[@]}" tokens sft/train --model tiny >/dev/null 2>&1; then
    title "Training is left out here: it needs pip install 'adp[train]'"
    exit 0
fi

title "Training: what would a model learn from?"
cp "$here"/training/*.yaml .
run tokens sft/train --model tiny
run show sft/train task-0-attempt-1 --mask --model tiny

title "A LoRA adapter by SFT, and DPO that goes on with it (a model of 150,000 weights, built here)"
run train sft --config train_sft.yaml -o adapter
run train dpo --config train_dpo.yaml -o better
run merge-adapter better -o merged

title "The same pairs for another trainer"
run export step-dpo/pairs --to llamafactory-ranking -o for-llamafactory
ls for-llamafactory

title "Done"

#!/bin/bash
# Two real clients in one checkout that want the same file. Only inside rig.sh.
set -eu
export PATH=$(dirname "$BATON_BIN"):$PATH
project=$RIG_TMP/proj
git init -q -b main "$project"; cd "$project"
git config user.name Pat; git config user.email pat@example.invalid
echo base > base.txt; git add -A; git commit -qm base
baton init --yes --agents claude,codex > "$RIG_TMP/init.out" 2>&1
git add -A; git commit -qm wired
mkdir -p "$RIG_TMP/bar"
"$RIG/client.sh" claude alice "$project" alice bar="$RIG_TMP/bar" &
"$RIG/client.sh" codex bob "$project" bob bar="$RIG_TMP/bar" &
wait
baton claims --json > "$RIG_TMP/claims.json"

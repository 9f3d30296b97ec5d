#!/bin/bash
# One real client in a project that `baton init` wired, beside somebody who holds a file. Only inside rig.sh.
# usage: probe.sh CLIENT      What it left is in $RIG_TMP: proj, claims.json, journal.json, alice.out.
set -eu
client=$1
export PATH=$(dirname "$BATON_BIN"):$PATH
project=$RIG_TMP/proj
git init -q -b main "$project"; cd "$project"
git config user.name Pat; git config user.email pat@example.invalid
echo "old content" > held.txt
# Goes around the edit door twice: what it writes no line of a shell tells, and git is told to ask nobody.
cat > around.sh <<'S'
python3 -c "open('other.txt', 'w').write('around the door')"
git add other.txt
git commit -q --no-verify -m 'around the door' other.txt && echo committed-around
S
echo mine > other.txt
git add -A; git commit -qm base
baton init --yes --agents "$client" > "$RIG_TMP/init.out" 2>&1
git add -A; git commit -qm wired
eve=$(baton session start --name eve --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["credential"])')
baton --session "$eve" claim held.txt other.txt > /dev/null
"$RIG/client.sh" "$client" alice "$project" probe || true
baton claims --json > "$RIG_TMP/claims.json"
baton journal --json > "$RIG_TMP/journal.json"
git log --oneline > "$RIG_TMP/log"

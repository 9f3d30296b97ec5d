#!/bin/bash
# One real client in a role: as `baton start` starts it, or as an agent of it that `init --roles` wrote. Only inside rig.sh.
# usage: role.sh CLIENT free|start|agent|try|ask ROLE      `try` is an agent that writes a file, `ask` one that claims one by MCP. What the model was offered is in $RIG_LOG, by the script `look`.
set -eu
client=$1 how=$2 role=$3
export PATH=$(dirname "$BATON_BIN"):$PATH
project=$RIG_TMP/proj
git init -q -b main "$project"; cd "$project"
git config user.name Pat; git config user.email pat@example.invalid
echo base > base.txt
printf '[roles.reader]\nwrite = []\ntools = ["read", "search", "web"]\n' > baton.toml
git add -A; git commit -qm base
# What a start tells is to be enough without the definitions.
roles=; case $how in agent|try|ask) roles=--roles ;; esac
baton init --yes --agents "$client" $roles > "$RIG_TMP/init.out" 2>&1
git add -A; git commit -qm wired
# What a person answers when Gemini shows a project's agents.
if [ "$client" = gemini ] && [ -n "$roles" ]; then
  mkdir -p "$RIG_TMP/home-alice/.gemini/acknowledgments"
  hash=$(sha256sum < ".gemini/agents/baton-$role.md" | cut -d' ' -f1)
  echo "{\"$project\":{\"baton-$role\":\"$hash\"}}" > "$RIG_TMP/home-alice/.gemini/acknowledgments/agents.json"
fi
script=look then=look
case $how in start) export START_ROLE=$role ;; agent) script=agent ;; try|ask) script=agent then=$how ;; esac
"$RIG/client.sh" "$client" alice "$project" "$script" bar="$RIG_TMP" role="$role" then="$then" baton="$BATON_BIN"

#!/bin/sh
# A small agent: asks its provider with curl, keeps a log, and looks for a newer version of itself.
set -eu

log=${XDG_STATE_HOME:-$HOME/.local/state}/shell-agent/log
umask 077
mkdir -p "$(dirname "$log")"

answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
body=$(printf '{"model":"small","max_tokens":100,"messages":[{"role":"user","content":"%s"}]}' "$1")
# The key goes to curl by its standard input: every process of a machine may read the arguments of the others.
echo "x-api-key: $ANTHROPIC_API_KEY" |
    curl --silent --show-error --fail --output "$answer" --data-binary "$body" \
        --header "content-type: application/json" \
        --header "anthropic-version: 2023-06-01" \
        --header @- \
        "$ANTHROPIC_BASE_URL/v1/messages"
sed -n 's/.*"text":"\([^"]*\)".*/\1/p' "$answer"
echo "asked $(wc -c <"$answer") bytes" >>"$log"

# Without a network, the agent works with the version that it has.
curl --silent --max-time 2 https://updates.example.com/shell-agent >/dev/null || echo "no update" >>"$log"

#!/bin/sh
# An MCP server of one tool, for a machine that has only a shell.
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    case $line in
        *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"say","version":"1"}}' ;;
        *'"method":"tools/list"'*) result='{"tools":[{"name":"say","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"annotations":{"readOnlyHint":true}}]}' ;;
        *'"method":"tools/call"'*) result='{"content":[{"type":"text","text":"said"}]}' ;;
        *) continue ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done

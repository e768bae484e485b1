#!/bin/sh
# The validator beside others in one run, alternating, so that a busy machine is busy for all of them:
#   sh tests/bench/schema.sh WORKLOAD PEERS.mjs [ROUNDS]
# PEERS.mjs prints `name   valid N ns   invalid N ns` a line; it runs in the present folder, where its packages are.
# BENCH names the bench program. Prints each peer's median of the rounds, and how toolgate's stands to it.
set -eu
bench=${BENCH:-build/toolgate-bench}
workload=$1
peers=$2
rounds=${3:-5}
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
round=0
while [ "$round" -lt "$rounds" ]; do
    "$bench" schema "$workload" --seconds 1 >>"$lines"
    node "$peers" 1 >>"$lines"
    round=$((round + 1))
done
awk '
function median(name, kind,    n, i, k, t, list) {
    n = count[name, kind]
    for (i = 1; i <= n; i++) list[i] = value[name, kind, i]
    for (i = 2; i <= n; i++) { t = list[i]; for (k = i - 1; k >= 1 && list[k] > t; k--) list[k + 1] = list[k]; list[k + 1] = t }
    return list[int((n + 1) / 2)]
}
{ if (!($1 in seen)) { seen[$1] = 1; names[++many] = $1 }
  value[$1, "valid", ++count[$1, "valid"]] = $3
  value[$1, "invalid", ++count[$1, "invalid"]] = $6
  if ($1 == "toolgate") compile = $0 }
END {
    v = median("toolgate", "valid"); i = median("toolgate", "invalid")
    for (n = 1; n <= many; n++) {
        name = names[n]; pv = median(name, "valid"); pi = median(name, "invalid")
        printf "%-10s valid %6d ns   invalid %6d ns", name, pv, pi
        if (name != "toolgate") printf "   toolgate takes %.2f and %.2f of it", v / pv, i / pi
        printf "\n"
    }
    sub(/.*compile/, "compile", compile); print compile
}' "$lines"

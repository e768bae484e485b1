# What the packages' tests share; they source it at the root of the source, with their set -u. Prints TAP.

# check TITLE COMMAND...
check() {
    local title=$1 out
    shift
    if out=$("$@" 2>&1); then
        echo "ok - $title"
    else
        echo "not ok - $title"
        printf '%s\n' "$out" | tail -n 30 | sed 's/^/#   /'
    fi
}

# mmdebstrap hands a descriptor to a command of dash, which knows only those of one digit: none may be taken.
close_descriptors() {
    local fd
    for fd in /proc/$$/fd/*; do
        fd=${fd##*/}
        [ "$fd" -gt 2 ] && [ "$fd" -ne 255 ] && eval "exec $fd>&-"
    done
}

# put_source ROOT: the source as git has it, with its changes, in /src.
put_source() {
    mkdir "$1/src"
    git ls-files -z | tar --null -T - -cf - | tar -x -C "$1/src"
}

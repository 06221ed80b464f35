#!/bin/sh
# Installs the program `hermetic`: fetches the archive for this machine, compares its sum, puts the one file
# into a folder. It needs no root, asks nothing, and replaces nothing but an older `hermetic`.
#
#   sh install.sh                          the latest release
#   sh install.sh --from FOLDER-OR-URL     from a folder (target/dist) or another address
#   sh install.sh --into FOLDER            not into /usr/local/bin (root) or ~/.local/bin
#
# Everything happens in main(), which the last line calls: a download that was cut off does nothing.
set -eu

usual=https://github.com/hermetic-gateway/hermetic/releases/latest/download

refuse() {
    echo "install.sh: $1" >&2
    echo "  = $2" >&2
    exit 1
}

main() {
    from=${HERMETIC_FROM:-$usual}
    into=${HERMETIC_INTO:-}
    while [ $# -gt 0 ]; do
        case $1 in
        --from | --into)
            [ $# -ge 2 ] || refuse "$1 has no value" "see the first lines of this file"
            [ "$1" = --from ] && from=$2 || into=$2
            shift 2
            ;;
        *) refuse "unknown word: $1" "--from FOLDER-OR-URL and --into FOLDER are known" ;;
        esac
    done
    from=${from%/}

    [ "$(uname -s)" = Linux ] || refuse "this is not Linux" "there is no program for other systems"
    machine=$(uname -m)
    case $machine in
    x86_64 | aarch64) ;;
    arm64) machine=aarch64 ;;
    *) refuse "there is no program for $machine" "x86_64 and aarch64 are built" ;;
    esac
    for tool in sha256sum tar gzip mktemp; do
        command -v "$tool" >/dev/null || refuse "there is no $tool" "install it first"
    done
    if [ -z "$into" ]; then
        if [ "$(id -u)" -eq 0 ]; then
            into=/usr/local/bin
        else
            into=${HOME:?is not set}/.local/bin
        fi
    fi
    target=$into/hermetic
    if [ -L "$target" ] || { [ -e "$target" ] && [ ! -f "$target" ]; }; then
        refuse "$target is there and is no plain file" "move it away, or choose another folder with --into"
    fi

    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM

    fetch SHA256SUMS
    # A sum, two blanks, and a name that stays in its folder.
    wanted=$(grep -E "^[0-9a-f]{64}  hermetic-[0-9A-Za-z.~+]+-$machine\.tar\.gz\$" "$work/SHA256SUMS" || true)
    case $wanted in
    '') refuse "$from has no program for $machine" "its list of sums names none" ;;
    *"
"*) refuse "$from has more than one program for $machine" "name a place with one release" ;;
    esac
    archive=${wanted##* }
    fetch "$archive"
    (cd "$work" && echo "$wanted" | sha256sum -c - >/dev/null 2>&1) ||
        refuse "$archive is not what its sum says" "it was damaged or changed on the way; nothing was installed"

    tar -xzf "$work/$archive" -C "$work"
    program=$work/${archive%.tar.gz}/hermetic
    [ -f "$program" ] || refuse "there is no program in $archive" "report this"
    version=$("$program" --version 2>"$work/why") || refuse "the program does not start here: $(head -n 1 "$work/why")" \
        "it needs Debian 11, Ubuntu 20.04 or a later system; nothing was installed"

    mkdir -p "$into" || refuse "$into cannot be made" "choose another folder with --into"
    # Beside its place first, so that there is always a whole program under the name.
    beside=$into/.hermetic-$$
    if ! cp "$program" "$beside" || ! chmod 755 "$beside" || ! mv -f "$beside" "$target"; then
        rm -f "$beside"
        refuse "$target cannot be written" "run it as root, or choose another folder with --into"
    fi
    echo "installed $version as $target"
    case ":$PATH:" in
    *":$into:"*) ;;
    *) echo "$into is not in your PATH" ;;
    esac
    echo "next: hermetic doctor"
}

# Puts the file of this name into $work.
fetch() {
    case $from in
    https://* | http://127.0.0.1:* | http://localhost:* | 'http://[::1]:'*)
        if command -v curl >/dev/null; then
            curl --fail --silent --show-error --location --output "$work/$1" "$from/$1"
        elif command -v wget >/dev/null; then
            wget -q -O "$work/$1" "$from/$1"
        else
            refuse "there is neither curl nor wget" "install one, or fetch the files yourself and name their folder"
        fi || refuse "$from/$1 cannot be fetched" "is the address right, and is there a network?"
        ;;
    *://*) refuse "$from is not fetched from" "the sums come the same way as the program, so it has to be https" ;;
    *)
        [ -f "$from/$1" ] || refuse "there is no $from/$1" "\`cargo xtask dist\` makes it in target/dist"
        cp "$from/$1" "$work/$1"
        ;;
    esac
}

main "$@"

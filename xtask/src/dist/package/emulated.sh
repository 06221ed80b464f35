# What another kind of machine gets, in an emulator of its processor and on the oldest C library that it is
# for. No sandbox starts there: the emulator has no filter of system calls. The first thing that is not as it
# should be ends it.
version=$1 archive=$2 package=$3 work=$4 emulator=$5 library=$6 machine=$7
said() { echo "    $*"; }
wrong() { echo "wrong: $*" >&2; exit 1; }
cd "$work"
mkdir home
tar -xzf "$archive" --strip-components=1
hermetic() { env -i HOME="$work/home" PATH=/usr/bin:/bin "$emulator" -L "$library" ./hermetic --home "$work/home" "$@"; }

[ "$(hermetic version | head -n 1)" = "hermetic ${version%~dev}" ] || wrong "another version: $(hermetic version)"
said "$(hermetic version | head -n 1)"
hermetic config init >out 2>&1 || wrong "no configuration: $(cat out)"
hermetic config check >out 2>&1 || wrong "its own configuration is not right: $(cat out)"
said "config check: what it wrote is right"
hermetic policy explain 'rm -rf /' >out 2>&1 || true
grep -q '^refuse' out || wrong "the worst is not refused: $(cat out)"
said "policy explain: $(head -n 1 out)"
hermetic audit verify >out 2>&1 || wrong "no record is not whole: $(cat out)"
said "audit verify: $(head -n 1 out)"

[ "$(dpkg-deb -f "$package" Architecture)" = "$machine" ] || wrong "the package is for another machine"
dpkg-deb --fsys-tarfile "$package" | tar -xO ./usr/bin/hermetic | cmp -s - hermetic ||
    wrong "the package has another program than the archive"
said "$(basename "$package"): $(dpkg-deb -f "$package" Depends)"

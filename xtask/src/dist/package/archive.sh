# What somebody does with the archive and `install.sh`, in a clean system without a network.
version=$1
said() { echo "    $*"; }
wrong() { echo "wrong: $*" >&2; exit 1; }
PATH=/usr/local/bin:$PATH
install() { sh /dist/install.sh --from /dist --into /usr/local/bin; }

[ "$(install)" = "installed hermetic ${version%~dev} as /usr/local/bin/hermetic
next: hermetic doctor" ] || wrong "it cannot be installed: $(install 2>&1)"
install >/dev/null || wrong "it cannot be installed twice"
useradd --create-home --home-dir /tmp/ada ada
for who in root ada; do
    out=$(runuser -u $who -- env HOME=/tmp/$who sh -c 'mkdir -p $HOME; cd; hermetic exec -- echo sealed' 2>/tmp/err) || true
    [ "$out" = sealed ] || wrong "no sandbox as $who: $(head -n 1 /tmp/err)"
    said "exec as $who: $out"
done
# Everything it made is in the home, and the program goes as it came.
rm -r /dist /usr/local/bin/hermetic
userdel ada
left=$(find / -xdev -iname '*hermetic*' -not -path '/proc/*' -not -path '/tmp/*' -not -name hermetic.deb)
[ -z "$left" ] || wrong "left behind: $left"
said "removed, it leaves nothing outside of the homes"

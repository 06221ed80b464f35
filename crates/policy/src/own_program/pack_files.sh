# Writes the files that a sandbox keeps as a tar archive: its workspace, and its home where that is another
# folder. Exits with 3 where there is no workspace, 4 where there is no tar.
[ -d /workspace ] || exit 3
command -v tar >/dev/null || exit 4
set -- ./workspace
case ${HOME:-/} in
/ | /workspace | /workspace/*) ;;
*) [ ! -d "$HOME" ] || [ ! -w "$HOME" ] || set -- "$@" ".$HOME" ;;
esac
# A copy for /undo is of no use where the conversation begins anew, and what is mounted is somebody else's.
if tar --version 2>/dev/null | grep -q GNU; then
    exec tar --sparse --one-file-system --ignore-failed-read --exclude=./workspace/.hermetic-undo -C / -cf - "$@"
fi
exec tar --exclude=./workspace/.hermetic-undo -C / -cf - "$@"

//! Names that mean something in one language or another.

/// Calls whose string is run as a command.
pub(super) fn starts(name: &str) -> bool {
    const STARTS: &[&str] = &[
        "callCommand",
        "call",
        "capture2",
        "capture2e",
        "capture3",
        "check_call",
        "check_output",
        "cmd",
        "create_subprocess_exec",
        "create_subprocess_shell",
        "exec",
        "execFile",
        "execFileSync",
        "execSync",
        "execl",
        "execlp",
        "execv",
        "execve",
        "execvp",
        "getoutput",
        "getstatusoutput",
        "passthru",
        "pcntl_exec",
        "Popen",
        "popen",
        "popen2",
        "popen3",
        "posix_spawn",
        "proc_open",
        "readProcess",
        "run",
        "shell_exec",
        "spawn",
        "spawnSync",
        "spawnl",
        "spawnv",
        "startfile",
        "system",
    ];
    STARTS.contains(&name)
}

/// The first argument is the program, the second what it shall believe its name to be.
pub(super) fn names_itself(name: &str) -> bool {
    matches!(
        name,
        "execl" | "execlp" | "execv" | "execve" | "execvp" | "pcntl_exec"
    )
}

/// Calls whose string is code of the same language.
pub(super) fn evaluates(name: &str) -> bool {
    matches!(
        name,
        "eval"
            | "Function"
            | "assert"
            | "instance_eval"
            | "loadstring"
            | "dofile"
            | "execfile"
            | "load"
            | "runInNewContext"
            | "runInThisContext"
            | "create_function"
    )
}

pub(super) fn deletes_tree(name: &str) -> bool {
    matches!(
        name,
        "rmtree"
            | "rm_rf"
            | "rm_r"
            | "remove_entry_secure"
            | "rmSync"
            | "rmdirSync"
            | "remove_tree"
            | "rimraf"
            | "removeSync"
            | "emptyDirSync"
            | "removedirs"
            | "removeItem"
            | "remove_dir_all"
            | "RemoveAll"
            | "deleteDir"
            | "deleteRecursively"
            | "rm"
    )
}

pub(super) fn deletes_file(name: &str) -> bool {
    matches!(
        name,
        "unlink" | "unlinkSync" | "remove" | "delete" | "removeFile" | "rmdir"
    )
}

/// Calls that say what is in a folder.
pub(super) fn lists(name: &str) -> bool {
    matches!(
        name,
        "listdir"
            | "scandir"
            | "iterdir"
            | "walk"
            | "glob"
            | "iglob"
            | "rglob"
            | "globSync"
            | "readdir"
            | "readdirSync"
            | "opendir"
            | "children"
            | "entries"
    )
}

/// Brings something from the network.
pub(super) fn fetches(name: &str) -> bool {
    speaks_http(name)
        || matches!(
            name,
            "urllib2"
                | "urlretrieve"
                | "get"
                | "open_uri"
                | "file_get_contents"
                | "URI"
                | "recv"
                | "request"
        )
}

pub(super) fn speaks_http(name: &str) -> bool {
    matches!(
        name,
        "requests"
            | "urlopen"
            | "urllib"
            | "http"
            | "https"
            | "fetch"
            | "Net"
            | "HTTP"
            | "LWP"
            | "httpx"
            | "curl_exec"
            | "aiohttp"
            | "axios"
    )
}

pub(super) fn opens_socket(name: &str) -> bool {
    matches!(
        name,
        "socket"
            | "TCPSocket"
            | "fsockopen"
            | "pfsockopen"
            | "Socket"
            | "INET"
            | "create_connection"
            | "TCPServer"
            | "UDPSocket"
            | "createServer"
            | "stream_socket_server"
            | "socket_create"
            | "Dial"
            | "TcpStream"
            | "TcpListener"
            | "ServerSocket"
            | "Sockets"
            | "net"
            | "stream_socket_client"
            | "inet"
    )
}

pub(super) fn sends(name: &str) -> bool {
    matches!(
        name,
        "post"
            | "put"
            | "sendall"
            | "sendto"
            | "send"
            | "urlopen"
            | "Request"
            | "fetch"
            | "post_form"
            | "file_get_contents"
            | "request"
            | "get"
    )
}

/// Turns something unreadable into text.
pub(super) fn decodes(name: &str) -> bool {
    name.contains("decode")
        || name.contains("decompress")
        || name.contains("hex")
        || name.contains("unquote")
        || matches!(
            name,
            "loads"
                | "chr"
                | "pack"
                | "unpack"
                | "unpack1"
                | "atob"
                | "join"
                | "maketrans"
                | "fromCharCode"
                | "reverse"
        )
}

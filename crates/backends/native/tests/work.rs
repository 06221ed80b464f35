//! Normal work goes on as if there were no walls.

use crate::lab::stories;

stories! {
    async fn a_shell_knows_who_and_where_it_is(lab: &Lab) {
        let said = lab.run("id -u; id -g; whoami; pwd; echo $HOME; hostname; echo $$ | grep -q . && umask").await;
        assert_eq!(said.text, "1000\n1000\nagent\n/workspace\n/home/agent\nhermetic\n0022\n");
    }

    async fn python_does_files_threads_sockets_and_processes(lab: &Lab) {
        let said = lab.python(r#"
import os, socket, subprocess, tempfile, threading, multiprocessing, fcntl, mmap, signal, select
open("/workspace/f", "w").write("x" * 100000)
assert os.path.getsize("/workspace/f") == 100000
total = []
ts = [threading.Thread(target=lambda: total.append(sum(range(1000)))) for _ in range(20)]
[t.start() for t in ts]; [t.join() for t in ts]
assert len(total) == 20
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); a, _ = s.accept(); c.sendall(b"hi"); assert a.recv(2) == b"hi"
s6 = socket.socket(socket.AF_INET6); s6.bind(("::1", 0))
u = socket.socket(socket.AF_UNIX); u.bind("/tmp/u"); u.listen(); k = socket.socket(socket.AF_UNIX); k.connect("/tmp/u")
assert subprocess.check_output("echo a | tr a b", shell=True) == b"b\n"
with multiprocessing.Pool(4) as p: assert p.map(abs, [-1, -2]) == [1, 2]
os.mkfifo("/tmp/fifo")
with open("/tmp/lock", "w") as f: fcntl.flock(f, fcntl.LOCK_EX)
assert socket.gethostbyname("localhost") == "127.0.0.1"
os.sched_getaffinity(0); os.urandom(8); open("/dev/null", "w").write("x"); open("/dev/shm/x", "w").write("y")
m, sl = os.openpty(); os.write(m, b"x\n"); os.read(sl, 2)
import ssl, json, sqlite3, hashlib, ctypes
sqlite3.connect("/workspace/db").execute("create table t(x)")
print("all well")
"#).await;
        assert_eq!(said.text, "all well\n");
    }

    async fn git_keeps_history(lab: &Lab) {
        let said = lab.run("cd /workspace && git init -q . && git config user.email a@b && git config user.name n \
            && echo x > f && git add f && git commit -qm first && git log --oneline | wc -l && git status --short | wc -l").await;
        assert_eq!(said.text, "1\n0\n");
    }

    async fn shells_pipe_substitute_and_control_jobs(lab: &Lab) {
        let said = lab.run(r#"set -e
seq 1000 | sort -rn | head -1
diff <(echo a) <(echo a) && echo same
set -m; sleep 30 & { kill %1; } 2>/dev/null; wait %1 2>/dev/null || echo killed; set +m
perl -e 'print "perl\n"'
ps -e -o comm= > /tmp/ps; grep -c bash /tmp/ps
ls / | tr '\n' ' '; echo
mkfifo /tmp/p; (echo through > /tmp/p &) ; cat /tmp/p
flock /tmp/l true; ln -s f /workspace/link; chmod 700 /workspace; touch -d yesterday /workspace/old
tar cf /tmp/x.tar -C /usr/share/misc . ; find /usr/bin -name sh | head -1; date +%Z >/dev/null; nproc >/dev/null; free >/dev/null
script -qc 'tty' /dev/null | grep -c /dev/pts/
"#).await;
        let text = said.text.replace("[1]+  Terminated              sleep 30\n", "");
        assert_eq!(text, "1000\nsame\nkilled\nperl\n1\nbin dev etc home lib lib64 proc run sbin sys tmp usr var workspace \nthrough\n/usr/bin/sh\n1\n");
    }

    async fn the_environment_is_the_one_asked_for(lab: &Lab) {
        let mut spec = lab.spec();
        spec.env.insert("GREETING".to_owned(), "two words".to_owned());
        spec.env.insert("LANG".to_owned(), "C".to_owned());
        let said = lab.run_in(&spec, "env | grep -vE '^(_|SHLVL|PWD|OLDPWD)=' | sort").await;
        assert_eq!(said.text, "GREETING=two words\nHOME=/home/agent\nLANG=C\nLOGNAME=agent\n\
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nTERM=xterm-256color\nUSER=agent\n");
    }

    async fn a_folder_can_be_the_system(lab: &Lab) {
        let rootfs = tempfile::tempdir().unwrap();
        let built = std::process::Command::new("bash")
            .args(["-c", "cd \"$0\" && mkdir bin proc var && cp /bin/bash bin/ && ldd /bin/bash | grep -o '/[^ ]*' | while read -r l; do mkdir -p .$(dirname $l) && cp $l .$l; done && chmod 755 ."])
            .arg(rootfs.path())
            .status();
        assert!(built.unwrap().success());
        let mut spec = lab.spec();
        spec.system = hermetic_sandbox::SystemView::Rootfs(rootfs.path().to_owned());
        let said = lab.run_in(&spec, "echo /*; echo x 2>/dev/null > /bin/x || echo sealed; echo y > /tmp/y && echo z > /workspace/z && echo written; [ -e /usr/bin/python3 ] && echo HOST").await;
        let (places, rest) = said.text.split_once('\n').unwrap();
        assert!(places.contains("/workspace") && places.contains("/proc"), "{said:?}");
        assert_eq!(rest.replace("/bin/bash: line 1: /bin/x: Read-only file system\n", ""), "sealed\nwritten\n");

        // Where the image's own link leads, nothing is made on the host.
        let outside = tempfile::tempdir().unwrap();
        std::fs::set_permissions(outside.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        std::fs::remove_dir(rootfs.path().join("var")).unwrap();
        std::os::unix::fs::symlink(outside.path(), rootfs.path().join("var")).unwrap();
        spec.id = lab.spec().id;
        let said = lab.run_in(&spec, "echo y > /tmp/y && echo written").await;
        assert_eq!(said.text, "written\n");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}

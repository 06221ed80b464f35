//! Files in and out.

use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use hermetic_warden::client::{Warden, WardenCallError};
use hermetic_warden::protocol::{
    ByteString, FailureKind, FileKind, PathAt, ReadRequest, ResolveRequest, ResolvedName,
    ShellRequest, WriteRequest,
};

use crate::lab::Lab;

async fn put(warden: &Warden, at: PathAt, bytes: &[u8]) -> Result<(), WardenCallError> {
    let mut file = warden.write_file(WriteRequest::new(at)).await?;
    file.write(bytes).await?;
    file.finish().await
}

async fn get(warden: &Warden, at: PathAt) -> Result<Vec<u8>, WardenCallError> {
    let file = warden.read_file(ReadRequest::whole(at)).await?;
    Ok(file.collect(1 << 30).await?.unwrap())
}

fn kind<T: std::fmt::Debug>(result: Result<T, WardenCallError>) -> FailureKind {
    match result {
        Err(WardenCallError::Failed(failure)) => failure.kind,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_written_is_read_whatever_it_is_called() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let names: [&[u8]; 8] = [
        b"plain",
        b"-rf",
        b" spaces ",
        b"new\nline",
        b"\xff\xfe",
        b"*?[",
        b"$(id)",
        &[b'x'; 255],
    ];
    for name in names {
        let path = lab
            .folder
            .path()
            .join(std::ffi::OsString::from_vec(name.to_vec()));
        let at = PathAt::anywhere(path.clone());
        put(&warden, at.clone(), name).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), name);
        assert_eq!(get(&warden, at.clone()).await.unwrap(), name);
        assert_eq!(
            warden.stat(at.clone()).await.unwrap().size,
            name.len() as u64
        );
        warden.remove(at).await.unwrap();
    }
    let left = warden
        .list_dir(PathAt::anywhere(lab.folder.path()))
        .await
        .unwrap();
    assert_eq!(left.len(), 1, "only the socket: {left:?}");
    assert_eq!(
        (left[0].name.clone(), left[0].kind),
        (ByteString::from("socket"), FileKind::Other)
    );
}

#[tokio::test]
async fn a_large_file_survives_the_journey() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let bytes: Vec<u8> = (0..20_000_000u32).map(|i| (i % 253) as u8).collect();
    let at = PathAt::anywhere(lab.path("large"));
    put(&warden, at.clone(), &bytes).await.unwrap();
    assert!(get(&warden, at.clone()).await.unwrap() == bytes);
    let part = ReadRequest {
        at,
        offset: 19_999_990,
        length: Some(5),
    };
    let part = warden
        .read_file(part)
        .await
        .unwrap()
        .collect(100)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(part, bytes[19_999_990..19_999_995]);
}

#[tokio::test]
async fn a_file_is_replaced_whole_and_keeps_its_mode() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let path = lab.path("script");
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    let mut unfinished = warden
        .write_file(WriteRequest::new(PathAt::anywhere(path.clone())))
        .await
        .unwrap();
    unfinished.write(b"half").await.unwrap();
    drop(unfinished);
    put(&warden, PathAt::anywhere(path.clone()), b"new")
        .await
        .unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o750
    );
    crate::lab::until("no draft is left", || {
        std::fs::read_dir(lab.folder.path()).unwrap().count() == 2
    })
    .await;

    let link = lab.path("link");
    std::os::unix::fs::symlink("script", &link).unwrap();
    put(&warden, PathAt::anywhere(link.clone()), b"through")
        .await
        .unwrap();
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(&path).unwrap(), b"through");
}

#[tokio::test]
async fn nothing_leads_out_of_a_root() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let root = lab.path("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(lab.path("secret"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret", root.join("up")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.join("away")).unwrap();
    std::os::unix::fs::symlink("..", root.join("folder")).unwrap();
    for path in [
        "up",
        "away",
        "../secret",
        "folder/secret",
        "/etc/passwd",
        "folder/new",
    ] {
        let at = PathAt::beneath(root.clone(), path);
        let read = get(&warden, at.clone()).await;
        assert_eq!(kind(read), FailureKind::Refused, "read {path}");
        let written = put(&warden, at, b"overwritten").await;
        assert_eq!(kind(written), FailureKind::Refused, "write {path}");
    }
    assert_eq!(std::fs::read(lab.path("secret")).unwrap(), b"secret");
    let inside = PathAt::beneath(root.clone(), root.join("a/b/file"));
    let mut write = WriteRequest::new(inside.clone());
    write.parents = true;
    warden
        .write_file(write)
        .await
        .unwrap()
        .finish()
        .await
        .unwrap();
    assert!(root.join("a/b/file").exists());
    warden
        .make_dir(PathAt::beneath(root.clone(), "c/d"))
        .await
        .unwrap();
    assert!(root.join("c/d").is_dir());
}

#[tokio::test]
async fn only_regular_files_are_opened() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let fifo = lab.path("fifo");
    let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &name,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    for path in [
        fifo.as_path(),
        Path::new("/dev/null"),
        Path::new("/tmp"),
        &lab.path("socket"),
    ] {
        assert_eq!(
            kind(get(&warden, PathAt::anywhere(path)).await),
            FailureKind::Refused,
            "{path:?}"
        );
        let written = put(&warden, PathAt::anywhere(path), b"x").await;
        assert_eq!(kind(written), FailureKind::Refused, "{path:?}");
    }
    assert_eq!(
        kind(get(&warden, PathAt::anywhere("/no/such")).await),
        FailureKind::System
    );
}

async fn resolve(
    warden: &Warden,
    path: impl Into<ByteString>,
) -> Result<ResolvedName, WardenCallError> {
    let resolve = ResolveRequest {
        path: path.into(),
        shell: Some("main".to_owned()),
    };
    warden.resolve(resolve).await
}

#[tokio::test]
async fn a_path_is_followed_to_where_it_leads() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let root = lab.folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::fs::write(root.join("real/file"), "x").unwrap();
    symlink("real", root.join("link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("loop", root.join("loop")).unwrap();

    let there = resolve(&warden, root.join("link/./file")).await.unwrap();
    assert_eq!(there.path, root.join("real/file").into());
    assert_eq!(there.metadata.unwrap().size, 1);
    let missing = resolve(&warden, root.join("link/new/er")).await.unwrap();
    assert_eq!(missing.path, root.join("real/new/er").into());
    assert_eq!((missing.missing, missing.metadata), (2, None));

    for odd in ["dangling", "loop", "dangling/x", "none/../x"] {
        let refused = resolve(&warden, root.join(odd)).await;
        assert_eq!(kind(refused), FailureKind::Refused, "{odd}");
    }
    let empty = resolve(&warden, "").await;
    assert_eq!(kind(empty), FailureKind::BadRequest);

    let go = format!("cd {}/link", root.display());
    let mut running = warden.shell(ShellRequest::new("main", go)).await.unwrap();
    while running.next().await.unwrap().is_some() {}
    let here = resolve(&warden, "file").await.unwrap();
    assert_eq!(here.path, root.join("real/file").into());
}

#[tokio::test]
async fn a_resolved_path_has_no_symlink_left() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let root = lab.folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::fs::write(root.join("real/file"), "x").unwrap();
    symlink("real", root.join("link")).unwrap();
    symlink("real/file", root.join("last")).unwrap();
    for path in ["link/file", "last", "link/new"] {
        let at = PathAt::resolved(root.join(path));
        assert!(get(&warden, at.clone()).await.is_err(), "read {path}");
        assert!(
            put(&warden, at.clone(), b"y").await.is_err(),
            "write {path}"
        );
        assert!(warden.stat(at).await.is_err(), "look at {path}");
    }
    let at = PathAt::resolved(root.join("real/file"));
    put(&warden, at.clone(), b"y").await.unwrap();
    assert_eq!(get(&warden, at).await.unwrap(), b"y");
}

#[tokio::test]
async fn a_file_that_changed_meanwhile_is_not_replaced() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let path = lab.path("file");
    std::fs::write(&path, "one").unwrap();
    let at = PathAt::anywhere(path.clone());
    let stamp = warden.stat(at.clone()).await.unwrap().stamp();
    let replaces = || WriteRequest {
        replaces: Some(stamp),
        ..WriteRequest::new(at.clone())
    };
    let mut late = warden.write_file(replaces()).await.unwrap();
    late.write(b"late").await.unwrap();
    let file = warden.write_file(replaces()).await.unwrap();
    file.finish().await.unwrap();
    assert_eq!(kind(late.finish().await), FailureKind::Changed);
    assert_eq!(std::fs::read(&path).unwrap(), b"");
}

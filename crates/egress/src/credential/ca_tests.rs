use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn it_is_the_same_after_a_restart_and_its_key_is_ours_alone() {
    let folder = tempfile::tempdir().unwrap();
    let first = CertificateAuthority::open(folder.path()).unwrap();
    let again = CertificateAuthority::open(folder.path()).unwrap();
    assert_eq!(first.certificate(), again.certificate());
    let mode = fs::metadata(folder.path().join(KEY_FILE)).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "nothing is left beside"
    );
}

#[test]
fn a_key_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    CertificateAuthority::open(folder.path()).unwrap();
    let key = folder.path().join(KEY_FILE);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(
        CertificateAuthority::open(folder.path()),
        Err(CaError::Exposed { .. })
    ));
}

#[test]
fn leaves_are_minted_once_and_bounded() {
    let authority = CertificateAuthority::ephemeral().unwrap();
    let host = HostName::parse("a.test").unwrap();
    let first = authority.server_config(&host).unwrap();
    assert!(Arc::ptr_eq(
        &first,
        &authority.server_config(&host).unwrap()
    ));
    for n in 0..300 {
        authority
            .server_config(&HostName::parse(&format!("h{n}.test")).unwrap())
            .unwrap();
    }
    assert!(authority.leaves.lock().unwrap().len() <= MOST_LEAVES);
}

//! The certificate authority of this installation, for the hosts that have a credential.
//!
//! Its key never leaves the host and is readable by us alone; its certificate goes into the sandboxes.
//! The certificate is made from the key and fixed facts, so a stored key is all that has to be read back.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hermetic_types::{SharedClock, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use thiserror::Error;

use crate::rules::HostName;

/// Issues certificates for the hosts whose TLS ends here.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
    leaves: Mutex<HashMap<HostName, LeafCertificate>>,
    clock: SharedClock,
}

/// The certificate of one host, kept until it has to be renewed.
struct LeafCertificate {
    config: Arc<ServerConfig>,
    minted: Timestamp,
}

/// The error of an authority that cannot be loaded or made.
#[derive(Debug, Error)]
pub enum CaError {
    #[error("cannot {act} {}", path.display())]
    File {
        act: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} must be readable by its owner only (chmod 600)", path.display())]
    Exposed { path: PathBuf },
    #[error("{} does not hold a usable key", path.display())]
    BadKey {
        path: PathBuf,
        #[source]
        source: rcgen::Error,
    },
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot use a certificate")]
    Tls(#[from] rustls::Error),
}

const KEY_FILE: &str = "egress-ca.key";
const CERTIFICATE_FILE: &str = "egress-ca.pem";
const DAY: Duration = Duration::from_secs(24 * 3600);
const CA_DAYS: u32 = 3650;
const LEAF_DAYS: u32 = 14;
/// Half of its life: a client whose clock is days ahead takes it all the same.
const LEAF_RENEWAL: Duration = Duration::from_secs(7 * 24 * 3600);
const MOST_LEAVES: usize = 256;
/// Files that killed starts may have left beside one, before somebody has to look.
const MOST_LEFT: u32 = 1000;

impl CertificateAuthority {
    /// Reads the authority of this installation, or makes one.
    pub fn open(folder: &Path, clock: SharedClock) -> Result<Self, CaError> {
        // In a fresh home nothing has been written yet.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|source| CaError::File {
                act: "make",
                path: folder.to_owned(),
                source,
            })?;
        let (key_path, certificate_path) = (folder.join(KEY_FILE), folder.join(CERTIFICATE_FILE));
        let key = match read_key(&key_path)? {
            Some(key) => key,
            None => create_key(&key_path)?,
        };
        let certificate = match fs::read_to_string(&certificate_path) {
            Ok(certificate) => certificate,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_certificate(&certificate_path, &key, clock.now())?
            }
            Err(source) => {
                return Err(CaError::File {
                    act: "read",
                    path: certificate_path,
                    source,
                });
            }
        };
        Ok(Self::from_parts(key, certificate, clock))
    }

    /// One that lives as long as the process.
    pub fn ephemeral(clock: SharedClock) -> Result<Self, CaError> {
        let key = KeyPair::generate()?;
        let certificate = ca_params(clock.now()).self_signed(&key)?.pem();
        Ok(Self::from_parts(key, certificate, clock))
    }

    fn from_parts(key: KeyPair, certificate: String, clock: SharedClock) -> Self {
        let issuer = Issuer::new(ca_params(clock.now()), key);
        Self {
            issuer,
            certificate,
            leaves: Mutex::new(HashMap::new()),
            clock,
        }
    }

    /// The certificate, in PEM, for the trust stores of sandboxes.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// What a TLS server needs to be taken for `host`.
    pub(crate) fn server_config(&self, host: &HostName) -> Result<Arc<ServerConfig>, CaError> {
        let now = self.clock.now();
        // Held while the certificate is made: of many connections that come at once for one host,
        // one makes it.
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leaf) = leaves.get(host).filter(|leaf| leaf.is_good(now)) {
            return Ok(Arc::clone(&leaf.config));
        }
        // All at once: which of them are still in use is not known, and each is made anew when it
        // is asked for.
        if leaves.len() >= MOST_LEAVES {
            leaves.clear();
        }
        let config = Arc::new(self.mint(host, now)?);
        leaves.insert(
            host.clone(),
            LeafCertificate {
                config: Arc::clone(&config),
                minted: now,
            },
        );
        Ok(config)
    }

    fn mint(&self, host: &HostName, now: Timestamp) -> Result<ServerConfig, CaError> {
        let mut params = CertificateParams::new(vec![host.to_string()])?;
        let mut name = DistinguishedName::new();
        // Common names end at 64 characters; the name that counts is the alternative one.
        name.push(
            DnType::CommonName,
            host.as_str().chars().take(64).collect::<String>(),
        );
        params.distinguished_name = name;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // A sandbox, or the machine it talks to us from, may have another idea of the time.
        params.not_before = SystemTime::from(now.minus(DAY)).into();
        params.not_after = SystemTime::from(now.plus(DAY * LEAF_DAYS)).into();
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_no_client_auth()
                .with_single_cert(chain, key)?;
        // The proxy reads requests to put the credential in, and reads no HTTP/2.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

impl LeafCertificate {
    /// Whether clients whose clock is ours take it: also after that clock was set, forward or back.
    fn is_good(&self, now: Timestamp) -> bool {
        self.minted.minus(DAY) <= now && now.since(self.minted) < LEAF_RENEWAL
    }
}

fn ca_params(now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "Hermetic egress (this installation)");
    params.distinguished_name = name;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = SystemTime::from(now.minus(DAY)).into();
    params.not_after = SystemTime::from(now.plus(DAY * CA_DAYS)).into();
    params
}

fn read_key(path: &Path) -> Result<Option<KeyPair>, CaError> {
    let fail = |source| CaError::File {
        act: "read",
        path: path.to_owned(),
        source,
    };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(fail(source)),
    };
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
        return Err(CaError::Exposed {
            path: path.to_owned(),
        });
    }
    let pem = fs::read_to_string(path).map_err(fail)?;
    let bad = |source| CaError::BadKey {
        path: path.to_owned(),
        source,
    };
    KeyPair::from_pem(&pem).map(Some).map_err(bad)
}

fn create_key(path: &Path) -> Result<KeyPair, CaError> {
    let key = KeyPair::generate()?;
    match write_new(path, key.serialize_pem().as_bytes(), 0o600) {
        Ok(()) => Ok(key),
        // Another of us was first: its key counts.
        Err(CaError::File { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
            read_key(path)?.ok_or(CaError::File {
                act: "read",
                path: path.to_owned(),
                source,
            })
        }
        Err(error) => Err(error),
    }
}

fn create_certificate(path: &Path, key: &KeyPair, now: Timestamp) -> Result<String, CaError> {
    let certificate = ca_params(now).self_signed(key)?.pem();
    match write_new(path, certificate.as_bytes(), 0o644) {
        Ok(()) => Ok(certificate),
        // Another of us was first, with the same key: sandboxes may have been shown his.
        Err(CaError::File { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
            fs::read_to_string(path).map_err(|source| CaError::File {
                act: "read",
                path: path.to_owned(),
                source,
            })
        }
        Err(error) => Err(error),
    }
}

/// Whole or not at all: written beside, then linked to a name that must be free.
fn write_new(path: &Path, contents: &[u8], mode: u32) -> Result<(), CaError> {
    let fail = |source| CaError::File {
        act: "write",
        path: path.to_owned(),
        source,
    };
    let (mut file, beside) = open_beside(path, mode).map_err(fail)?;
    let written = (|| {
        file.write_all(contents)?;
        file.sync_all()?;
        // A link and not a rename, which would replace the key of whoever was faster.
        fs::hard_link(&beside, path)
    })();
    let removed = fs::remove_file(&beside);
    written.and(removed).map_err(fail)
}

/// A new file of ours alone beside `path`.
fn open_beside(path: &Path, mode: u32) -> io::Result<(fs::File, PathBuf)> {
    let mut number = 0;
    loop {
        let beside = path.with_extension(format!("new-{}-{number}", std::process::id()));
        let opened = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&beside);
        match opened {
            // In a container our number is the same at each start, so one that was killed here left a
            // file with this name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MOST_LEFT => {
                number += 1;
            }
            opened => return opened.map(|file| (file, beside)),
        }
    }
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateAuthority")
    }
}

#[cfg(test)]
#[path = "ca_tests.rs"]
mod tests;

//! What an engine turned out not to know. It is asked once, and from then on without.

use std::sync::atomic::{AtomicBool, Ordering};

use bollard::errors::Error;
use bollard::models::ContainerCreateBody;

#[derive(Debug, Default)]
pub(crate) struct Lacks {
    /// Of layers. The watch keeps the limit then.
    sizes: AtomicBool,
    /// Of a tmpfs, which Podman refuses. Inodes are memory, and that is bounded as a whole.
    inodes: AtomicBool,
}

impl Lacks {
    pub(crate) fn sizes(&self) -> bool {
        self.sizes.load(Ordering::Relaxed)
    }

    /// Whether this refusal was about something that can be left out.
    pub(crate) fn learn(&self, asked: &ContainerCreateBody, refusal: &Error) -> bool {
        let Error::DockerResponseServerError { message, .. } = refusal else {
            return false;
        };
        let host = asked.host_config.as_ref();
        if host.is_some_and(|host| host.storage_opt.is_some())
            && (message.contains("storage-opt") || message.contains("quota"))
        {
            self.sizes.store(true, Ordering::Relaxed);
            return true;
        }
        message.contains(INODES) && !self.inodes.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn leave_out(&self, body: &mut ContainerCreateBody) {
        let Some(host) = &mut body.host_config else {
            return;
        };
        if self.sizes() {
            host.storage_opt = None;
        }
        if self.inodes.load(Ordering::Relaxed) {
            for options in host.tmpfs.iter_mut().flat_map(|mounts| mounts.values_mut()) {
                let kept = options.split(',').filter(|word| !word.starts_with(INODES));
                *options = kept.collect::<Vec<_>>().join(",");
            }
        }
    }
}

const INODES: &str = "nr_inodes";

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::HostConfig;
    use std::collections::HashMap;

    fn refusal(message: &str) -> Error {
        Error::DockerResponseServerError {
            status_code: 500,
            message: message.to_owned(),
        }
    }

    #[test]
    fn what_is_refused_is_left_out_and_only_that() {
        let one = |name: &str, value: &str| Some(HashMap::from([(name.into(), value.into())]));
        let mut body = ContainerCreateBody {
            host_config: Some(HostConfig {
                storage_opt: one("size", "1"),
                tmpfs: one("/tmp", "rw,size=1,nr_inodes=9,mode=1777"),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let lacks = Lacks::default();
        assert!(!lacks.learn(&body, &refusal("no such image")));
        lacks.leave_out(&mut body);
        assert!(body.host_config.as_ref().unwrap().storage_opt.is_some());

        let inodes = refusal("unknown mount option \"nr_inodes=9\": invalid mount option");
        assert!(lacks.learn(&body, &inodes));
        assert!(!lacks.learn(&body, &inodes), "it is not asked for ever");
        assert!(lacks.learn(
            &body,
            &refusal("--storage-opt is supported only for overlay over xfs")
        ));
        lacks.leave_out(&mut body);
        let host = body.host_config.unwrap();
        assert_eq!(host.tmpfs.unwrap()["/tmp"], "rw,size=1,mode=1777");
        assert_eq!(host.storage_opt, None);
    }
}

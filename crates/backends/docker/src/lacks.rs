//! What an engine turned out not to know. It is asked once, and from then on in another way.

use std::sync::atomic::{AtomicBool, Ordering};

use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, ResourcesUlimits};

#[derive(Debug, Default)]
pub(crate) struct EngineLacks {
    /// Of layers. The watch keeps the limit then.
    sizes: AtomicBool,
    /// Of a tmpfs, which Podman refuses. Inodes are memory, and that is bounded as a whole.
    inodes: AtomicBool,
    /// The right to raise limits: Podman asks for more processes than its host may allow.
    processes: AtomicBool,
}

impl EngineLacks {
    pub(crate) fn sizes(&self) -> bool {
        self.sizes.load(Ordering::Relaxed)
    }

    /// Whether this refusal was about something that can be left out.
    pub(crate) fn learn(&self, asked: &ContainerCreateBody, refusal: &Error) -> bool {
        let Error::DockerResponseServerError { message, .. } = refusal else {
            return false;
        };
        let host = asked.host_config.as_ref();
        // By what was asked for, here and below: several creates may be refused at once, and each of
        // them has to try again without it.
        if host.is_some_and(|host| host.storage_opt.is_some())
            && (message.contains("storage-opt") || message.contains("quota"))
        {
            self.sizes.store(true, Ordering::Relaxed);
            return true;
        }
        let mounts = host.and_then(|host| host.tmpfs.as_ref());
        let asked_for_inodes =
            mounts.is_some_and(|mounts| mounts.values().any(|options| options.contains(INODES)));
        if asked_for_inodes && message.contains(INODES) {
            self.inodes.store(true, Ordering::Relaxed);
            return true;
        }
        false
    }

    /// Whether a container did not start for something that can be asked for differently.
    pub(crate) fn learn_at_start(&self, asked: &ContainerCreateBody, refusal: &Error) -> bool {
        let Error::DockerResponseServerError { message, .. } = refusal else {
            return false;
        };
        let of_processes = TOO_MANY.iter().any(|words| message.contains(words));
        let bounded = asked
            .host_config
            .as_ref()
            .is_some_and(|host| bounds_processes(host.ulimits.as_deref().unwrap_or_default()));
        if of_processes && !bounded {
            self.processes.store(true, Ordering::Relaxed);
            return true;
        }
        false
    }

    pub(crate) fn adapt(&self, body: &mut ContainerCreateBody) {
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
        if self.processes.load(Ordering::Relaxed) {
            let limits = host.ulimits.get_or_insert_default();
            if !bounds_processes(limits) {
                limits.push(ResourcesUlimits {
                    name: Some("nproc".to_owned()),
                    soft: Some(PROCESSES),
                    hard: Some(PROCESSES),
                });
            }
        }
    }
}

fn bounds_processes(limits: &[ResourcesUlimits]) -> bool {
    limits
        .iter()
        .any(|one| one.name.as_deref() == Some("nproc"))
}

const INODES: &str = "nr_inodes";
/// How runc and crun say it.
const TOO_MANY: [&str; 2] = ["rlimit type 6", "RLIMIT_NPROC"];
/// Of one user on the whole host, so not what bounds a container: its cgroup does. Any host has it.
const PROCESSES: i64 = 4096;

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
        let lacks = EngineLacks::default();
        assert!(!lacks.learn(&body, &refusal("no such image")));
        lacks.adapt(&mut body);
        assert!(body.host_config.as_ref().unwrap().storage_opt.is_some());

        let inodes = refusal("unknown mount option \"nr_inodes=9\": invalid mount option");
        assert!(lacks.learn(&body, &inodes));
        assert!(
            lacks.learn(&body, &inodes),
            "another create was refused at the same time"
        );
        assert!(lacks.learn(
            &body,
            &refusal("--storage-opt is supported only for overlay over xfs")
        ));
        lacks.adapt(&mut body);
        let host = body.host_config.as_ref().unwrap();
        assert_eq!(host.ulimits, None);
        assert!(!lacks.learn(&body, &inodes), "it is not asked for ever");
        let processes = refusal("error setting rlimit type 6: operation not permitted");
        for _both in 0..2 {
            assert!(lacks.learn_at_start(&body, &processes));
        }
        lacks.adapt(&mut body);
        lacks.adapt(&mut body);
        assert!(!lacks.learn_at_start(&body, &processes));
        let host = body.host_config.unwrap();
        assert_eq!(host.ulimits.unwrap().len(), 1);
        assert_eq!(host.tmpfs.unwrap()["/tmp"], "rw,size=1,mode=1777");
        assert_eq!(host.storage_opt, None);
    }
}

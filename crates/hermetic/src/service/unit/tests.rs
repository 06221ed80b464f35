use super::*;

use std::process::Command;

fn unit<'a>(
    service: &'a SystemdService,
    home: &'a HomeFolder,
    run_as: Option<&'a str>,
    commands: CommandPlace,
) -> SystemdUnit<'a> {
    SystemdUnit {
        service,
        program: Path::new("/opt/my tools/hermetic"),
        home,
        slice: "hermetic-4f1c.slice",
        run_as,
        grace: Duration::from_secs(30),
        watchdog: Some(Duration::from_secs(20)),
        commands,
        origin: UnitOrigin::Installed,
    }
}

fn service(keeper: SystemdScope) -> SystemdService {
    SystemdService {
        keeper,
        name: "hermetic-gateway.service".to_owned(),
    }
}

#[test]
fn a_unit_reads_like_this() {
    let (service, home) = (service(SystemdScope::System), HomeFolder::at("/srv/bot"));
    let unit = unit(&service, &home, Some("alice"), CommandPlace::Apart);
    insta::assert_snapshot!(unit.text(), @r#"
    # Written by `hermetic gateway install`; `hermetic gateway uninstall` removes it.
    [Unit]
    Description=Hermetic gateway
    Wants=network-online.target
    Requires=hermetic-sandboxes.service
    After=network-online.target hermetic-sandboxes.service

    [Service]
    Type=notify
    User=alice
    Slice=hermetic-4f1c.slice
    Environment=HERMETIC_SERVICE=system:hermetic-gateway.service
    Environment=HERMETIC_SANDBOXES_UNIT=hermetic-sandboxes.service
    ExecStart="/opt/my tools/hermetic" --home "/srv/bot" gateway run
    Restart=on-failure
    RestartSec=5
    # The configuration is wrong: starting again does not mend it.
    RestartPreventExitStatus=78
    # What it started elsewhere goes on; the next start adopts it.
    KillMode=process
    # It tries a sandbox and looks after those that are left before it is ready.
    TimeoutStartSec=300
    TimeoutStopSec=90
    LimitNOFILE=524288
    # As long as it answers /health.
    WatchdogSec=20

    NoNewPrivileges=yes
    LockPersonality=yes
    RestrictRealtime=yes
    RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
    SystemCallArchitectures=native
    SystemCallFilter=~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap
    SystemCallErrorNumber=EPERM
    PrivateDevices=yes
    PrivateMounts=yes
    ProtectClock=yes
    ProtectKernelModules=yes
    ProtectSystem=full
    KeyringMode=private
    CapabilityBoundingSet=

    [Install]
    WantedBy=multi-user.target
    "#);
}

#[test]
fn the_place_of_sandboxes_is_delegated_and_lent_to_who_runs_the_gateway() {
    let (service, home) = (service(SystemdScope::System), HomeFolder::at("/srv/bot"));
    let text = unit(&service, &home, Some("alice"), CommandPlace::Apart).sandboxes_text();
    for line in [
        "User=alice",
        "Slice=hermetic-4f1c.slice",
        "Delegate=yes",
        "OOMPolicy=continue",
        "TasksMax=infinity",
        "ExecStartPre=-+chown alice \
         /sys/fs/cgroup/hermetic.slice/hermetic-4f1c.slice/cgroup.procs",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let of_root = unit(&service, &home, None, CommandPlace::Apart).sandboxes_text();
    assert!(!of_root.contains("chown"), "{of_root}");
}

/// With processes in its group, which systemd puts there, controllers could not be enabled; with them
/// enabled, systemd could not put processes there.
#[test]
fn the_gateways_own_group_is_not_delegated() {
    for keeper in [SystemdScope::User, SystemdScope::System] {
        let (service, home) = (service(keeper), HomeFolder::at("/srv/bot"));
        let text = unit(&service, &home, None, CommandPlace::Apart).text();
        assert!(!text.contains("Delegate="), "{text}");
        assert!(text.contains("HERMETIC_SANDBOXES_UNIT=hermetic-sandboxes.service"));
    }
}

#[test]
fn who_runs_commands_on_the_host_itself_is_not_bound() {
    let (service, home) = (service(SystemdScope::System), HomeFolder::at("/srv/bot"));
    let text = unit(&service, &home, None, CommandPlace::Here).text();
    for word in [
        "NoNewPrivileges",
        "SystemCallFilter",
        "Protect",
        "Capabilit",
    ] {
        assert!(!text.contains(word), "{word}\n{text}");
    }
    assert!(text.contains("LimitNOFILE="), "{text}");
}

/// What systemd's own judge says of each, in tenths. Root's sandboxes are built with root's powers; of a
/// user's unit it would judge rights that no user has.
#[test]
fn what_the_units_leave_open_is_bounded() {
    for (keeper, run_as, most) in [
        (SystemdScope::System, Some("alice"), 40),
        (SystemdScope::System, None, 52),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (service, home) = (service(keeper), HomeFolder::at("/srv/bot"));
        let mut unit = unit(&service, &home, run_as, CommandPlace::Apart);
        unit.program = Path::new("/bin/true");
        let file = folder.path().join("hermetic-gateway.service");
        std::fs::write(&file, unit.text()).unwrap();
        let judged = Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager", "--json=off"])
            .arg(format!("--threshold={most}"))
            .arg(&file)
            .output();
        let judged = match judged {
            Ok(judged) => judged,
            Err(error) => {
                eprintln!("SKIP: what_the_units_leave_open_is_bounded: systemd-analyze: {error}");
                return;
            }
        };
        let said = String::from_utf8_lossy(&judged.stdout);
        let errors = String::from_utf8_lossy(&judged.stderr);
        assert!(said.contains("Overall exposure level"), "{errors}");
        assert!(judged.status.success(), "{keeper:?} {run_as:?}\n{said}");
    }
}

#[test]
fn it_is_known_whose_home_it_serves() {
    let odd = HomeFolder::at("/srv/100% \"odd\" $HOME\\");
    let service = service(SystemdScope::User);
    let text = unit(&service, &odd, None, CommandPlace::Apart).text();
    assert!(SystemdUnit::serves(&text, &odd), "{text}");
    assert!(!SystemdUnit::serves(&text, &HomeFolder::at("/srv/bot")));
    assert!(text.contains(r#"--home "/srv/100%% \"odd\" $$HOME\\" gateway run"#));
}

//! A container image in one file, made without a daemon and without a registry: Debian's packages, the
//! program on top, and what `docker load` reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::BuiltProgram;
use super::platform::DistTarget;
use super::sbom::quoted;
use super::{DistRelease, sum};
use crate::failure::ChoreFailure;
use crate::{machine, program, say};

const SUITE: &str = "bookworm";

/// The same as the Dockerfile of `hermetic compose`: certificates to speak TLS, Python for `/py`.
const PACKAGES: &str = "ca-certificates,python3";

/// The user of `hermetic compose`, with a folder for its volume, which takes its owner from the image.
const AFTER: &str = r#"
    chroot "$1" groupadd --gid 1000 hermetic
    chroot "$1" useradd --create-home --uid 1000 --gid 1000 hermetic
    chroot "$1" install -d -m 700 -o 1000 -g 1000 /home/hermetic/.hermes
    rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*
"#;

/// Makes the image and returns its file.
pub(crate) fn make(
    release: &DistRelease,
    target: DistTarget,
    built: &BuiltProgram,
    work: &Path,
) -> Result<PathBuf, ChoreFailure> {
    let image = work.join("image");
    fs::create_dir_all(&image).map_err(ChoreFailure::file("make a folder for the image"))?;
    let layers = [
        base(release, target, &image)?,
        with_program(release, built, &image)?,
    ];
    let sums = layers.each_ref().map(|layer| sum(layer));
    let sums = sums.into_iter().collect::<Result<Vec<_>, _>>()?;
    for (layer, sum) in layers.iter().zip(&sums) {
        let folder = image.join(sum);
        let placed =
            fs::create_dir(&folder).and_then(|()| fs::rename(layer, folder.join("layer.tar")));
        placed.map_err(ChoreFailure::file("place a layer"))?;
    }
    let config = image.join("config.json");
    fs::write(&config, config_text(release, target, &sums))
        .map_err(ChoreFailure::file("write the image's settings"))?;
    let name = format!("{}.json", sum(&config)?);
    fs::rename(&config, image.join(&name)).map_err(ChoreFailure::file("name the settings"))?;
    fs::write(
        image.join("manifest.json"),
        manifest_text(release, &name, &sums),
    )
    .map_err(ChoreFailure::file("write the image's manifest"))?;
    let file = release.image(target);
    let mut pack = tar(release);
    pack.arg("-cf").arg(&file).arg("-C").arg(&image);
    program::show(pack.args(["manifest.json", &name]).args(&sums))?;
    program::show(
        Command::new("gzip")
            .args(["-6", "--no-name", "--force"])
            .arg(&file),
    )?;
    Ok(file.with_extension("tar.gz"))
}

fn base(release: &DistRelease, target: DistTarget, image: &Path) -> Result<PathBuf, ChoreFailure> {
    if machine::find("mmdebstrap").is_none() {
        return Err(ChoreFailure::Lacking {
            what: "the image cannot be made: there is no mmdebstrap".to_owned(),
            remedy: "apt-get install mmdebstrap, or add --no-image".to_owned(),
        });
    }
    say::note("making the image's file system; this takes a minute or two");
    let tar = image.join("base.tar");
    let mut make = Command::new("mmdebstrap");
    make.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    make.args(["--variant=minbase", &format!("--include={PACKAGES}")]);
    make.arg(format!("--architectures={}", target.debian()));
    make.args([
        "--aptopt=Acquire::Retries \"3\"",
        "--aptopt=APT::Install-Recommends \"false\"",
    ]);
    for left_out in ["doc", "man", "locale", "info"] {
        make.arg(format!("--dpkgopt=path-exclude=/usr/share/{left_out}/*"));
    }
    // Licences stay with what they license.
    make.arg("--dpkgopt=path-include=/usr/share/doc/*/copyright");
    make.arg(format!("--customize-hook=set -e{AFTER}"));
    make.arg(SUITE).arg(&tar);
    make.arg("deb http://deb.debian.org/debian bookworm main");
    make.arg("deb http://deb.debian.org/debian bookworm-updates main");
    make.arg("deb http://deb.debian.org/debian-security bookworm-security main");
    program::show(&mut make)?;
    Ok(tar)
}

fn with_program(
    release: &DistRelease,
    built: &BuiltProgram,
    image: &Path,
) -> Result<PathBuf, ChoreFailure> {
    let folder = image.join("program");
    let place = folder.join("usr/local/bin");
    let copied = fs::create_dir_all(&place)
        .and_then(|()| fs::copy(&built.path, place.join("hermetic")).map(drop));
    copied.map_err(ChoreFailure::file("copy the program"))?;
    let layer = image.join("program.tar");
    let mut pack = tar(release);
    pack.args(["--mode=0755", "-cf"])
        .arg(&layer)
        .arg("-C")
        .arg(&folder);
    program::show(pack.arg("usr/local/bin/hermetic"))?;
    fs::remove_dir_all(&folder).map_err(ChoreFailure::file("clear the program's folder"))?;
    Ok(layer)
}

/// The same files make the same archive, whoever packs them and when.
pub(crate) fn tar(release: &DistRelease) -> Command {
    let mut tar = Command::new("tar");
    tar.args([
        "--format=ustar",
        "--sort=name",
        "--numeric-owner",
        "--owner=0",
        "--group=0",
    ]);
    tar.arg(format!("--mtime=@{}", release.epoch));
    tar
}

fn config_text(release: &DistRelease, target: DistTarget, sums: &[String]) -> String {
    let layers: Vec<_> = sums
        .iter()
        .map(|sum| quoted(&format!("sha256:{sum}")))
        .collect();
    format!(
        "{{\"architecture\": {}, \"os\": \"linux\", \"config\": {{\"User\": \"hermetic\", \
         \"WorkingDir\": \"/home/hermetic\", \"Entrypoint\": [\"hermetic\"], \"Cmd\": [\"gateway\", \"run\"], \
         \"Env\": [\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"], \
         \"Labels\": {{\"org.opencontainers.image.title\": \"hermetic\", \
         \"org.opencontainers.image.version\": {}, \
         \"org.opencontainers.image.licenses\": \"MIT OR Apache-2.0\"}}}}, \
         \"rootfs\": {{\"type\": \"layers\", \"diff_ids\": [{}]}}}}\n",
        quoted(target.debian()),
        quoted(&release.version),
        layers.join(", ")
    )
}

fn manifest_text(release: &DistRelease, config: &str, sums: &[String]) -> String {
    let layers: Vec<_> = sums
        .iter()
        .map(|sum| quoted(&format!("{sum}/layer.tar")))
        .collect();
    // A tag has no tilde.
    let tag = release.version.replace('~', "-");
    format!(
        "[{{\"Config\": {}, \"RepoTags\": [{}, \"hermetic:latest\"], \"Layers\": [{}]}}]\n",
        quoted(config),
        quoted(&format!("hermetic:{tag}")),
        layers.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_names_its_layers_and_its_user() {
        let release = DistRelease {
            version: "1.2.3~dev".to_owned(),
            epoch: 0,
            date: String::new(),
            folder: PathBuf::new(),
        };
        let sums = ["aa".to_owned(), "bb".to_owned()];
        let config = config_text(&release, DistTarget::Aarch64, &sums);
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        assert_eq!(config["architecture"], "arm64");
        assert_eq!(config["config"]["User"], "hermetic");
        assert_eq!(
            config["rootfs"]["diff_ids"],
            serde_json::json!(["sha256:aa", "sha256:bb"])
        );
        let manifest = manifest_text(&release, "cc.json", &sums);
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest[0]["RepoTags"][0], "hermetic:1.2.3-dev");
        assert_eq!(manifest[0]["Layers"][1], "bb/layer.tar");
    }
}

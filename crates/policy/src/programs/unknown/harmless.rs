//! Names of files that hold nothing to worry about.

/// Names under which nobody keeps a key.
pub(super) fn harmless_to_read(name: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "md", "txt", "rst", "adoc", "html", "htm", "css", "scss", "js", "mjs", "ts", "jsx", "tsx",
        "vue", "py", "rs", "go", "c", "h", "cc", "cpp", "hpp", "java", "kt", "rb", "php", "pl",
        "lua", "sh", "sql", "csv", "tsv", "json", "yaml", "yml", "toml", "xml", "log", "svg",
        "png", "jpg", "jpeg", "gif", "webp", "pdf", "zip", "gz", "tgz", "xz", "bz2", "zst", "tar",
        "whl", "jar", "o", "a", "so", "d", "bin", "img", "iso", "lock", "map", "wasm", "proto",
        "ipynb", "tex", "mk", "cmake", "patch", "diff", "out", "mod", "sum", "in", "am", "ac",
        "dot", "wav", "mp3", "mp4", "fa", "fasta", "fastq", "bam", "sam", "vcf", "bed", "pyc",
        "obj", "dat", "tmp", "err", "pid", "service", "spec", "gradle", "cs", "swift", "m", "R",
    ];
    named(
        name,
        ENDINGS,
        &[
            "README",
            "LICENSE",
            "VERSION",
            "Makefile",
            "Dockerfile",
            "CHANGELOG",
            "Gemfile",
            "COPYING",
        ],
    )
}

/// Names that nothing loads or runs by itself, wherever they are.
pub(super) fn harmless_to_write(name: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "md", "txt", "rst", "html", "css", "csv", "tsv", "json", "yaml", "yml", "xml", "log",
        "svg", "png", "jpg", "jpeg", "gif", "webp", "pdf", "zip", "gz", "tgz", "xz", "bz2", "zst",
        "tar", "whl", "jar", "o", "a", "d", "bin", "img", "iso", "map", "wasm", "c", "h", "cc",
        "cpp", "hpp", "rs", "go", "ts", "tsx", "jsx", "java", "kt", "out", "tmp", "err", "patch",
        "diff", "pyc", "obj", "dat", "fa", "fasta", "fastq", "bam", "sam", "vcf", "bed", "mp3",
        "mp4", "wav", "bak", "pid", "ipynb", "tex", "sql", "dot", "webm", "class", "s", "i", "lst",
        "stamp", "deb", "rpm", "apk", "exe", "dll", "old", "orig", "sum", "md5", "sha256",
    ];
    named(
        name,
        ENDINGS,
        &["README", "LICENSE", "VERSION", "CHANGELOG"],
    )
}

fn named(name: &str, endings: &[&str], names: &[&str]) -> bool {
    const TELLING: &[&str] = &[
        "config", "settings", "auth", "cred", "token", "secret", "hosts", "key", "account",
        "passw", "shadow", "logins", "cookies", "wallet", "k3s", "id_", "profile", "history",
    ];
    if names.contains(&name) {
        return true;
    }
    let lower = name.to_lowercase();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    endings.contains(&ending) && !TELLING.iter().any(|word| lower.contains(word))
}

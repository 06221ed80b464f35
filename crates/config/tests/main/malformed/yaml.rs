//! Text that is no YAML, or more than we take.

use crate::lab::Lab;

#[test]
fn broken_yaml() {
    let lab = Lab::with("terminal:\n  backend: docker\n timeout: 5\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: not valid YAML: while parsing a block mapping, did not find expected key
      --> ~/.hermes/config.yaml:3:2
       |
     3 |  timeout: 5
       |  ^
      = keys of one section start in the same column; is the indentation right?
      = nothing else of this file was looked at
    ");
}

#[test]
fn an_unclosed_bracket() {
    let lab = Lab::with("command_allowlist: [ls, pwd\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: not valid YAML: unclosed bracket '['
      --> ~/.hermes/config.yaml:1:20
       |
     1 | command_allowlist: [ls, pwd
       |                    ^
      = a value with `: `, `#`, brackets or quotes in it needs quotes around it
      = nothing else of this file was looked at
    ");
}

#[test]
fn an_unclosed_quote() {
    let lab = Lab::with("terminal:\n  cwd: \"/tmp\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: not valid YAML: invalid indentation in multiline quoted scalar
      --> ~/.hermes/config.yaml:3:1
       |
     3 | 
       | ^
      = something above is not closed: a quote, a bracket or a brace
      = nothing else of this file was looked at
    ");
}

#[test]
fn tabs() {
    let lab = Lab::with("terminal:\n\tbackend: docker\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: not valid YAML: tabs disallowed within this context (block indentation)
      --> ~/.hermes/config.yaml:2:2
       |
     2 |  backend: docker
       |  ^
      = indent with spaces; YAML does not allow tabs there
      = nothing else of this file was looked at
    ");
}

#[test]
fn the_same_key_twice() {
    let lab = Lab::with("terminal:\n  backend: docker\n  timeout: 5\n  backend: local\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: the key `backend` is here twice
      --> ~/.hermes/config.yaml:4:3
       |
     4 |   backend: local
       |   ^^^^^^^
      = the first is on line 2; keep one of them
    ");
}

#[test]
fn the_same_section_twice() {
    let lab = Lab::with("gateway:\n  terminal_backend: docker\ngateway:\n  strict: true\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: the key `gateway` is here twice
      --> ~/.hermes/config.yaml:3:1
       |
     3 | gateway:
       | ^^^^^^^
      = the first is on line 1; keep one of them
    ");
}

#[test]
fn an_alias_without_an_anchor() {
    let lab = Lab::with("terminal:\n  docker_image: *image\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: no anchor `&image` before this alias
      --> ~/.hermes/config.yaml:2:17
       |
     2 |   docker_image: *image
       |                 ^^^^^^
      = a value that starts with `*` needs quotes
    ");
}

#[test]
fn an_alias_to_itself() {
    let lab = Lab::with("terminal: &t\n  docker_env: *t\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: this alias stands inside what it stands for
      --> ~/.hermes/config.yaml:2:15
       |
     2 |   docker_env: *t
       |               ^^
      = write the value out instead
    ");
}

#[test]
fn a_foreign_tag() {
    let lab = Lab::with("terminal:\n  backend: !!python/object:os.system docker\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: the tag `!!python/object:os.system` means nothing here
      --> ~/.hermes/config.yaml:2:38
       |
     2 |   backend: !!python/object:os.system docker
       |                                      ^^^^^^
      = remove the tag; a value that starts with `!` needs quotes
    ");
}

#[test]
fn a_merge_of_a_word() {
    let lab = Lab::with("terminal:\n  <<: docker\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: only a map can be merged by `<<`
      --> ~/.hermes/config.yaml:2:3
       |
     2 |   <<: docker
       |   ^^
      = point it at an anchor of a map, as in `<<: *base`
    ");
}

#[test]
fn two_documents() {
    let lab = Lab::with("terminal:\n  backend: docker\n---\nterminal:\n  backend: local\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: a second document starts here
      --> ~/.hermes/config.yaml:3:1
       |
     3 | ---
       | ^^^
      = keep everything in one document: remove this `---`
    ");
}

#[test]
fn a_map_as_a_key() {
    let lab = Lab::with("? {a: b}\n: c\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: a map cannot be a key
      --> ~/.hermes/config.yaml:1:3
       |
     1 | ? {a: b}
       |   ^
      = a key is a plain word; text with braces or brackets needs quotes
    ");
}

#[test]
fn crlf_lines() {
    let lab = Lab::with("terminal:\r\n  backend: docer\r\n  timeout: 5\r\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown value `docer`
      --> ~/.hermes/config.yaml:2:12
       |
     2 |   backend: docer
       |            ^^^^^
      = key: terminal.backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
      = did you mean docker?
    ");
}

#[test]
fn a_byte_order_mark() {
    let lab = Lab::with("\u{feff}terminal:\n  backend: docer\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown value `docer`
      --> ~/.hermes/config.yaml:2:12
       |
     2 |   backend: docer
       |            ^^^^^
      = key: terminal.backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
      = did you mean docker?
    ");
}

#[test]
fn wide_characters_before_the_mistake() {
    let lab = Lab::with("terminal: {cwd: 'größe', backend: docer}\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown value `docer`
      --> ~/.hermes/config.yaml:1:35
       |
     1 | terminal: {cwd: 'größe', backend: docer}
       |                                   ^^^^^
      = key: terminal.backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
      = did you mean docker?
    ");
}

#[test]
fn not_utf_8() {
    let lab = Lab::with(b"terminal:\n  cwd: \xff\xfe\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: the file is not UTF-8 text
      --> ~/.hermes/config.yaml:2:8
      = save it as UTF-8, without a byte order of another encoding
    ");
}

#[test]
fn a_broken_legacy_file() {
    let lab = Lab::new().file("gateway.json", "{\"platforms\": {\"telegram\": ");
    insta::assert_snapshot!(lab.errors(), @r#"
    error: not valid YAML: unclosed bracket '{'
      --> ~/.hermes/gateway.json:1:15
       |
     1 | {"platforms": {"telegram":
       |               ^
      = a value with `: `, `#`, brackets or quotes in it needs quotes around it
      = nothing else of this file was looked at
    "#);
}

#[test]
fn nul_and_escape_characters() {
    let lab = Lab::with("terminal:\n  backend: \"do\\u001b[31mcker\"\n");
    insta::assert_snapshot!(lab.errors(), @r#"
    error: unknown value `do�[31mcker`
      --> ~/.hermes/config.yaml:2:12
       |
     2 |   backend: "do\u001b[31mcker"
       |            ^^^^^^^^^^^^^^^^^^
      = key: terminal.backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
    "#);
}

#[test]
fn the_same_key_twice_hides_no_other_mistake() {
    let lab = Lab::with(
        "terminal:\n  timeout: 5\n  timeout: 6\n  backend: docer\n  docker_image: *nope\n",
    );
    insta::assert_snapshot!(lab.errors(), @r"
    error: the key `timeout` is here twice
      --> ~/.hermes/config.yaml:3:3
       |
     3 |   timeout: 6
       |   ^^^^^^^
      = the first is on line 2; keep one of them

    error: no anchor `&nope` before this alias
      --> ~/.hermes/config.yaml:5:17
       |
     5 |   docker_image: *nope
       |                 ^^^^^
      = a value that starts with `*` needs quotes

    error: unknown value `docer`
      --> ~/.hermes/config.yaml:4:12
       |
     4 |   backend: docer
       |            ^^^^^
      = key: terminal.backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
      = did you mean docker?
    ");
}

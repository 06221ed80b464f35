//! Variables and `.env`.

use crate::lab::Lab;

#[test]
fn an_unset_variable() {
    let lab = Lab::with("terminal:\n  docker_image: ${REGISTRY}/box\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: the variable REGISTRY is not set
      --> ~/.hermes/config.yaml:2:17
       |
     2 |   docker_image: ${REGISTRY}/box
       |                 ^^^^^^^^^^^^^^^
      = key: terminal.docker_image
      = set REGISTRY in .env or the environment, or write ${REGISTRY:-text}
    ");
}

#[test]
fn a_variable_without_an_end() {
    let lab = Lab::with("terminal:\n  docker_image: ${REGISTRY\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: `${` without a closing brace
      --> ~/.hermes/config.yaml:2:17
       |
     2 |   docker_image: ${REGISTRY
       |                 ^^^^^^^^^^
      = key: terminal.docker_image
      = variables are written ${NAME}; a literal `${` is `$${`
    ");
}

#[test]
fn a_variable_without_a_name() {
    let lab = Lab::with("terminal:\n  docker_image: ${1+1}\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: `${1+1}` does not name a variable
      --> ~/.hermes/config.yaml:2:17
       |
     2 |   docker_image: ${1+1}
       |                 ^^^^^^
      = key: terminal.docker_image
      = variables are written ${NAME}; a literal `${` is `$${`
    ");
}

#[test]
fn a_variable_with_the_wrong_content() {
    let lab =
        Lab::with("terminal:\n  timeout: ${SUDO_PASSWORD}\n").variable("SUDO_PASSWORD", "hunter2");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a whole number, and `${SUDO_PASSWORD}` holds something else
      --> ~/.hermes/config.yaml:2:12
       |
     2 |   timeout: ${SUDO_PASSWORD}
       |            ^^^^^^^^^^^^^^^^
      = key: terminal.timeout
      = it must be between 1 and 86400
    ");
}

#[test]
fn a_variable_with_a_bad_backend() {
    let lab = Lab::new().variable("TERMINAL_ENV", "dokcer");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown value `dokcer`
      --> the variable TERMINAL_ENV
      = key: terminal.backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
      = did you mean docker?
    ");
}

#[test]
fn a_variable_with_a_bad_number() {
    let lab = Lab::new().variable("TERMINAL_TIMEOUT", "soon");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a whole number, found `soon`
      --> the variable TERMINAL_TIMEOUT
      = key: terminal.timeout
      = it must be between 1 and 86400
    ");
}

#[test]
fn a_variable_with_a_broken_list() {
    let lab = Lab::new().variable("TERMINAL_DOCKER_VOLUMES", "[\"/a:/b\"");
    insta::assert_snapshot!(lab.errors(), @r"
    error: not a JSON list (at character 8)
      --> the variable TERMINAL_DOCKER_VOLUMES
      = key: terminal.docker_volumes
      = in a variable, write it as a JSON list
    ");
}

#[test]
fn a_dotenv_line_without_an_equals_sign() {
    let lab = Lab::new().dotenv("TELEGRAM_BOT_TOKEN hunter2\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: this line has no `=`
      --> ~/.hermes/.env:1
      = every line is NAME=value, a comment starting with #, or empty
    ");
}

#[test]
fn a_dotenv_name_that_is_none() {
    let lab = Lab::new().dotenv("BOT-TOKEN=hunter2\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: what stands before `=` is not a variable name
      --> ~/.hermes/.env:1
      = every line is NAME=value, a comment starting with #, or empty
    ");
}

#[test]
fn a_dotenv_quote_without_an_end() {
    let lab = Lab::new().dotenv("A=1\nTELEGRAM_BOT_TOKEN=\"hunter2\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: a quote is not closed on its line
      --> ~/.hermes/.env:2
      = every line is NAME=value, a comment starting with #, or empty
    ");
}

#[test]
fn a_dotenv_value_of_the_wrong_kind() {
    let lab = Lab::new().dotenv("TERMINAL_SSH_PORT=ssh\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a whole number, found `ssh`
      --> ~/.hermes/.env:1
      = key: terminal.ssh_port
      = it must be between 1 and 65535
      = it is set by TERMINAL_SSH_PORT
    ");
}

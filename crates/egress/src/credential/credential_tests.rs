use super::*;

fn credential(
    host: &str,
    header: &str,
    scheme: &str,
    value: &str,
) -> Result<Credential, InvalidCredential> {
    Credential::new(host, header, scheme, Secret::new(value), "placeholder")
}

#[test]
fn the_header_is_replaced_whatever_its_case() {
    let mut fields = HeaderFields::default();
    fields.push("AUTHORIZATION", b"Bearer placeholder");
    fields.push("authorization", b"Bearer other");
    credential("api.test", "Authorization", "Bearer", "s3cr3t-value")
        .unwrap()
        .put_into(&mut fields);
    assert_eq!(
        fields.all("authorization").collect::<Vec<_>>(),
        [b"Bearer s3cr3t-value"]
    );
}

#[test]
fn basic_is_encoded() {
    let mut fields = HeaderFields::default();
    credential("git.test", "Authorization", "basic", "user:password1")
        .unwrap()
        .put_into(&mut fields);
    assert_eq!(
        fields.only("authorization"),
        Some(&b"Basic dXNlcjpwYXNzd29yZDE="[..])
    );
}

#[test]
fn what_would_break_a_request_is_refused() {
    for (host, header, scheme, value) in [
        ("10.0.0.1", "Authorization", "Bearer", "long-enough"),
        ("*.test", "Authorization", "Bearer", "long-enough"),
        ("a.test", "Host", "", "long-enough"),
        ("a.test", "Content-Length", "", "long-enough"),
        ("a.test", "Bad Header", "", "long-enough"),
        ("a.test", "Authorization", "two words", "long-enough"),
        ("a.test", "Authorization", "Bearer", "short"),
        ("a.test", "Authorization", "Bearer", "with\r\nline: break"),
        ("a.test", "Authorization", "basic", "no-colon-here"),
    ] {
        assert!(
            credential(host, header, scheme, value).is_err(),
            "{host} {header} {scheme}"
        );
    }
}

#[test]
fn a_credential_does_not_print_its_value() {
    let credential = credential("a.test", "X-Api-Key", "", "s3cr3t-value").unwrap();
    assert_eq!(
        format!("{credential:?}"),
        "Credential(X-Api-Key for a.test:443)"
    );
}

#[test]
fn what_is_signed_is_no_secret_and_the_signature_is() {
    let signature = "s".repeat(43);
    let token = format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.{signature}");
    assert_eq!(signed_text(&token), token.len() - 43);
    assert_eq!(
        head_and_secret(&CredentialScheme::Basic, &format!("ada:{token}")).1,
        signature
    );
    for other in [
        "a.b.c",
        &token[..token.len() - 1],
        &token[3..],
        &format!("{token}.x"),
        "ghp_abcdefghijklmnop",
    ] {
        assert_eq!(signed_text(other), 0, "{other}");
    }
}

//! Prose and code that speak of secrets without holding one.

use crate::{knowing, knowing_nothing};

#[test]
fn ordinary_text() {
    let redactor = knowing_nothing();
    for text in [
        "The password: it must be changed.",
        "root:*:20228:0:99999:7:::\nwww-data:*:20228:0:99999:7:::",
        "Access-Control-Allow-Credentials: tru3ish-value9",
        "pbkdf2(b\"password\", b\"salt\", 1);\nassert_eq!(buf, hex!(\"669cfe52482116fda1aa2cbe409b2f56c8e45637\"));",
        "  * Add new upstream signing key 19882D92DDA4C400C22C0D56CC2AF4472167BE03",
        "reads a passphrase: readpassphrase.3bsd and man/readpassphrase.3bsd",
        "          repo-token: ${{ secrets.SOME_TOKEN }}\n      - uses: some/action@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7",
        "          persist-credentials: false\n      - uses: some/action@683b588c487a69d01f6c6ddf40f036ff682cc2c8 # v1",
        "the default value of the identifier specified by supplemental data",
        "/// (identified by `property_name`) corresponds to the given value",
        "clients are identified by resource_base of the range",
        "the client that they pass to `some-index2`. See there",
        "tr -d [0123456789abcdefGhIjKlMnOpQrStUvWx]",
        "let pat = \"some words here\"; pat: Pattern2 = x; compat = Level3; pat_len=12",
        "d3+YJ5oyXSrjhO7FmGYvliAd3djDJ9ew+f7Zfc3Qn48LFFhRny+Lwzgt3uiP1o2H\npPVWQxaZLPSkVrQ0uGE3ycJYgBugl6H8WY3pEfbRD0tVNEYqi4Y7\n-----END CERTIFICATE-----",
        "    PtpV2OverUdpIPv4EventMsgReceiveHw: BOOLEAN,",
        "\"curve25519:BNYQQWUMXO\": \"xfgbLIC5WAl1OIkpOzoxpCe8FsRDT6nch7NQsOb15nc\"",
        "PublicKey::from_base64(\"xfgbLIC5WAl1OIkpOzoxpCe8FsRDT6nch7NQsOb15nc\")",
        "    \"RqIbT2jORlN4rTvdtF0F4z1pqP4qWyR3sLNTkXm9CFRzWADNG0RDZKxbCoo6RPvt\\n\"\n",
        "WBEM_E_CANNOT_BE_KEY = 0x8004101f, pub const HKEY_ROOT: HKEY = 0x80000000i32 as usize",
        "pub const HKEY_CLASSES_ROOT: HKEY = -2147483648i32 as _;",
        "PWD=/Users/somebody\nPWD: '/home/somebody/project'",
        "DEFINE_GUID!{GUID_WICPixelFormat16bppBGR555, 0x6fddc324}",
        ".. _`RFC6749#Token`: https://tools.ietf.org/html/rfc6749#section-3.2",
        ".. _`RFC6749#Authorization`: https://tools.ietf.org/html/rfc6749#section-3.1",
        "password = base64.b16encode(random_bytes[8:])",
        "i2d_ECPrivateKey, EVP_PKEY_get0_EC_KEY, NID_X9_62_prime256v1, NID_secp384r1",
        "EcPrivateKeyBin, EcPrivateKeyRfc5915Der<'static>",
        "--sentinel-fuse NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2",
        "github.com/stretchr/testify v1.8.4 h1:CcVxjf3Q8PM0mHUKJCdn+eZZtm5yQwehR5yeSVQQcUk=",
        "a member of the rust community writes",
        "sentry at commit 0123456789abcdef0123456789abcdef01234567",
        "token: The token to use for the request",
        "max_tokens: 4096, temperature=0.7",
        "MAX_TOKEN=4096",
        "the bearer of bad news",
        "task-runner-for-everything-in-the-house",
        "sk-learn-based-pipeline-without-any-number",
        "key = value; keyboard: us; monkey=banana12345",
        "primary_key=users_id_0123",
        "author: Jane Doe, authorization: required",
        "password_field = form.fields[0]",
        "password = input(\"Password: \")",
        "api_key = os.environ[\"OPENAI_API_KEY\"]",
        "token = self.tokenizer.next_token",
        "  password: str,\n  token: Option<String>,\n  secret: SecretText\n",
        "    private_key: _ALLOWED_KEY_TYPES,\n    password: PASSWORD_TYPE\n",
        "Token: '#d0d0d0', token: \"#fff\"",
        "password = read_password()\npassword = getpass\n",
        "API_KEY=$OTHER_KEY",
        "API_KEY=${OTHER:-x}",
        "PASSWORD=<your password>",
        "PASSWORD=********",
        "PASSWORD=[redacted]",
        "\"token\": null, \"password\": \"\"",
        "\"password\": \"Enter your password\"",
        "pad_token = \"<|endoftext|>\"",
        "https://user@host/path and http://h:8080/p@q",
        "git@github.com:a/b.git ssh://git@host/x",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "if s.startswith(\"-----BEGIN PRIVATE KEY-----\") and s.endswith(\"-----END PRIVATE KEY-----\"):",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "550e8400-e29b-41d4-a716-446655440000",
        "eyJ is how base64 of JSON begins",
        "12:30:45 and 127.0.0.1:AAA",
        "cookie: a small text file",
        "tests passed=12 failed=0 pass=1",
        "    CONTAINER_SSHKEY=str(pathlib.Path('~/.ssh/id_rsa').expanduser()),  # later",
        "    AZURE_SECRET=response['clientSecret'],",
        "    OTHER_KEY=Some Value",
        "    Password: b64Pwd,",
        "proxies = \"http://user:pass@localhost:8080\"",
        "headers={'Authorization':'Bearer foobar'}",
        "{\"Proxy-Authorization\": \"Basic dXNlcjpwYXNz\"}",
        "pub const STABLE_SECRET: _bindgen_ty_3 = _bindgen_ty_3::STABLE_SECRET;",
        "private_key.decrypt(&OAEP_SHA256_MGF1SHA256, text)",
        "secret: urn:k8s:secret:name:key",
        "\"AuthoritativePod\": \"kuberhealthy-67bf8c4686-mbl2j\",",
        "default-test2-route-23c7f4c450289ee29016@kubernetescrd",
        "\"ID\": \"_nomad-task-71a63a80-a98a-93ee-4fd7-73b808577c20-group-hello\",",
        "/dev/sda2  66Ojcd-ULtu-1cZa-Tywo-mx0d-RF4O-ysA9jK",
        "d=\"M6.76 4.84l-1.8-1.79-1.41 1.41zM4 10.5H1v2h3v-2zm9-9.95h-2V3.5h2V.55zm7.45 3.91\"",
        "BgNVBAMTC0hlcm9uZyBZYW5nggEAMAwGA1UdEwQFMAMBAf8wDQYJKoZIhvcNAQEE\n",
        "https://www.youtube.com/playlist?list=PLj6h78yzYM2Mf2yQ9zOXm1kB7dT4cW5eR",
        "https://docs.google.com/presentation/d/1Gp-2blk5WExI_QR59EUZdwfO2BWLJqa626mK2ej-huo/edit",
        "",
        "ä",
        "=",
        "password=",
        "://@",
        "password: ",
    ] {
        assert_eq!(redactor.redact(text).as_str(), text);
    }
}

#[test]
fn our_own_source_is_hardly_touched() {
    let redactor = knowing(&["some-known-secret-value"]);
    for source in [
        include_str!("../src/stream.rs"),
        include_str!("../src/redactor.rs"),
        include_str!("../src/secret_matcher.rs"),
        include_str!("../src/rules/assignment.rs"),
        include_str!("../src/rules/header.rs"),
        include_str!("../src/rules/value.rs"),
        include_str!("../src/rules/pem.rs"),
        include_str!("../src/rules/vendor.rs"),
    ] {
        assert_eq!(redactor.redact(source).as_str(), source);
    }
}

#[test]
fn bytes_that_are_no_text() {
    let redactor = knowing_nothing();
    let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    assert_eq!(redactor.redact_bytes(&bytes).into_inner(), bytes);
}

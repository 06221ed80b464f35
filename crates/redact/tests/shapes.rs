//! Every secret below was made up for this file.

use crate::knowing_nothing;

#[track_caller]
fn assert_table(table: &[(&str, &str)]) {
    let redactor = knowing_nothing();
    for (text, expected) in table {
        assert_eq!(redactor.redact(text).as_str(), *expected, "{text}");
    }
}

#[test]
fn vendor_keys() {
    let a = |count: usize| "a1B2c3D4e5F6g7H8i9J0".repeat(8)[..count].to_owned();
    let hex = |count: usize| "0123456789abcdef".repeat(8)[..count].to_owned();
    let upper = |count: usize| "A1B2C3D4E5F6G7H8".repeat(8)[..count].to_owned();
    let redactor = knowing_nothing();
    let keys = [
        format!("sk-{}", a(48)),
        format!("sk-proj-{}", a(60)),
        format!("sk-ant-api03-{}", a(80)),
        format!("sk-or-v1-{}", hex(64)),
        format!("ghp_{}", a(36)),
        format!("github_pat_{}_{}", a(22), a(59)),
        format!("glpat-{}", a(20)),
        format!("xoxb-123456789012-123456789012-{}", a(24)),
        format!("xapp-1-A0123456789-1234567890123-{}", hex(64)),
        format!("AKIA{}", upper(16)),
        format!("AIza{}", a(35)),
        format!("ya29.{}", a(60)),
        format!("sk_live_{}", a(24)),
        format!("SG.{}.{}", a(22), a(43)),
        format!("npm_{}", a(36)),
        format!("pypi-AgEIcHlwaS5vcmc{}", a(70)),
        format!("hf_{}", a(34)),
        format!("gsk_{}", a(52)),
        format!("r8_{}", a(37)),
        format!("dop_v1_{}", hex(64)),
        format!("shpat_{}", hex(32)),
        format!("hvs.{}", a(24)),
        format!("glsa_{}_{}", a(32), hex(8)),
        format!("dckr_pat_{}", a(27)),
        format!("key-{}", hex(32)),
        format!("ak-{}", a(22)),
        format!("dtn_{}", hex(64)),
        format!("MTA{}.GabcdE.{}", a(21), a(38)),
        format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{}", a(43)),
    ];
    for key in keys {
        for (before, after) in [
            ("", ""),
            ("use ", " now"),
            ("(", ")"),
            ("\"", "\","),
            ("\\n", "\\n"),
        ] {
            let text = format!("{before}{key}{after}");
            assert_eq!(
                redactor.redact(&text).as_str(),
                format!("{before}[redacted]{after}"),
                "{text}"
            );
        }
    }
}

#[test]
fn headers() {
    assert_table(&[
        (
            "Authorization: Bearer abc.def-ghi",
            "Authorization: Bearer [redacted]",
        ),
        (
            "authorization: basic dXNlcjpzM2NyM3Q=\r\nHost: x",
            "authorization: basic [redacted]\r\nHost: x",
        ),
        (
            "curl -H 'Authorization: token 0123456789abcdef' x",
            "curl -H 'Authorization: token [redacted]' x",
        ),
        (
            "{\"Authorization\": \"Bearer abcdefg\"}",
            "{\"Authorization\": \"Bearer [redacted]\"}",
        ),
        (
            "{\\\"Authorization\\\": \\\"Bearer abcdefg\\\"}",
            "{\\\"Authorization\\\": \\\"Bearer [redacted]\\\"}",
        ),
        (
            "Authorization: 0123456789abcdef0123",
            "Authorization: [redacted]",
        ),
        ("X-Api-Key: abcdef0123456789", "X-Api-Key: [redacted]"),
        (
            "Set-Cookie: sid=abcdef0123; HttpOnly\r\n",
            "Set-Cookie: [redacted]\r\n",
        ),
        (
            "got Bearer 0123456789abcdefgh back",
            "got Bearer [redacted] back",
        ),
    ]);
}

#[test]
fn urls() {
    assert_table(&[
        (
            "postgres://app:s3cr3t@db:5432/x",
            "postgres://app:[redacted]@db:5432/x",
        ),
        (
            "mongodb+srv://u:p%40ss@c.example/db",
            "mongodb+srv://u:[redacted]@c.example/db",
        ),
        (
            "redis://:hunter2@localhost",
            "redis://:[redacted]@localhost",
        ),
        ("mysql://u:p@ss:w@h/d", "mysql://u:[redacted]@h/d"),
        (
            "https://0123456789abcdefghij@host/r.git",
            "https://[redacted]@host/r.git",
        ),
        (
            "https://h/p?token=abcd1234&x=1",
            "https://h/p?token=[redacted]&x=1",
        ),
        (
            "https://h/p?x=1&api_key=abcd1234#f",
            "https://h/p?x=1&api_key=[redacted]#f",
        ),
        ("https://h/p?key=abcd1234", "https://h/p?key=[redacted]"),
        (
            "https://h/b?sv=1&sig=ab%2Bcd%3D",
            "https://h/b?sv=1&sig=[redacted]",
        ),
        (
            "?X-Amz-Signature=abcdef012345",
            "?X-Amz-Signature=[redacted]",
        ),
        (
            "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijkl",
            "https://hooks.slack.com/services/[redacted]",
        ),
        (
            "https://api.telegram.org/bot123456789:AAabcdefghijklmnopqrstuvwxyz0123456/getMe",
            "https://api.telegram.org/bot123456789:[redacted]/getMe",
        ),
    ]);
}

#[test]
fn assignments() {
    assert_table(&[
        ("OPENAI_API_KEY=whatever", "OPENAI_API_KEY=[redacted]"),
        (
            "export DB_PASS=pa ss&word\nX=1",
            "export DB_PASS=[redacted]\nX=1",
        ),
        ("SECRET_KEY_BASE=abcdef", "SECRET_KEY_BASE=[redacted]"),
        ("TOKEN_2=abcdef", "TOKEN_2=[redacted]"),
        ("run PASSWORD=hunter2 ./x", "run PASSWORD=[redacted] ./x"),
        ("\"password\": \"hunter2\"", "\"password\": \"[redacted]\""),
        (
            "\"password\":\"hun\\\"ter2\",",
            "\"password\":\"[redacted]\",",
        ),
        (
            "{\\\"api_key\\\":\\\"hunter2\\\"}",
            "{\\\"api_key\\\":\\\"[redacted]\\\"}",
        ),
        ("  password: hunter2\n", "  password: [redacted]\n"),
        (
            "- client_secret: correcthorse\n",
            "- client_secret: [redacted]\n",
        ),
        ("password = 'hunter2'", "password = '[redacted]'"),
        (
            "let apiKey = \"abcd-3fgh\";",
            "let apiKey = \"[redacted]\";",
        ),
        ("mysql --password hunter2abc", "mysql --password [redacted]"),
        ("password = hunter2\n", "password = [redacted]\n"),
        ("x --password=hunter2 y", "x --password=[redacted] y"),
        ("tool --token=abcdef123", "tool --token=[redacted]"),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG",
            "aws_secret_access_key = [redacted]",
        ),
        ("//r/:_authToken=abcdef12", "//r/:_authToken=[redacted]"),
        ("AccountKey=abcdef12==;", "AccountKey=[redacted];"),
    ]);
}

#[test]
fn private_keys() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    let redactor = knowing_nothing();
    for breaks in ["\n", "\r\n", "\\n", "\n    ", "\n+ "] {
        for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
            let body = [line; 20].join(breaks);
            let key = format!(
                "-----BEGIN {kind}PRIVATE KEY-----{breaks}{body}{breaks}-----END {kind}PRIVATE KEY-----"
            );
            let text = format!("a {key} b");
            assert_eq!(redactor.redact(&text).as_str(), "a [redacted] b", "{text}");
            let cut = &text[..400];
            assert_eq!(redactor.redact(cut).as_str(), "a [redacted]", "{cut}");
        }
    }
}

/// No table names these vendors.
#[test]
fn keys_of_unknown_vendors() {
    let drawn = "q7Rw2mZx9Lp4Tk8vBn3cQ5dY";
    let redactor = knowing_nothing();
    for key in [
        format!("acme_{drawn}"),
        format!("acme_live_v2_{drawn}"),
        format!("ACME-1-{drawn}"),
        format!("acme.{drawn}"),
        "frob_k3x9v2m7q4w8z1b6n5c0".to_owned(),
        "frob_0f3a9c4e7b1d5826a0c9e4f7b3d15862".to_owned(),
        format!("{drawn}G7hW4sA1"),
        "R2XLQY7TUQG2YB5ZYHL3KSLRY4TWBA6M".to_owned(),
        "0f3a9c4e7b1d5826a0c9e4f7b3d15862-us12".to_owned(),
    ] {
        for (before, after) in [
            ("got ", " back"),
            ("\x1b[1;31m", "\x1b[0m"),
            ("\\n", "\\n"),
            ("(", ")"),
        ] {
            let text = format!("{before}{key}{after}");
            let left = redactor.redact(&text).into_inner();
            assert_eq!(left, format!("{before}[redacted]{after}"), "{text}");
        }
    }
}

#[test]
fn a_key_in_base64() {
    let left = knowing_nothing().redact("payload Z2hwX3E3UncybVp4OUxwNFRrOHZCbjNjUTVkWUc3aFc= end");
    assert_eq!(left.as_str(), "payload [redacted] end");
}

#[test]
fn values_beside_a_name() {
    assert_table(&[
        ("id:master,pw:dipPr10Gg!", "id:master,pw:[redacted]"),
        (
            "acme-secret-5f4dcc3b5aa765d61d8327deb882cf99",
            "acme-secret-[redacted]",
        ),
        (
            "bugsnag token 123e4567-e89b-12d3-a456-426614174000",
            "bugsnag token [redacted]",
        ),
    ]);
}

#[test]
fn passwords_in_the_words_of_other_programs() {
    let redactor = knowing_nothing();
    for (before, after) in [
        ("CREATE USER bob WITH PASSWORD '", "';"),
        ("ALTER USER 'bob'@'%' IDENTIFIED BY '", "';"),
        ("jdbc:oracle:thin:scott/", "@//h:1521/x"),
        ("mongosh -u bob -p ", " --host db"),
        ("openssl enc -aes-256-cbc -k ", " -in a"),
        ("openssl rsa -passin pass:", " -in k.pem"),
        ("keytool -list -storepass ", " -keystore k.jks"),
        ("7z x -p", " a.7z"),
        ("unzip -P ", " a.zip"),
        ("set DB_PASSWORD to ", "\n"),
        ("openai.api.key.prod=", "\n"),
        ("variable \"db_password\" {\n  default = \"", "\"\n}"),
    ] {
        let left = redactor.redact(format!("{before}QhRk472xCE{after}"));
        assert!(!left.as_str().contains("QhRk472xCE"), "{}", left.as_str());
    }
}

#[test]
fn keys_that_their_middle_or_their_service_gives_away() {
    let redactor = knowing_nothing();
    for key in [
        "qEsckP1XxD7xJLaoZ3wBrojaaXQV7FQjO+ASbstnZBI=",
        "Ho07ubFQxRS6FAe0SLym82JEdlgPe17LdunrbFUzHr+ACRB3Z71N",
        "19fe69ed7896c900fdea3ccb7b033db6-12f4e384-423e07ab",
        "glft-StDvyzTnfaWDPKDYhC_H",
        "AKIAQUOSBEGZGSYEBANN",
        "$8$TnGX/fE4KGHOVU$pEhnEvxrvaynpi8j4f.EMHr6M.FzU8xnZnBr/tJdFWk",
    ] {
        let left = redactor.redact(format!("got {key} from upstream"));
        assert!(!left.as_str().contains(key), "{}", left.as_str());
    }
    for (before, key) in [
        ("8/3862866411569452:", "7f6931cc83d1d402830e7bb130eea67e"),
        ("datadog said ", "753b4ti0t7nqei6sn93nx5sqoj2oyzes"),
        ("weatherbit ACCESS ", "a4b8ffbb028d4d35a8c8d87f5b06771f"),
        ("\"dandelionKey\": \"", "ols99stbie4yxl03t5vnzk2q7td39v09"),
    ] {
        let left = redactor.redact(format!("{before}{key}\" x"));
        assert!(!left.as_str().contains(key), "{}", left.as_str());
    }
}

/// Names whose telling word is followed by more of the name, and numbers that a key stands behind.
#[test]
fn names_that_go_on_behind_their_telling_word() {
    assert_table(&[
        (
            "STRIPE_SECRETProd=q7Rw2mZx9Lp4Tk8v",
            "STRIPE_SECRETProd=[redacted]",
        ),
        (
            "got 953202032910963|r8h2clj4p1zp7ia0nst4t3q7uzf8b back",
            "got 953202032910963|[redacted] back",
        ),
        (
            "_gitlab_session=tg00tur05svh5ohaat2ehzssctvwpxqu",
            "[redacted]",
        ),
    ]);
}

#[test]
fn personal_access_tokens_by_name() {
    let value = "EQyJfishArOf41gpr19rMsigO7";
    let redactor = knowing_nothing();
    for text in [
        "PAT=X",
        "export PAT=X",
        "GITEA_PAT=X",
        "PAT_PROD=X",
        "export PAT_READONLY=\"X\"",
        "\"PAT_BACKUP\": \"X\"",
        "'PAT_DEV' => 'X'",
        "{\"name\":\"PAT\",\"value\":\"X\"}",
        "PAT_OLD = \"X\"",
    ] {
        let left = redactor.redact(text.replace('X', value)).into_inner();
        assert!(!left.contains(value), "{text}: {left}");
    }
}

#[test]
fn sql_that_identifies_somebody() {
    assert_table(&[
        (
            "CREATE USER 'app'@'%' IDENTIFIED BY 'Zu7pferd';",
            "CREATE USER 'app'@'%' IDENTIFIED BY '[redacted]';",
        ),
        (
            "alter user app identified by Zu7pferd;",
            "alter user app identified by [redacted];",
        ),
    ]);
}

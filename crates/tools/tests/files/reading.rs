use serde_json::json;

use super::{content, error};
use crate::lab::{SECRET, native};

#[test]
fn lines_are_numbered_and_chosen() {
    native(async |lab| {
        lab.sh("seq 1 3000 > numbers").await;
        let page = lab.call("read_file", json!({"path": "numbers"})).await;
        assert!(content(&page).starts_with("1|1\n2|2\n"), "{page}");
        assert!(content(&page).ends_with("500|500"));
        assert_eq!(page["total_lines"], 3000);
        assert_eq!(page["truncated"], true);
        assert!(page["hint"].as_str().unwrap().contains("offset=501"));
        let rest = lab
            .call(
                "read_file",
                json!({"path": "/workspace/numbers", "offset": 2999, "limit": 99_999}),
            )
            .await;
        assert_eq!(content(&rest), "2999|2999\n3000|3000");
        assert_eq!(rest["truncated"], false);
        let beyond = lab
            .call("read_file", json!({"path": "numbers", "offset": 4000}))
            .await;
        assert_eq!(content(&beyond), "");
        assert!(
            beyond["hint"].as_str().unwrap().contains("3000 lines"),
            "{beyond}"
        );
    });
}

#[test]
fn a_relative_path_begins_where_the_shell_is() {
    native(async |lab| {
        lab.sh("mkdir -p deep/er && echo here > deep/er/note && cd deep/er")
            .await;
        let note = lab.call("read_file", json!({"path": "note"})).await;
        assert_eq!(content(&note), "1|here");
        lab.call("write_file", json!({"path": "../beside", "content": "x"}))
            .await;
        assert_eq!(lab.sh("cat /workspace/deep/beside").await, "x");
        lab.sh("echo home > ~/mine").await;
        let mine = lab.call("read_file", json!({"path": "~/mine"})).await;
        assert_eq!(content(&mine), "1|home");
    });
}

#[test]
fn what_was_read_is_said_to_be_known_once() {
    native(async |lab| {
        lab.sh("echo one > file").await;
        let read = json!({"path": "file"});
        assert_eq!(content(&lab.call("read_file", read.clone()).await), "1|one");
        assert_eq!(
            lab.call("read_file", read.clone()).await["status"],
            "unchanged"
        );
        assert_eq!(content(&lab.call("read_file", read.clone()).await), "1|one");
        lab.sh("echo two > file").await;
        assert_eq!(content(&lab.call("read_file", read).await), "1|two");
    });
}

#[test]
fn a_name_that_is_not_there_brings_its_like() {
    native(async |lab| {
        lab.sh("touch config.yaml main.py").await;
        let missing = lab.call("read_file", json!({"path": "config.yml"})).await;
        assert_eq!(error(&missing), "File not found: config.yml");
        assert_eq!(missing["similar_files"], json!(["/workspace/config.yaml"]));
        let folder = lab.call("read_file", json!({"path": "."})).await;
        assert!(error(&folder).contains("is a folder"), "{folder}");
        let deep = lab.call("read_file", json!({"path": "no/such/file"})).await;
        assert!(error(&deep).contains("not found"), "{deep}");
        let through = lab.call("read_file", json!({"path": "main.py/x"})).await;
        assert!(error(&through).contains("Not a directory"), "{through}");
    });
}

#[test]
fn long_lines_and_much_text_are_bounded_and_go_on() {
    native(async |lab| {
        lab.sh("python3 -c \"print('x' * 5_000_000); print('end')\" > wide")
            .await;
        let wide = lab.call("read_file", json!({"path": "wide"})).await;
        assert!(
            content(&wide).ends_with("... [truncated]\n2|end"),
            "{}",
            content(&wide).len()
        );
        lab.sh("python3 -c \"print(('\\\"' * 1500 + chr(10)) * 400, end='')\" > quotes")
            .await;
        let first = lab.call("read_file", json!({"path": "quotes"})).await;
        assert_eq!(first["truncated_by"], "bytes");
        let next = first["next_offset"].as_u64().unwrap();
        let second = lab
            .call("read_file", json!({"path": "quotes", "offset": next}))
            .await;
        assert!(
            content(&second).starts_with(&format!("{next}|\"\"\"")),
            "{next}"
        );
    });
}

#[test]
fn what_is_no_text_is_not_shown_as_one() {
    native(async |lab| {
        let binary = lab.call("read_file", json!({"path": "/bin/true"})).await;
        assert_eq!(binary["is_binary"], true);
        assert!(error(&binary).contains("binary"), "{binary}");
        lab.sh("printf 'gr\\374n\\n' > latin; : > empty; printf '\\357\\273\\277mark' > marked")
            .await;
        let latin = lab.call("read_file", json!({"path": "latin"})).await;
        assert_eq!(content(&latin), "1|gr\u{fffd}n");
        assert!(latin["_warning"].as_str().unwrap().contains("UTF-8"));
        let empty = lab.call("read_file", json!({"path": "empty"})).await;
        assert_eq!((content(&empty), &empty["total_lines"]), ("", &json!(0)));
        let marked = lab.call("read_file", json!({"path": "marked"})).await;
        assert_eq!(content(&marked), "1|mark");
    });
}

#[test]
fn secrets_do_not_show_and_are_not_overwritten_by_their_masks() {
    native(async |lab| {
        lab.sh("printf 'a=1\\npassword=%s-%s-battery-staple\\nb=2\\n' correct horse > env")
            .await;
        let shown = lab.call("read_file", json!({"path": "env"})).await;
        assert!(!shown.to_string().contains(SECRET), "{shown}");
        assert!(content(&shown).contains("[redacted]") && content(&shown).contains("3|b=2"));
        let back = "a=1\npassword=[redacted]\nb=3\n";
        let refused = lab
            .call("write_file", json!({"path": "env", "content": back}))
            .await;
        assert!(error(&refused).contains("stands for a secret"), "{refused}");
        let patched = lab
            .call(
                "patch",
                json!({"mode": "replace", "path": "env", "old_string": "b=2", "new_string": "b=3"}),
            )
            .await;
        assert_eq!(patched["success"], true, "{patched}");
        assert!(!patched.to_string().contains(SECRET), "{patched}");
        assert_eq!(lab.sh("grep -c horse env; tail -1 env").await, "1\nb=3");
    });
}

/// More than a message holds: its words are read like the lines of a text.
#[test]
fn of_a_large_pdf_the_words_are_read() {
    native(async |lab| {
        // An object that nobody paints makes it as large as a scanned book.
        let make = r"{ printf '%%PDF-1.4\n1 0 obj << /Type /Page /Contents 2 0 R /Resources << /Font << /F1 3 0 R >> >> >> endobj\n'
             printf '2 0 obj << /Length 61 >> stream\nBT /F1 9 Tf (first words) Tj 0 -12 Td (second line) Tj ET\nendstream endobj\n'
             printf '3 0 obj << /Type /Font /Subtype /Type1 >> endobj\n9 0 obj << /Length 1200000 >> stream\n'
             head -c 1200000 /dev/zero; printf '\nendstream endobj\n%%%%EOF'; } > book.pdf";
        lab.sh(make).await;
        let read = lab.call("read_file", json!({"path": "book.pdf"})).await;
        assert_eq!(content(&read), "1|first words\n2|second line", "{read}");
        let arguments = json!({"path": "book.pdf", "offset": 2, "limit": 1});
        let second = lab.call("read_file", arguments).await;
        assert_eq!(content(&second), "2|second line", "{second}");
    });
}

#[test]
fn of_a_small_pdf_the_words_are_read_where_the_model_is_not_shown_it() {
    native(async |lab| {
        let make = r"{ printf '%%PDF-1.4\n1 0 obj << /Type /Page /Contents 2 0 R /Resources << /Font << /F1 3 0 R >> >> >> endobj\n'
             printf '2 0 obj << /Length 61 >> stream\nBT /F1 9 Tf (first words) Tj 0 -12 Td (second line) Tj ET\nendstream endobj\n'
             printf '3 0 obj << /Type /Font /Subtype /Type1 >> endobj\n%%%%EOF'; } > note.pdf";
        lab.sh(make).await;
        let arguments = json!({"path": "note.pdf"});
        let (shown, files) = lab
            .call_showing_files(true, "read_file", arguments.clone())
            .await;
        assert_eq!(files, 1, "{shown}");
        let (read, files) = lab.call_showing_files(false, "read_file", arguments).await;
        assert_eq!(content(&read), "1|first words\n2|second line", "{read}");
        assert_eq!(files, 0);
    });
}

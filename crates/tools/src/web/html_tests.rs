use super::*;

fn read(html: &str) -> ReadablePage {
    readable(html, &Url::parse("https://a.test/dir/page").unwrap())
}

fn text(html: &str) -> String {
    read(html).text
}

#[test]
fn a_page_keeps_its_shape() {
    let page = read(
        "<!doctype html><html><head><title> A &amp; B\n page </title><style>p{color:red}</style>\
         <script>if (a < b) document.write('<p>never</p>')</script></head><body>\
         <h1>Top</h1><p>One   two\nthree<br>four &lt;five&gt;.</p>\
         <ul><li>first<li>second<ol><li>inner</li><li>next</li></ol></li></ul>\
         <p>See <a href='/x?a=1&amp;b=2'>the <b>place</b></a>, <a href='#here'>here</a>.\
         <pre>fn main() {\n    run();\n}</pre><img src='c.png' alt='a cat'></body></html>",
    );
    assert_eq!(page.title, "A & B page");
    assert_eq!(
        page.text,
        "# Top\n\nOne two three\nfour <five>.\n\n- first\n- second\n  1. inner\n  2. next\n\n\
         See [the place](https://a.test/x?a=1&b=2), here.\n\n```\nfn main() {\n    run();\n}\n```\n\n\
         ![a cat](https://a.test/dir/c.png)"
    );
    assert!(!page.is_cut);
}

#[test]
fn a_table_stays_readable() {
    let table = "<table><tr><th>Name</th><th>Age</th></tr><tr><td>Ann</td><td>7</td></tr>\
        <tr><td>B|b<td>8</table><p>after";
    assert_eq!(
        text(table),
        "| Name | Age |\n| --- | --- |\n| Ann | 7 |\n| B\\|b | 8\n\nafter"
    );
}

#[test]
fn what_a_reader_does_not_see_is_left_out() {
    for hidden in [
        "<div hidden>ignore all <b>previous</b> words</div>",
        "<div style='DISPLAY : none'>x<div>y</div>ignore</div>",
        "<span aria-hidden=true>ignore</span>",
        "<p style=visibility:hidden>ignore<p>",
        "<template><p>ignore</template>",
        "<svg><title>ignore</title><text>ignore</text></svg>",
        "<noembed><p>ignore</noembed>",
        "<textarea><p>ignore</textarea>",
        "<!-- ignore -->",
        "<select><option>ignore</select>",
        "<iframe src=x>ignore</iframe>",
    ] {
        let read = text(&format!("<p>before</p>{hidden}<p>after</p>"));
        assert_eq!(read, "before\n\nafter", "{hidden}");
    }
    assert_eq!(text("a\u{200b}b\u{202e}c\u{e0041}d\u{7}"), "abcd");
}

#[test]
fn links_lead_to_the_web_or_nowhere() {
    assert_eq!(text("<a href='javascript:x()'>go</a>"), "go");
    assert_eq!(text("<a href='data:text/html,x'>go</a>"), "go");
    let long = format!("<a href='/{}'>go</a>", "x".repeat(1000));
    assert_eq!(text(&long), "go");
    assert_eq!(
        text("<a href='/1'>one<a href='/2'>two"),
        "[one](https://a.test/1)[two](https://a.test/2)"
    );
}

#[test]
fn the_main_part_is_enough_where_there_is_one() {
    let words = "word ".repeat(50);
    let page = format!("<nav>menu</nav><main><h1>T</h1><p>{words}</p></main><footer>foot</footer>");
    let read = text(&page);
    assert!(read.starts_with("# T\n\nword") && !read.contains("menu") && !read.contains("foot"));
    assert_eq!(
        text("<nav>menu</nav><main></main><p>words"),
        "menu\n\nwords"
    );
    let open = format!("<nav>menu</nav><article>{words}");
    assert!(text(&open).starts_with("word"));
}

#[test]
fn nothing_is_too_deep_or_too_broken() {
    let deep = format!(
        "{}x{}",
        "<div><ul><li><table><tr><td>".repeat(20_000),
        "</div>".repeat(50_000)
    );
    assert!(text(&deep).contains('x'));
    for broken in [
        "<",
        "<a",
        "<a href=",
        "<!--",
        "</",
        "&#xffffffff;",
        "<script>",
        "<a href='",
        "&",
        "\0<\0>",
    ] {
        let _ = text(broken);
    }
    assert_eq!(text("</div></ul></table></pre></a></main>x"), "x");
}

#[test]
fn a_page_of_nothing_but_attributes_ends_in_time() {
    let mut page = String::from("before<a ");
    for number in 0..400_000 {
        page.push_str(&format!("a{number} "));
    }
    page.push_str(">after");
    let base = Url::parse("https://a.test/").unwrap();
    let read = readable_within(&page, &base, Duration::from_millis(200));
    assert!(read.is_cut && read.text == "before", "{read:?}");
}

#[test]
fn text_ends_at_its_bound() {
    let page = "<p>some words of a page</p>".repeat(100_000);
    let read = read(&page);
    assert!(read.is_cut && read.text.len() <= crate::web::markup::MOST_TEXT);
}

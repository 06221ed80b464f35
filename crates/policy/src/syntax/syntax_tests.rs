use super::*;

fn stages(text: &str) -> usize {
    parse(text)
        .unwrap()
        .pipelines
        .iter()
        .map(|pipeline| pipeline.stages.len())
        .sum()
}

#[test]
fn lists_and_pipelines_are_taken_apart() {
    assert_eq!(stages("a && b | c; d & e\nf"), 6);
    assert_eq!(stages("# only a comment"), 0);
    assert_eq!(stages("a # b; c"), 1);
    assert_eq!(stages("a 'b; c' \"d | e\" f\\;g"), 1);
}

#[test]
fn everything_bash_calls_a_command_is_read() {
    for text in [
        "if a; then b; elif c; then d; else e; fi",
        "while read -r x; do echo $x; done < file",
        "for i in 1 2 3; do echo $i; done",
        "for ((i=0; i<3; i++)); do echo $i; done",
        "case $x in a|b) echo 1;; *) echo 2; esac",
        "f() { echo hi; }; f",
        "function g { echo; }",
        "[[ $a == b* && -f x ]] && echo yes",
        "(( x + 1 ))",
        "((a) | b)",
        "a=(1 2 3); echo ${a[@]}",
        "cat <<EOF | grep x\nhello $x\nEOF\necho done",
        "cat <<-'E'\n\tx\n\tE\n",
        "echo ${x:-y} ${x/a/b} ${#x} ${x:1:2} ${x##*/} ${x^^}",
        "diff <(a) <(b)",
        "echo $((1+2)) $[3]",
        "time ls",
        "coproc cat",
        "echo `echo \\`date\\``",
        "{fd}>out echo x",
        "x=<(true)",
        "r\\\nm x",
        "select x in a b; do echo $x; done",
        "a |& b",
        "echo a >&2 2>&1 &>x",
        "! grep x y",
    ] {
        assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
    }
}

#[test]
fn what_bash_refuses_is_a_doubt() {
    for text in [
        "echo 'a",
        "echo \"a",
        "echo $(a",
        "a | ",
        "if a; then b",
        "(a",
        "a )",
        "echo `a",
        "for in; do",
        "case x in",
        "a &&",
        "{ a",
        "x=(a",
        "echo ${x",
    ] {
        assert!(parse(text).is_err(), "{text} was read");
    }
}

#[test]
fn depth_is_bounded() {
    for open in ["$(", "(", "{ ", "\"$(", "${x:-", "$((", "<(", "if "] {
        assert!(parse(&open.repeat(10_000)).is_err());
    }
}

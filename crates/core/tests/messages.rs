//! Typed messages: they read back as they were written, and nothing else is let in.

use baton_core::id::Position;
use baton_core::messages::{
    AssignmentType, Budget, CompleteType, Cost, ExitClass, FailedType, Heartbeat, HeartbeatType,
    LINE_BYTES_MAX, Message, TYPES, Usd, Version, Why, WorkAssignment, WorkComplete, WorkFailed,
    parse_line, to_line,
};
use baton_core::time::Span;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::world::START;

const TOKEN: Position = Position { epoch: 1, number: 42 };

fn cost() -> Cost {
    Cost { usd: Usd::new(0.25), input_tokens: Some(1_000), output_tokens: None }
}

fn samples() -> [Message; 4] {
    let task = "t1".to_owned();
    [
        Message::WorkAssignment(Box::new(WorkAssignment {
            kind: AssignmentType::Is,
            version: Version,
            task: task.clone(),
            attempt: 2,
            token: TOKEN,
            title: "a \"title\"\n\u{202e}".to_owned(),
            body: Some("body".to_owned()),
            paths: vec!["src/*.rs".to_owned()],
            feedback: vec![json!({ "by": "bob", "text": "no" })],
            handoffs: vec![json!({ "state": "half" })],
            budget: Some(Budget { usd: Usd::new(5.0), time: Some(Span::hours(1)) }),
            deadline: Some(START),
        })),
        Message::Heartbeat(Heartbeat {
            kind: HeartbeatType::Is,
            version: Version,
            task: task.clone(),
            attempt: 2,
            token: TOKEN,
            progress: Some("half".to_owned()),
            cost: Some(cost()),
        }),
        Message::WorkComplete(WorkComplete {
            kind: CompleteType::Is,
            version: Version,
            task: task.clone(),
            attempt: 2,
            token: TOKEN,
            report_done: "all of it".to_owned(),
            report_not_done: "nothing".to_owned(),
            result: Some(json!({ "ok": true })),
            commit: Some("abc".to_owned()),
            cost: None,
        }),
        Message::WorkFailed(WorkFailed {
            kind: FailedType::Is,
            version: Version,
            task,
            attempt: 2,
            token: TOKEN,
            exit: ExitClass::RateLimited,
            why: "429".to_owned(),
            retry_at: Some(START),
            cost: Some(cost()),
        }),
    ]
}

#[test]
fn every_message_reads_back_as_it_was_written() {
    for (message, kind) in samples().iter().zip(TYPES) {
        let line = to_line(message).unwrap();
        assert_eq!(line.matches('\n').count(), 1, "one line: {line}");
        let document: Json = serde_json::from_str(&line).unwrap();
        assert_eq!((&document["type"], &document["version"]), (&json!(kind), &json!(1)));
        assert_eq!(parse_line(1, line.trim_end().as_bytes()).unwrap(), *message);
    }
}

#[test]
fn lesson_22_only_a_failure_is_an_attempt() {
    for (class, name, counts) in [
        (ExitClass::Finished, "finished", false),
        (ExitClass::Failed, "failed", true),
        (ExitClass::RateLimited, "rate_limited", false),
        (ExitClass::Auth, "auth", false),
        (ExitClass::Killed, "killed", false),
    ] {
        assert_eq!(serde_json::to_value(class).unwrap(), name);
        assert_eq!(class.counts_as_attempt(), counts, "{name}");
    }
}

const BEAT: &str = r#"{"type":"Heartbeat","version":1,"task":"t1","attempt":1,"token":"1.2"}"#;

#[test]
fn anything_else_is_refused_with_its_line_and_column() {
    parse_line(1, BEAT.as_bytes()).unwrap();
    let with = |from: &str, to: &str| BEAT.replacen(from, to, 1);
    for (line, column, why) in [
        (String::new(), 1, "it is empty"),
        ("  ".to_owned(), 1, "it is empty"),
        ("hello".to_owned(), 1, "expected value"),
        ("[]".to_owned(), 2, "invalid length 0"),
        ("{}".to_owned(), 2, "missing field `type`"),
        (format!("{BEAT}{BEAT}"), BEAT.len() + 1, "trailing characters"),
        (BEAT[..20].to_owned(), 20, "EOF"),
        (with("Heartbeat", "Moo"), 9, "there is no message type \"Moo\""),
        (with(":1,", ":2,"), 21, "version 2 of Heartbeat is not understood"),
        (with("\"version\":1,", ""), 58, "missing field `version`"),
        (with("\"t1\"", "7"), 40, "expected a string"),
        (with("\"1.2\"", "\"x\""), 68, "is not a token"),
        (with("}", ",\"extra\":1}"), 77, "unknown field `extra`"),
        (with("}", ",\"task\":\"t2\"}"), 76, "duplicate field `task`"),
        (with("}", ",\"cost\":{\"usd\":-1}}"), 87, "not below zero"),
        (with("}", ",\"cost\":{\"eur\":1}}"), 83, "unknown field `eur`"),
        (with(",", ",\n,"), 22, "key must be a string"),
    ] {
        let bad = parse_line(7, line.as_bytes()).unwrap_err();
        assert_eq!((bad.line, bad.column), (7, column), "{line} {bad}");
        assert!(bad.to_string().contains(why), "{line}: {bad}");
    }
    let newer = serde_json::from_str::<Heartbeat>(&with(":1,", ":2,"));
    assert!(newer.is_err(), "also where a message is read without its line");
    let bad = parse_line(7, b"{\"type\":\"\xff\"}").unwrap_err();
    assert_eq!((bad.column, bad.why), (10, Why::NotUtf8));
    let long = vec![b' '; LINE_BYTES_MAX + 1];
    assert_eq!(parse_line(7, &long).unwrap_err().why, Why::TooLong);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_makes_the_reader_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_line(1, &line);
    }

    /// A good line with something cut out, put in or changed is understood or refused, and what
    /// is understood can be written again.
    #[test]
    fn no_damage_makes_the_reader_panic(
        which in 0..4_usize,
        at in 0.0..1.0_f64,
        cut in 0..9_usize,
        put in ".{0,6}",
    ) {
        let mut line = to_line(&samples()[which]).unwrap();
        let from = (0..=line.len()).rev().find(|place| {
            line.is_char_boundary(*place) && *place as f64 <= at * line.len() as f64
        });
        let from = from.unwrap_or(0);
        let to = (from..=line.len()).find(|place| {
            line.is_char_boundary(*place) && *place >= from + cut
        });
        line.replace_range(from..to.unwrap_or(line.len()), &put);
        match parse_line(3, line.as_bytes()) {
            Ok(message) => {
                let again = to_line(&message).unwrap();
                prop_assert_eq!(parse_line(3, again.trim_end().as_bytes()).unwrap(), message);
            }
            Err(bad) => {
                prop_assert_eq!(bad.line, 3);
                prop_assert!((1..=line.len() + 1).contains(&bad.column), "{}", bad);
            }
        }
    }
}

//! What came of a call, on its way to the client.
//!
//! Owns the shape of answers. Some clients show their model only the text of an answer, others only
//! the structured part: every word stands in both. A refusal is an answer that says so (`isError`).

use rmcp::model::{CallToolResult, ContentBlock};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::floor::Served;
use super::steps;
use crate::words::{NO_ANSWER, Problem};

/// A larger document is left out of the structured answer: its words say what matters, and a model
/// would read all of it.
const DOCUMENT_BYTES_MAX: usize = 4_000;
/// A longer sentence of a refusal is cut here.
const SENTENCE_BYTES_MAX: usize = 2_000;

/// What is told of a call; also how it travels out of a sandbox's broker.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) text: String,
    pub(super) replies: Vec<Value>,
    pub(super) refused: Option<Refused>,
    /// The last command said that it did not come to a good end.
    pub(super) bad: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refused {
    label: String,
    code: String,
    pub(super) message: String,
    pub(super) next: String,
    details: Value,
}

impl Refused {
    pub(super) fn is_no_answer(&self) -> bool {
        self.label == NO_ANSWER
    }
}

/// A refusal may quote what was given, and a model knows that already.
pub(super) fn cut(text: &str) -> String {
    match text.len() <= SENTENCE_BYTES_MAX {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(SENTENCE_BYTES_MAX)]),
    }
}

impl From<Problem> for Told {
    fn from(problem: Problem) -> Self {
        let large = problem.details.to_string().len() > DOCUMENT_BYTES_MAX;
        let refused = Refused {
            label: problem.label().to_owned(),
            next: cut(&steps::next(&problem)),
            code: problem.code.to_owned(),
            message: cut(&problem.message),
            details: if large { json!({}) } else { problem.details },
        };
        Self { refused: Some(refused), ..Self::default() }
    }
}

impl From<Served> for Told {
    fn from(served: Served) -> Self {
        let Served { said, problem, bad } = served;
        let told = problem.map_or_else(Self::default, Self::from);
        Self { text: said.text, replies: said.replies, bad, ..told }
    }
}

impl Told {
    /// What the next step of the same call said.
    pub(super) fn go_on(&mut self, next: Self) {
        self.text.push_str(&next.text);
        self.replies.extend(next.replies);
        (self.refused, self.bad) = (next.refused, next.bad);
    }

    pub(super) fn result(self, must_succeed: bool) -> CallToolResult {
        let mut text = steps::text(&self.text);
        let mut document = Map::new();
        let mut replies = self.replies;
        let replies = match replies.len() {
            0 => None,
            1 => replies.pop(),
            _ => Some(Value::Array(replies)),
        };
        if let Some(replies) = replies.filter(|value| value.to_string().len() <= DOCUMENT_BYTES_MAX)
        {
            document.insert("reply".into(), replies);
        }
        let is_error = self.refused.is_some() || self.bad && must_succeed;
        if let Some(Refused { label, code, message, next, details }) = self.refused {
            text.push_str(&format!("{label}: {message}\nnext: {next}\n"));
            document.insert("code".into(), code.into());
            document.insert("message".into(), message.into());
            document.insert("next".into(), next.into());
            document.insert("details".into(), details);
        }
        let text = text.trim_end();
        document.insert("text".into(), text.into());
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = Some(document.into());
        result.is_error = Some(is_error);
        result
    }
}

/// A call that came to no answer.
pub(super) fn defect(what: &str) -> Problem {
    Problem {
        exit: 4,
        code: "defect",
        message: format!("the call could not be served: {what}"),
        next: "baton doctor, and report this line with what it prints".to_owned(),
        details: json!({}),
    }
}

//! The rules of a project, as people write them in `.baton/rules.md`, and who has been told which.
//!
//! Owns the format: a numbered list, each rule with a line that says what enforces it. Refuses to
//! know where the text comes from and whether an enforcement is really on: the engine looks.
//! Invariant: what cannot be read is answered with a line and a reason, and takes no other rule
//! with it: those reach everybody all the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::event::Event;
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::sessions::{Active, Session};
use crate::time::Moment;
use crate::view::{View, get};

/// Where they are, from the root of a tree.
pub const FILE: &str = ".baton/rules.md";
pub const FILE_BYTES_MAX: usize = 64 * 1024;
pub const RULES_MAX: usize = 50;
/// What an agent reads of them must stay short.
pub const RULE_BYTES_MAX: usize = 2_000;
/// So much of the hash of the text names a version of it.
const VERSION_DIGITS: usize = 12;
const MARK: &str = "enforced by:";

/// Something that holds a rule up, whatever an agent thinks of it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Enforcer {
    /// Edits of agents' tools are judged.
    EditDoor,
    /// Lines of agents' shells are judged.
    ShellDoor,
    /// Commits are judged.
    GitDoor,
    /// A session begins with what is known.
    StartHook,
    /// What is known of the work is saved at compaction and at the end.
    Checkpoints,
    /// `task done` asks for proof.
    Done,
    /// `land` runs checks before anything is in the target.
    Landing,
    /// `deploy` refuses what must not ship.
    Deploy,
    /// Paths with a policy of their own.
    Zones,
    /// Sessions that may do only their part.
    Roles,
}

impl Enforcer {
    pub const ALL: [Self; 10] = [
        Self::EditDoor,
        Self::ShellDoor,
        Self::GitDoor,
        Self::StartHook,
        Self::Checkpoints,
        Self::Done,
        Self::Landing,
        Self::Deploy,
        Self::Zones,
        Self::Roles,
    ];

    /// As it is called in a rule.
    pub fn name(self) -> &'static str {
        match self {
            Self::EditDoor => "the edit door",
            Self::ShellDoor => "the shell door",
            Self::GitDoor => "the git door",
            Self::StartHook => "the start hook",
            Self::Checkpoints => "checkpoints",
            Self::Done => "`baton task done`",
            Self::Landing => "`baton land`",
            Self::Deploy => "`baton deploy`",
            Self::Zones => "zones",
            Self::Roles => "roles",
        }
    }

    fn is_named_in(self, words: &[String]) -> bool {
        let has = |word: &str| words.iter().any(|one| one == word);
        let after = |first: &str, second: &str| {
            words.windows(2).any(|pair| pair[0] == first && pair[1] == second)
        };
        let door = has("door") || has("doors");
        match self {
            Self::EditDoor => door && has("edit"),
            Self::ShellDoor => door && has("shell"),
            Self::GitDoor => door && has("git"),
            Self::StartHook => after("start", "hook"),
            Self::Checkpoints => has("checkpoint") || has("checkpoints"),
            Self::Done => after("task", "done"),
            Self::Landing => after("baton", "land") || has("landing"),
            Self::Deploy => after("baton", "deploy"),
            Self::Zones => has("zone") || has("zones"),
            Self::Roles => has("role") || has("roles"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    pub number: u32,
    /// What it says in one sentence.
    pub title: String,
    /// The rest of it.
    pub text: String,
    /// What stands after "Enforced by:", as it was written.
    pub enforcement: String,
    pub enforced_by: Vec<Enforcer>,
    /// Where nothing of that is on, it is advice; and the rule says so.
    pub advice: bool,
    /// Where it begins in the file.
    pub line: usize,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    pub rules: Vec<Rule>,
    /// Numbers that wait for a rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub free: Vec<u32>,
    /// Why some of it cannot be read, and where that begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<Broken>,
}

/// Why a file, or a rule in it, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Broken {
    pub line: usize,
    pub why: String,
}

/// Which text it is: the same words have the same version wherever they are committed.
pub fn version(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..VERSION_DIGITS].to_owned()
}

/// One numbered item: its number, where it begins, its lines.
struct Item {
    number: u32,
    line: usize,
    lines: Vec<(usize, String)>,
}

/// Reads what can be read.
pub fn parse(text: &str) -> Rules {
    let whole = |why: String| Rules { broken: Some(Broken { line: 1, why }), ..Rules::default() };
    if text.len() > FILE_BYTES_MAX {
        return whole(format!("the file is larger than the {FILE_BYTES_MAX} bytes rules may have"));
    }
    let (items, mut faults) = items(text);
    if items.is_empty() && faults.is_empty() {
        let why = "there is no rule: a rule begins with its number, as in `1. **Claim first.**`";
        return whole(why.to_owned());
    }
    let mut rules = Rules::default();
    for item in &items {
        match read(item) {
            Ok(Some(rule)) => rules.rules.push(rule),
            Ok(None) => rules.free.push(item.number),
            Err(broken) => faults.push(broken),
        }
    }
    if rules.rules.len() > RULES_MAX {
        let line = rules.rules[RULES_MAX].line;
        faults.push(Broken { line, why: format!("more than {RULES_MAX} rules") });
        rules.rules.truncate(RULES_MAX);
    }
    rules.broken = faults.into_iter().min_by_key(|broken| broken.line);
    rules
}

/// An item goes on with indented lines, and with plain ones until an empty line.
fn items(text: &str) -> (Vec<Item>, Vec<Broken>) {
    let (mut items, mut faults): (Vec<Item>, Vec<Broken>) = (Vec::new(), Vec::new());
    let (mut open, mut fenced) = (false, false);
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let begins = if fenced { None } else { numbered(line) };
        if let Some((number, rest)) = begins {
            let Some(number) = number else {
                let why = "the number of a rule is 1 to 9999".to_owned();
                faults.push(Broken { line: at, why });
                continue;
            };
            let expected = items.last().map_or(1, |last| last.number + 1);
            if number != expected {
                let why = format!("rule {number} stands where rule {expected} should");
                faults.push(Broken { line: at, why });
            }
            items.push(Item { number, line: at, lines: vec![(at, rest.trim().to_owned())] });
            open = true;
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        match items.last_mut() {
            _ if line.trim().is_empty() => open = false,
            Some(item) if indented || open => item.lines.push((at, line.trim().to_owned())),
            _ => {}
        }
    }
    (items, faults)
}

/// `12. text`, at the beginning of a line. A number that is too large is none.
fn numbered(line: &str) -> Option<(Option<u32>, &str)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?.strip_prefix('.')?;
    if digits == 0 || !(rest.is_empty() || rest.starts_with(' ')) {
        return None;
    }
    let number = line[..digits].parse().ok().filter(|number| (1..10_000).contains(number));
    Some((number, rest))
}

fn read(item: &Item) -> Result<Option<Rule>, Broken> {
    let wrong =
        |line, why: String| Err(Broken { line, why: format!("rule {}: {why}", item.number) });
    let marked = |(_, line): &(usize, String)| line.to_lowercase().starts_with(MARK);
    let mark = item.lines.iter().position(marked);
    let (said, rest) = item.lines.split_at(mark.unwrap_or(item.lines.len()));
    let join = |lines: &[(usize, String)]| {
        let lines: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
        lines.join(" ").trim().to_owned()
    };
    let said = join(said);
    let words = said.trim_matches(|c: char| c.is_whitespace() || "*_()".contains(c));
    if rest.is_empty() && (words.is_empty() || words == "yours") {
        return Ok(None);
    }
    if words.is_empty() {
        return wrong(item.line, "it says nothing".to_owned());
    }
    if said.len() > RULE_BYTES_MAX {
        return wrong(item.line, format!("it has more than {RULE_BYTES_MAX} bytes"));
    }
    let Some((line, _)) = rest.first() else {
        let why = "no line \"Enforced by: …\"; where nothing enforces it, write \"advice\"";
        return wrong(item.line, why.to_owned());
    };
    let enforcement = join(rest);
    let enforcement = enforcement.get(MARK.len()..).unwrap_or_default().trim().to_owned();
    let words = spoken(&enforcement);
    let enforced_by: Vec<Enforcer> =
        Enforcer::ALL.into_iter().filter(|one| one.is_named_in(&words)).collect();
    let advice = words.iter().any(|word| word == "advice");
    if enforced_by.is_empty() && !advice {
        let known: Vec<&str> = Enforcer::ALL.into_iter().map(Enforcer::name).collect();
        let why = format!("nothing that Baton knows enforces it; there are {}", known.join(", "));
        return wrong(*line, format!("{why}, or advice"));
    }
    let (title, text) = title_of(&said);
    let (number, line) = (item.number, item.line);
    Ok(Some(Rule { number, title, text, enforcement, enforced_by, advice, line }))
}

fn spoken(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// What is set in bold at the beginning, else the first sentence.
fn title_of(said: &str) -> (String, String) {
    let bold = said.strip_prefix("**").and_then(|rest| rest.split_once("**"));
    let (title, text) = match bold {
        Some(parts) => parts,
        None => match said.find(". ") {
            Some(end) => said.split_at(end + 1),
            None => (said, ""),
        },
    };
    (title.trim().trim_end_matches('.').to_owned(), text.trim().to_owned())
}

/// Which rules a session was shown, last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    pub version: String,
    pub at: Moment,
}

/// A session begins, or its context was emptied: it is told the rules, and that is written down
/// unless it was before. The sign of life and its news are part of the same decision; news for
/// which there is no room waits for its next act.
pub fn told(
    view: &dyn View,
    version: Option<&str>,
    news_max: usize,
    context: &Context,
) -> Result<(Vec<Event>, Active), Refusal> {
    let mut caller = Caller::read(view, context)?;
    caller.notices.truncate(news_max);
    let mut events = caller.activity(context, &[]);
    let active = Active { notices: caller.notices };
    let (Some(version), Some(id)) = (version, &context.actor.session) else {
        return Ok((events, active));
    };
    let known = get::<Session>(view, id.as_str())?.and_then(|session| session.rules);
    if known.is_none_or(|seen| seen.version != version) {
        let seen = Seen { version: version.to_owned(), at: context.now };
        events.push(Event::RulesSeen { session: id.clone(), seen });
    }
    Ok((events, active))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\
# Rules

For all.

1. **Say what is so.** Also what failed.
   Enforced by: advice.
2. Claim first. One writer at
   a time.
   enforced by: the edit, shell
   and git doors; else advice.

3. *(yours)*
4.

That is all.
";

    #[test]
    fn a_list_is_read_with_what_enforces_each() {
        let rules = parse(TWO);
        let [one, two] = rules.rules.as_slice() else { panic!("{rules:?}") };
        assert_eq!(
            (one.title.as_str(), one.text.as_str()),
            ("Say what is so", "Also what failed.")
        );
        assert!(one.advice && one.enforced_by.is_empty() && one.line == 5);
        assert_eq!(
            (two.title.as_str(), two.text.as_str()),
            ("Claim first", "One writer at a time.")
        );
        let doors = [Enforcer::EditDoor, Enforcer::ShellDoor, Enforcer::GitDoor];
        assert!(two.enforced_by == doors && two.advice);
        assert_eq!(rules.free, [3, 4]);
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_line() {
        let complaint = |text: &str| parse(text).broken.unwrap().to_string();
        for (text, said) in [
            ("", "line 1: there is no rule"),
            ("# Rules\n\n- a\n", "line 1: there is no rule"),
            ("1. a\n", "line 1: rule 1: no line \"Enforced by: …\""),
            ("x\n1. a\n   Enforced by: hope\n", "line 3: rule 1: nothing that Baton knows"),
            (
                "x\n1. a\n   Enforced by: advice\n3. b\n",
                "line 4: rule 3 stands where rule 2 should",
            ),
            ("1. a\n   Enforced by: advice\n1. b\n", "line 3: rule 1 stands where rule 2 should"),
            ("99999999999. a\n", "line 1: the number of a rule"),
            ("1. ()\n   Enforced by: advice\n", "line 1: rule 1: it says nothing"),
        ] {
            assert!(complaint(text).starts_with(said), "{text:?}: {}", complaint(text));
        }
        let long = format!("1. {}\n   Enforced by: advice\n", "x".repeat(RULE_BYTES_MAX + 1));
        assert!(complaint(&long).contains("more than 2000 bytes"));
        assert!(complaint(&"x".repeat(FILE_BYTES_MAX + 1)).contains("larger than"));
    }

    #[test]
    fn numbers_in_examples_and_in_text_are_no_rules() {
        let text = "1. a\n   Enforced by: advice\n\n```\n1. no\n```\n   2. a list within\n2x. no\n";
        assert_eq!(parse(text).rules.len(), 1);
    }

    #[test]
    fn the_same_words_are_the_same_version() {
        assert_eq!(version(TWO), version(TWO));
        assert_ne!(version(TWO), version("other"));
        assert_eq!(version("").len(), VERSION_DIGITS);
    }
}

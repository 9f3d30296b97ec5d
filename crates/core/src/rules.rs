//! The rules of a project, as people write them in `.baton/rules.md`, and who has been told which.
//!
//! Owns the format: a numbered list, each rule with a line that says what enforces it. Refuses to
//! know where the text comes from and whether an enforcement is really on: the engine looks.
//! Invariant: a numbered rule with words reaches everybody, however its other lines look; each line
//! that is not as it should be is answered with its number and what is expected.

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
/// What a rule says that nothing enforces but its reader.
const ADVICE: &str = "advice";

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
    /// Where nothing of that is on, it is advice: the rule says so, or names nothing that is known.
    pub advice: bool,
    /// Where it begins in the file.
    pub line: usize,
}

impl Rule {
    /// It is advice only because what it names is nothing that Baton knows.
    pub fn names_nothing_known(&self) -> bool {
        self.enforced_by.is_empty() && !says_advice(&spoken(&self.enforcement))
    }
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    pub rules: Vec<Rule>,
    /// Numbers that wait for a rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub free: Vec<u32>,
    /// Every line that is not as it should be, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// A line of the file that is not as it should be, and what is expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Fault {
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

/// Reads every rule there is, and what is wrong with its lines.
pub fn parse(text: &str) -> Rules {
    let whole = |why: String| Rules { faults: vec![Fault { line: 1, why }], ..Rules::default() };
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
        let (read, wrong) = read(item);
        faults.extend(wrong);
        match read {
            Read::Rule(rule) => rules.rules.push(rule),
            Read::Free => rules.free.push(item.number),
            Read::Nothing => {}
        }
    }
    if rules.rules.len() > RULES_MAX {
        let line = rules.rules[RULES_MAX].line;
        // Whoever puts that right looks again: what is wrong below it can wait.
        faults.retain(|fault| fault.line < line);
        let why = format!("more than {RULES_MAX} rules: nobody is told those from here on");
        faults.push(Fault { line, why });
        rules.rules.truncate(RULES_MAX);
    }
    faults.sort_by_key(|fault| fault.line);
    rules.faults = faults;
    rules
}

/// An item goes on with indented lines, and with plain ones until an empty line.
fn items(text: &str) -> (Vec<Item>, Vec<Fault>) {
    let (mut items, mut faults): (Vec<Item>, Vec<Fault>) = (Vec::new(), Vec::new());
    let (mut open, mut fence) = (false, None);
    for (at, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if line.trim_start().starts_with("```") {
            fence = if fence.is_some() { None } else { Some(at) };
        }
        let begins = if fence.is_some() { None } else { numbered(line) };
        if let Some((number, rest)) = begins {
            let expected = items.last().map_or(1, |last| last.number + 1);
            let why = match number {
                None => Some(format!("the number of a rule is 1 to 9999; told as rule {expected}")),
                Some(number) if number != expected => {
                    Some(format!("rule {number} stands where rule {expected} should"))
                }
                Some(_) => None,
            };
            faults.extend(why.map(|why| Fault { line: at, why }));
            let number = number.unwrap_or(expected);
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
    let why = "an example begins here and nothing ends it: a line with ``` is missing";
    faults.extend(fence.map(|line| Fault { line, why: why.to_owned() }));
    (items, faults)
}

/// `12. text`, at the beginning of a line or behind one space, which aligns 9 with 10; deeper are
/// lists within a rule. A number that is too large is none.
fn numbered(line: &str) -> Option<(Option<u32>, &str)> {
    let line = line.strip_prefix(' ').unwrap_or(line);
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?.strip_prefix(['.', ')'])?;
    if digits == 0 || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let number = line[..digits].parse().ok().filter(|number| (1..10_000).contains(number));
    Some((number, rest))
}

/// What an item is.
enum Read {
    Rule(Rule),
    /// Its number waits for a rule.
    Free,
    /// There are no words in it that could be told.
    Nothing,
}

/// The item, and what is wrong with its lines.
fn read(item: &Item) -> (Read, Vec<Fault>) {
    let fault = |line, why: String| Fault { line, why: format!("rule {}: {why}", item.number) };
    let (said, rest) = item.lines.split_at(enforcement_at(&item.lines));
    let mut said = joined(said);
    let words = said.trim_matches(|c: char| c.is_whitespace() || "*_()".contains(c));
    if rest.is_empty() && (words.is_empty() || words == "yours") {
        return (Read::Free, Vec::new());
    }
    if words.is_empty() {
        return (Read::Nothing, vec![fault(item.line, "it says nothing".to_owned())]);
    }
    let mut faults = Vec::new();
    if said.len() > RULE_BYTES_MAX {
        let why = format!("it has more than {RULE_BYTES_MAX} bytes; the rest is not told");
        faults.push(fault(item.line, why));
        said.truncate(said.floor_char_boundary(RULE_BYTES_MAX));
    }
    let enforcement = joined(rest);
    let enforcement = named_in(&enforcement).unwrap_or(&enforcement).to_owned();
    let words = spoken(&enforcement);
    let enforced_by: Vec<Enforcer> =
        Enforcer::ALL.into_iter().filter(|one| one.is_named_in(&words)).collect();
    let (title, text) = title_of(&said);
    let (number, line, advice) = (item.number, item.line, says_advice(&words));
    let mut rule = Rule { number, title, text, enforcement, enforced_by, advice, line };
    if rule.names_nothing_known() {
        rule.advice = true;
        faults.push(match rest.first() {
            Some((line, _)) => {
                fault(*line, format!("nothing Baton knows enforces it: {}", known()))
            }
            None => fault(item.line, format!("no line \"Enforced by: …\" below it: {}", known())),
        });
    }
    (Read::Rule(rule), faults)
}

/// What counts meanwhile, and what the line can say instead.
fn known() -> String {
    let known: Vec<&str> = Enforcer::ALL.into_iter().map(Enforcer::name).collect();
    format!("it counts as advice; expected is that word, or {}", known.join(", "))
}

fn joined(lines: &[(usize, String)]) -> String {
    let lines: Vec<&str> = lines.iter().map(|(_, line)| line.as_str()).collect();
    lines.join(" ").trim().to_owned()
}

/// Where it begins: at "Enforced by:"; the word "advice", alone on the last line, does without.
fn enforcement_at(lines: &[(usize, String)]) -> usize {
    let alone = |(at, (_, line)): &(usize, &(usize, String))| *at > 0 && spoken(line) == [ADVICE];
    let marked = lines.iter().position(|(_, line)| named_in(line).is_some());
    let last = || lines.iter().enumerate().next_back().filter(alone).map(|(at, _)| at);
    marked.or_else(last).unwrap_or(lines.len())
}

/// What a line names after "Enforced by:", which may be in bold or an entry of a list.
fn named_in(line: &str) -> Option<&str> {
    let dressed = |c: char| c.is_whitespace() || "*_-".contains(c);
    let (mark, rest) = line.trim_start_matches(dressed).split_at_checked(MARK.len())?;
    mark.eq_ignore_ascii_case(MARK).then(|| rest.trim_matches(dressed))
}

fn says_advice(words: &[String]) -> bool {
    words.iter().any(|word| word == ADVICE)
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

    fn complaints(text: &str) -> Vec<String> {
        parse(text).faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_as_it_should_be_is_told_with_its_line() {
        for (text, said) in [
            ("", "line 1: there is no rule"),
            ("# Rules\n\n- a\n", "line 1: there is no rule"),
            ("1. a\n", "line 1: rule 1: no line \"Enforced by: …\""),
            ("x\n1. a\n   Enforced by: hope\n", "line 3: rule 1: nothing Baton knows"),
            (
                "x\n1. a\n   Enforced by: advice\n3. b\n   Advice.\n",
                "line 4: rule 3 stands where rule 2 should",
            ),
            ("1. a\n   Advice.\n1. b\n   Advice.\n", "line 3: rule 1 stands where rule 2 should"),
            ("99999999999. a\n   Advice.\n", "line 1: the number of a rule is 1 to 9999"),
            ("1. ()\n   Enforced by: advice\n", "line 1: rule 1: it says nothing"),
            ("1. a\n   Enforced by: zones\n```\n2. b\n", "line 3: an example begins here"),
        ] {
            let complaints = complaints(text);
            let [complaint] = complaints.as_slice() else { panic!("{text:?}: {complaints:?}") };
            assert!(complaint.starts_with(said), "{text:?}: {complaint}");
        }
        assert!(complaints(&"x".repeat(FILE_BYTES_MAX + 1))[0].contains("larger than"));
    }

    #[test]
    fn every_rule_with_words_is_told_and_every_faulty_line_is_named() {
        let long = "é".repeat(RULE_BYTES_MAX);
        let text = format!(
            "1. **Tabs.** Always.\n   Enforced by: CI.\n2. **Ask.** Always.\n10000. **Wide.**\n   \
             Enforced by: zones\n5. {long}\n   Advice.\n"
        );
        let rules = parse(&text);
        let told: Vec<(u32, &str, bool)> =
            rules.rules.iter().map(|one| (one.number, one.title.as_str(), one.advice)).collect();
        let cut = &long[..RULE_BYTES_MAX];
        assert_eq!(told, [(1, "Tabs", true), (2, "Ask", true), (3, "Wide", false), (5, cut, true)]);
        assert_eq!((rules.rules[0].enforcement.as_str(), rules.rules[0].line), ("CI.", 1));
        let lines: Vec<usize> = rules.faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [2, 3, 4, 6, 6], "{:?}", rules.faults);
        for fault in &rules.faults[..2] {
            assert!(fault.why.contains("it counts as advice; expected is"), "{fault}");
            assert!(fault.why.contains("the edit door") && fault.why.ends_with("roles"), "{fault}");
        }
        let many: String = (1..=60).map(|number| format!("{number}. a\n")).collect();
        let rules = parse(&many);
        assert_eq!((rules.rules.len(), rules.faults.len()), (RULES_MAX, RULES_MAX + 1));
        assert!(rules.faults[RULES_MAX].why.starts_with("more than 50 rules"));
    }

    #[test]
    fn a_line_may_be_dressed_up() {
        let text =
            " 1. a\n    **Enforced by:** zones\n2) b\n   _advice_\n3.\tc\n   - ENFORCED BY: x\n";
        let rules = parse(text);
        let named: Vec<&str> = rules.rules.iter().map(|one| one.enforcement.as_str()).collect();
        assert_eq!(named, ["zones", "_advice_", "x"]);
        assert_eq!(rules.rules[0].enforced_by, [Enforcer::Zones]);
        assert!(rules.rules[1].advice && rules.faults.len() == 1, "{rules:?}");
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

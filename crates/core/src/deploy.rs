//! The deploy as a record, and what the policy says about a target.
//!
//! Owns their shape, what counts as having reached the surface, and which commands of a shell are
//! deploys. Invariant: an outcome is `succeeded` only when the command ran to its end and what
//! verifies it through the public surface did too; a deployer that died leaves `unknown`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::context::{Context, Life};
use crate::id::{ClaimId, GateId, Token};
use crate::pattern::fold;
use crate::resource::Resource;
use crate::sessions::Process;
use crate::shell::Deeds;
use crate::time::{Moment, Span};
use crate::trust::Command;
use crate::view::{Index, Kind, Query, Record};
use crate::zones::Policy;

/// The deploys of a target, newest first.
pub const BY_TARGET: Index = "deploy.target";
/// All of them, newest first.
pub const ALL: Index = "deploy.all";
/// Those that have not said how they ended.
pub const OPEN: Index = "deploy.open";

pub const TARGETS_MAX: usize = 50;
pub const NAME_BYTES_MAX: usize = 64;
/// Commands, paths and placeholders of one target, each.
pub const LISTED_MAX: usize = 200;
pub const WORD_BYTES_MAX: usize = 200;
pub const TIMEOUT_DEFAULT: Span = Span::hours(1);
pub const TIMEOUT_MAX: Span = Span::hours(12);
/// How long a deployer that cannot be seen counts as being there without a sign of life.
pub const LEASE: Span = Span::seconds(60);
/// It shows this often that it is still there.
pub const RENEWED_EVERY: Span = Span::seconds(20);
/// What is looked for in shipped files when the policy says nothing else.
pub const PLACEHOLDERS: [&str; 3] = ["TODO", "TBD", "coming soon"];

/// Stands between the parts of an index value: no name of a target holds it.
const BETWEEN: char = '\u{1f}';
const BEYOND: char = ' ';

/// `[deploy.TARGET]` of the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    pub run: Vec<String>,
    /// Looks at the public surface; without it no deploy succeeds, it is unverified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    /// What is a deploy of this target when somebody types it in a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Vec<String>>,
    /// A person approves each commit before it ships.
    #[serde(default)]
    pub gate: bool,
    /// What ships; everything when nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Resource>,
    /// Words that must not ship.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placeholders: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// How long each of its commands may take.
    pub timeout: Span,
}

impl Rules {
    /// What it would let Baton run.
    pub fn commands_of(&self, target: &str) -> Vec<Command> {
        let mut all = vec![Command::new(format!("deploy {target} run"), &self.run)];
        if !self.verify.is_empty() {
            all.push(Command::new(format!("deploy {target} verify"), &self.verify));
        }
        all
    }

    /// Does this file ship?
    pub fn ships(&self, path: &str) -> bool {
        self.paths.is_empty()
            || Resource::literal(path)
                .is_ok_and(|path| self.paths.iter().any(|one| one.overlaps(&path)))
    }
}

/// How a deploy came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It ran, and what verifies it passed.
    Succeeded,
    /// It ran, and nothing verifies it.
    Unverified,
    Failed,
    /// Its deployer died before it said anything.
    Unknown,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Unverified => "unverified",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// The command that ships has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shipped {
    pub at: Moment,
    pub exit: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    pub at: Moment,
    pub outcome: Outcome,
    /// How what verifies it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deploy {
    /// The journal position of its start.
    pub deploy: Token,
    pub target: String,
    pub commit: String,
    pub by: Holder,
    #[serde(default)]
    pub rollback: bool,
    /// What was live before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The gate that let it pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateId>,
    pub run: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    pub claim: ClaimId,
    /// The claim was taken for it and ends with it.
    #[serde(default)]
    pub claimed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    pub host: String,
    /// The checkout it ships from, on that host; gone when it has ended.
    pub folder: String,
    /// Where its output is kept, on that host.
    pub log: String,
    pub started_at: Moment,
    pub renewed_at: Moment,
    pub lease_until: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipped: Option<Shipped>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

impl Deploy {
    /// What whoever deploys holds.
    pub fn resource(target: &str) -> Resource {
        Resource::Name { name: format!("deploy/{target}"), amount: 1 }
    }

    /// Is its deployer still at it? A process that is seen decides; else the lease, which counts
    /// once more when the store failed over and renewals may have been lost.
    pub fn is_there(&self, context: &Context) -> bool {
        let lease = match context.failed_over_at {
            Some(at) if self.renewed_at < at => self.lease_until + LEASE,
            _ => self.lease_until,
        };
        match context.observed.runners.get(&self.deploy) {
            _ if self.end.is_some() => false,
            Some(Life::Dead) => false,
            Some(Life::Alive) => true,
            Some(Life::Unknown) | None => context.now < lease,
        }
    }

    /// Did the public surface get it? Also when what followed went wrong.
    pub fn reached(&self) -> bool {
        self.shipped.is_some_and(|shipped| shipped.exit == 0)
    }

    /// How it stands, in one word.
    pub fn state(&self) -> &'static str {
        self.end.map_or("running", |end| end.outcome.name())
    }
}

impl Record for Deploy {
    const KIND: Kind = "deploy";

    fn key(&self) -> String {
        self.deploy.to_string()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        let Token { epoch, number } = self.deploy;
        let newest_first = format!("{:010}{:020}", u32::MAX - epoch, u64::MAX - number);
        let target = fold(&self.target);
        let mut entries =
            vec![(BY_TARGET, format!("{target}{BETWEEN}{newest_first}")), (ALL, newest_first)];
        if self.end.is_none() {
            entries.push((OPEN, target));
        }
        entries
    }
}

/// The deploys of one target, newest first.
pub fn of_target(target: &str, limit: u32) -> Query {
    let target = fold(target);
    let (from, until) = (format!("{target}{BETWEEN}"), format!("{target}{BEYOND}"));
    Query::Scan { index: BY_TARGET, from, until, after: None, limit }
}

/// All deploys of an index.
pub fn all_of(index: Index, limit: u32) -> Query {
    let until = "\u{10ffff}".to_owned();
    Query::Scan { index, from: String::new(), until, after: None, limit }
}

/// Words before a command that only say how to run it.
const RUNNERS: [&str; 19] = [
    "bun", "bunx", "command", "dlx", "doas", "env", "exec", "nice", "nohup", "npm", "npx", "pnpm",
    "pnpx", "run", "sudo", "time", "x", "yarn", "--",
];

/// The target that a command typed in a shell would deploy, by `commands` of the policy. Whatever
/// stands between its words counts as options: rather one too many is caught than one too few.
pub fn guarded<'a>(policy: &'a Policy, argv: &[String]) -> Option<&'a str> {
    let before = |word: &&String| {
        RUNNERS.contains(&name_of(word)) || word.starts_with('-') || is_assignment(word)
    };
    let mut starts: Vec<&[String]> = Vec::new();
    let mut at = 0;
    while at < argv.len() {
        at += argv[at..].iter().take_while(before).count();
        starts.extend(argv.get(at..));
        // An option before the command may have a value of its own: what follows counts as well.
        if at == 0 || !argv[at - 1].starts_with('-') {
            break;
        }
        at += 1;
    }
    let meant = |words: &Vec<String>| starts.iter().any(|start| is_that(words, start));
    let found = policy.deploys.iter().find(|(_, rules)| rules.commands.iter().any(meant));
    found.map(|(target, _)| target.as_str())
}

/// The target that a line of a shell would deploy, whatever starts the command in it.
pub fn guarded_in<'a>(policy: &'a Policy, deeds: &Deeds) -> Option<&'a str> {
    deeds.commands.iter().find_map(|command| guarded(policy, &command.words()))
}

/// The program's name without its folder and version: `wrangler` of `/usr/bin/wrangler@4`.
fn name_of(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.split('@').next().filter(|name| !name.is_empty()).unwrap_or(name)
}

fn is_assignment(word: &str) -> bool {
    let plain = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| plain(name))
}

fn is_that(words: &[String], argv: &[String]) -> bool {
    let (Some((program, rest)), Some((typed, arguments))) =
        (words.split_first(), argv.split_first())
    else {
        return false;
    };
    let mut arguments = arguments.iter();
    let in_order = rest.iter().all(|word| arguments.any(|argument| argument == word));
    name_of(program) == name_of(typed) && in_order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    #[test]
    fn a_deploy_by_hand_is_known_by_its_words() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let target = |commands: &[&str]| Rules {
            commands: commands.iter().map(|one| words(one)).collect(),
            ..Rules::default()
        };
        let mut policy = Policy::default();
        policy.deploys.insert("edge".to_owned(), target(&["wrangler deploy", "wrangler publish"]));
        policy.deploys.insert("site".to_owned(), target(&["./ship.sh"]));
        for (typed, found) in [
            ("wrangler deploy", Some("edge")),
            ("wrangler publish --env prod", Some("edge")),
            ("wrangler --env prod deploy", Some("edge")),
            ("npx wrangler deploy", Some("edge")),
            ("npx --yes wrangler@4 deploy", Some("edge")),
            ("npm exec -- wrangler deploy", Some("edge")),
            ("npm --prefix web exec wrangler deploy", Some("edge")),
            ("sudo -u www /usr/local/bin/wrangler deploy", Some("edge")),
            ("env NODE_ENV=production wrangler deploy", Some("edge")),
            ("A=1 B=2 wrangler deploy", Some("edge")),
            ("/srv/site/ship.sh now", Some("site")),
            ("wrangler tail", None),
            ("wrangler", None),
            ("deploy wrangler", None),
            ("rg wrangler deploy", None),
            ("git commit -m wrangler", None),
            ("env", None),
        ] {
            assert_eq!(guarded(&policy, &words(typed)), found, "{typed}");
            assert_eq!(guarded_in(&policy, &shell::read(typed)), found, "{typed}");
        }
        for (line, found) in [
            ("cd web && npx wrangler deploy", Some("edge")),
            ("bash -lc 'npm ci; wrangler deploy --env prod'", Some("edge")),
            ("echo $(timeout 60 ./ship.sh)", Some("site")),
            ("V=deploy; wrangler $V", Some("edge")),
            ("if true; then './ship.sh'; fi", Some("site")),
            ("wrangler deploy 'unfinished", Some("edge")),
            ("echo 'x; wrangler deploy'", None),
            ("cat <<'EOF'\nwrangler deploy\nEOF", None),
        ] {
            assert_eq!(guarded_in(&policy, &shell::read(line)), found, "{line}");
        }
        assert_eq!(guarded(&policy, &[]), None);
        assert_eq!(guarded(&Policy::default(), &words("wrangler deploy")), None);
    }
}

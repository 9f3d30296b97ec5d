//! Roles as the clients' own agents: a file a role, in which forbidden tools are absent.
//!
//! Owns what such a file says to Claude Code and to opencode. The other clients have no definitions
//! of agents that were seen to work; there the doors alone hold a role. The name of the file is the
//! name by which the hook knows the role of a subagent.

use baton_core::id::SessionId;
use baton_core::roles::{Role, Rules, Tool};

use super::text::{self, HASHES};
use super::{Client, Content, Door, Ground, Piece};
use crate::config;

/// Agents of ours begin with this.
pub const PREFIX: &str = "baton-";
const CLAUDE: &str = ".claude/agents";
const OPENCODE: &str = ".opencode/agents";

/// What the project's own file says of roles; the built-in ones where it says nothing or is broken,
/// which whoever puts it in force is told.
pub fn here(ground: &Ground) -> Rules {
    let read = config::read(&ground.root).ok().flatten();
    let policy = read.and_then(|(path, text)| {
        config::compile(&path, &text, baton_core::time::Moment::default()).ok()
    });
    policy.unwrap_or_default().roles
}

pub(super) fn pieces(client: Client, rules: &Rules) -> Vec<Piece> {
    let roles = rules.all();
    let roles = roles.iter().filter(|(name, _)| is_file_name(name));
    roles.filter_map(|(name, role)| piece(client, name, role)).collect()
}

/// What is there of ours, whatever roles there are now.
pub(super) fn there(ground: &Ground) -> Vec<Piece> {
    let mut found = Vec::new();
    for (client, folder) in [(Client::Claude, CLAUDE), (Client::Opencode, OPENCODE)] {
        let Ok(entries) = std::fs::read_dir(ground.root.join(folder)) else { continue };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        for name in names.filter(|name| name.starts_with(PREFIX) && name.ends_with(".md")) {
            found.push(file(client, &format!("{folder}/{name}"), String::new()));
        }
    }
    found.sort_by(|one, two| one.path.cmp(&two.path));
    found
}

/// A role's name may hold what a file's name should not.
fn is_file_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

fn file(client: Client, path: &str, text: String) -> Piece {
    Piece::of(client, Door::Agents, path, Content::File { text, others_stay: true })
}

fn piece(client: Client, name: &str, role: &Role) -> Option<Piece> {
    let (folder, head) = match client {
        Client::Claude => (CLAUDE, claude(name, role)),
        Client::Opencode => (OPENCODE, opencode(role)),
        _ => return None,
    };
    let text = text::with_front_matter(HASHES, &format!("{head}---\n\n{}", words(name, role)));
    Some(file(client, &format!("{folder}/{PREFIX}{name}.md"), text))
}

/// One line of YAML, quoted: what a role is for is somebody's text.
fn description(role: &Role) -> String {
    let about = if role.about.is_empty() { "works in a role of this project" } else { &role.about };
    serde_json::to_string(about).unwrap_or_default()
}

fn claude(name: &str, role: &Role) -> String {
    let names = |tool: &Tool| match tool {
        Tool::Read => &["Read"][..],
        Tool::Search => &["Grep", "Glob"],
        Tool::Edit => &["Edit", "Write", "NotebookEdit"],
        Tool::Shell => &["Bash"],
        Tool::Web => &["WebFetch", "WebSearch"],
        Tool::Agents => &["Task"],
    };
    let tools: Vec<&str> = role.tools.iter().flat_map(names).copied().collect();
    let (description, tools) = (description(role), tools.join(", "));
    format!("name: {PREFIX}{name}\ndescription: {description}\ntools: {tools}\n")
}

fn opencode(role: &Role) -> String {
    let may = |tool: Tool| if role.tools.contains(&tool) { "allow" } else { "deny" };
    let rows = [
        ("edit", Tool::Edit),
        ("bash", Tool::Shell),
        ("webfetch", Tool::Web),
        ("task", Tool::Agents),
    ];
    let rows: String =
        rows.iter().map(|(name, tool)| format!("  {name}: {}\n", may(*tool))).collect();
    format!("description: {}\nmode: subagent\npermission:\n{rows}", description(role))
}

fn words(name: &str, role: &Role) -> String {
    let deeds = [("commit", role.commit), ("land", role.land), ("deploy", role.deploy)];
    let not: Vec<&str> = deeds.iter().filter(|(_, may)| !*may).map(|(deed, _)| *deed).collect();
    let not = match not.is_empty() {
        true => String::new(),
        false => format!(" You do not {}.", not.join(", ")),
    };
    let may = role.words(&SessionId("YOUR-SESSION".to_owned()));
    format!(
        "You work in the role `{name}`, which {may}.{not} Baton holds you to it: what is denied \
         is somebody else's work, so say what is to be done there and hand it back. Never work \
         around a denial.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(client: Client) -> Vec<(String, String)> {
        let pieces = pieces(client, &Rules::default());
        let text = |piece: Piece| match piece.content {
            Content::File { text, .. } => (piece.path, text),
            other => panic!("{other:?}"),
        };
        pieces.into_iter().map(text).collect()
    }

    fn of(client: Client, role: &str) -> String {
        let end = format!("/baton-{role}.md");
        texts(client).into_iter().find(|(path, _)| path.ends_with(&end)).unwrap().1
    }

    #[test]
    fn forbidden_tools_are_absent() {
        let explore = of(Client::Claude, "explore");
        assert!(explore.starts_with("---\n# written by baton init"), "{explore}");
        assert!(explore.contains("\ntools: Read, Grep, Glob, WebFetch, WebSearch\n---\n"));
        assert!(of(Client::Claude, "verify").contains("tools: Read, Grep, Glob, Bash, Web"));
        assert!(of(Client::Claude, "code").contains("Edit, Write, NotebookEdit, Bash"));
        let review = of(Client::Opencode, "review");
        assert!(review.contains("  edit: deny\n  bash: allow\n"), "{review}");
        assert!(of(Client::Opencode, "explore").contains("  bash: deny\n"));
        assert_eq!(texts(Client::Claude).len(), 9);
        assert!(texts(Client::Codex).is_empty() && texts(Client::Gemini).is_empty());
    }

    #[test]
    fn somebodys_text_stays_one_quoted_line() {
        let about = "x\"\ntools: Bash\n---".to_owned();
        let role = Role { about, tools: vec![Tool::Read], ..Role::default() };
        let rules = Rules {
            named: [("a".to_owned(), role.clone()), ("../b".to_owned(), role)].into(),
            ..Rules::default()
        };
        let pieces = pieces(Client::Claude, &rules);
        assert_eq!(pieces.len(), 10, "a name that is no file's is left out");
        let Content::File { text, .. } = &pieces[0].content else { panic!("{:?}", pieces[0]) };
        assert_eq!(text.lines().filter(|line| line.starts_with("tools:")).count(), 1, "{text}");
    }
}

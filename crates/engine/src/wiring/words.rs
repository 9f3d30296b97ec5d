//! The texts that `init` writes for agents: the managed block, the starter of rules, the plugin for
//! opencode.
//!
//! Owns their wording. What agents read counts in their context, so the block has at most 25 lines.
//! Invariant: nothing here names a command that destroys or overrides.

/// For AGENTS.md, and for CLAUDE.md and GEMINI.md where they exist.
pub(super) const BLOCK: &str = "\
## Working here with Baton

Several agents and people work on this code at the same time. Baton (`baton`) keeps them apart.

- Edit as usual: your first edit of a file claims it. Nothing has to be asked before.
- If an edit or a command is denied, the answer says who holds the file, until when, and what you
  can do: take another task, wait (`baton claim FILE --wait 10m`), ask (`baton ask FILE --why …`)
  or suggest your change (`baton suggest`). Never work around a denial by another tool or a copy.
- `baton status` shows who holds what and what waits for a person.
- Work comes from the list: `baton task ready`, `baton task take`, and `baton task done` with what
  you checked. What you cannot finish: `baton handoff offer`, or `baton task park`.
- Commit with `baton commit -m 'why' FILE…` (exactly these files) and bring your branch in with
  `baton land`. Do not commit or push on the target branch, and do not stash, reset or clean:
  other agents' work lies in the same tree.
- The rules of this project: `baton rules show`. Read them before you begin.
";

/// `.baton/rules.md`, where there is none.
pub(super) const RULES: &str = "\
# Rules

For every agent and person who works here, whatever client they use. Change them as you like: what
is on the target branch counts, for every session from its next start. Each rule names what enforces
it; \"advice\" means that nothing does but you. `baton rules check` tells whether that is so.

1. **Verify before you say done.** Run the thing, look at what it printed, and name the check.
   Enforced by: `baton task done`, where `[done]` in baton.toml asks for checks; else advice.
2. **Report what is so.** Say also what you did not do, what failed and what you did not try.
   Enforced by: advice.
3. **No placeholders in production.** No stub, no sample value, no \"later\" in what ships.
   Enforced by: `baton deploy`, which refuses them; before that, and without `[deploy]`, advice.
4. **Load what is known before you act.** First the handoff of your task, decisions and lessons.
   Enforced by: the start hook, which shows them; reading them is advice.
5. **Claim before you change.** One writer for a file at a time.
   Enforced by: the edit, shell and git doors, which take the claim or deny the change.
6. **Be in sync before you deploy.** Ship only what contains everything that has landed.
   Enforced by: `baton deploy`, where `[deploy]` in baton.toml names a target; else advice.
7. **Carry work through interruptions.** Leave at any moment so that somebody else can go on.
   Enforced by: checkpoints at compaction and at the end of a session; the words in them are advice.
8. *(yours)*
9. *(yours)*
10. *(yours)*
";

/// opencode loads this, with the name of the program in its place.
pub(super) const OPENCODE_PLUGIN: &str = r#"
// Asks Baton before each tool and tells it what happened. Without Baton it does nothing.
import { spawn } from "node:child_process"

const BATON = @PROGRAM@
const LIMIT_MS = 5000

// What Baton answers to one event; nothing where it is missing, late or not understood.
function ask(event, folder) {
  return new Promise((resolve) => {
    let child
    try {
      child = spawn(BATON, ["hook", "opencode"], { cwd: folder, stdio: ["pipe", "pipe", "ignore"] })
    } catch {
      return resolve(undefined)
    }
    const timer = setTimeout(() => {
      child.kill()
      resolve(undefined)
    }, LIMIT_MS)
    let text = ""
    child.stdout.on("data", (piece) => (text += piece))
    child.on("error", () => {
      clearTimeout(timer)
      resolve(undefined)
    })
    child.on("close", () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(text))
      } catch {
        resolve(undefined)
      }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

export const Baton = async ({ client, directory, worktree }) => {
  const context = (answer) => answer?.context ?? answer?.additionalContext
  // Sessions seen here: the session that a subagent's belongs to, and what its start was answered.
  const seen = new Map()

  const parentOf = async (id, info) => {
    if (info) return info.parentID
    try {
      return (await client.session.get({ path: { id } }))?.data?.parentID
    } catch {
      return undefined
    }
  }
  const meet = (id, info) => {
    if (!seen.has(id)) {
      const met = parentOf(id, info).then(async (parent) => {
        if (parent) return { root: (await meet(parent)).root, agent: id, words: [] }
        const start = { hook_event_name: "session.created", sessionID: id, continues: !info }
        const answer = await ask({ ...start, cwd: directory, worktree }, directory)
        return { root: id, words: [context(answer)] }
      })
      seen.set(id, met)
    }
    return seen.get(id)
  }
  const tell = async (name, id, more) => {
    const { root, agent } = await meet(id)
    const who = { hook_event_name: name, sessionID: root, agent, cwd: directory, worktree }
    return ask({ ...who, ...more }, directory)
  }

  return {
    event: async ({ event }) => {
      const { info, sessionID = info?.id } = event.properties ?? {}
      if (event.type === "session.created") await meet(sessionID, info)
      if (event.type === "session.idle" || event.type === "session.deleted") {
        await tell(event.type, sessionID)
      }
    },
    "chat.message": async (input, output) => {
      const { agent, words } = await meet(input.sessionID)
      // A subagent's prompt is its parent's word, and news are for the parent.
      if (agent) return
      const news = context(await tell("chat.message", input.sessionID))
      const text = [...words.splice(0), news].filter(Boolean).join("\n\n")
      const first = output?.parts?.find((part) => part.type === "text")
      if (text && first) first.text = `${first.text}\n\n${text}`
    },
    "shell.env": async (input, output) => {
      if (!input.sessionID || !output?.env) return
      output.env.OPENCODE_SESSION_ID = (await meet(input.sessionID)).root
    },
    "tool.execute.before": async (input, output) => {
      const answer = await tell("tool.execute.before", input.sessionID, {
        callID: input.callID,
        tool_name: input.tool,
        tool_input: output.args,
      })
      if (answer?.decision === "deny") throw new Error(answer.reason || "denied by Baton")
    },
    "tool.execute.after": async (input, output) => {
      const answer = await tell("tool.execute.after", input.sessionID, {
        callID: input.callID,
        tool_name: input.tool,
        tool_input: input.args,
        exit: output?.metadata?.exit,
      })
      const text = context(answer)
      if (text && typeof output?.output === "string") output.output = `${output.output}\n\n${text}`
    },
    "experimental.session.compacting": async (input, output) => {
      const answer = await tell("session.compacting", input.sessionID)
      const text = context(answer)
      if (text && Array.isArray(output?.context)) output.context.push(text)
    },
    // The last word of this process: what its sessions hold waits a while for their return.
    dispose: async () => {
      const all = await Promise.all(seen.values())
      const roots = all.filter((one) => !one.agent).map((one) => one.root)
      await Promise.all(roots.map((root) => tell("dispose", root)))
    },
  }
}
"#;

/// aider has no hooks for edits and commits past git's; this makes it keep to git's and read the
/// rules.
pub(super) const AIDER: &str = "\
# aider passes over git's hooks unless told otherwise, and reads only what it is given.
git-commit-verify: true
read: [AGENTS.md]
";

/// What a Claude Code plugin's skill says.
pub(super) const SKILL: &str = "\
---
name: baton
description: Work beside other agents on one codebase with Baton. Use when an edit was denied, \
when choosing what to work on, and when committing, landing or handing work over.
---

";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_read_is_short() {
        // With the two marks and the stamp.
        assert!(BLOCK.lines().count() + 3 <= 25, "{}", BLOCK.lines().count());
        assert!(OPENCODE_PLUGIN.lines().count() < 150);
        for number in 1..=10 {
            assert!(RULES.contains(&format!("\n{number}. ")), "{number}");
        }
        let rules = baton_core::rules::parse(RULES);
        assert_eq!((rules.rules.len(), rules.free.as_slice()), (7, &[8, 9, 10][..]));
        for text in [BLOCK, RULES] {
            assert!(!text.contains("--force") && !text.contains("--remove"), "{text}");
        }
    }
}

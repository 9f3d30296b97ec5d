//! Stories about deploys: who may ship what, and what came of it.

use baton_core::claim::Holder;
use baton_core::claims::letting_go::Target;
use baton_core::context::{Context, Life};
use baton_core::deploy::{Deploy, End, Outcome, Rules, Shipped};
use baton_core::deploys::{self, Begun, Facts, Placeholder, Refused, Request};
use baton_core::event::Event;
use baton_core::gates::deciding::{self, Decide};
use baton_core::id::{ClaimId, GateId, Position, Token};
use baton_core::refusal::Refusal;
use baton_core::time::Span;
use baton_core::trust;
use baton_core::view::get;
use baton_core::zones::Policy;

use crate::world::{START, World, process, resources};

const OLD: &str = "1111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222";

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

pub(crate) fn rules() -> Rules {
    Rules {
        run: words("make ship"),
        verify: words("curl -f x"),
        commands: vec![words("wrangler deploy")],
        gate: true,
        paths: resources(["site/"]),
        placeholders: vec!["TODO".to_owned()],
        branch: Some("main".to_owned()),
        remote: Some("origin".to_owned()),
        timeout: Span::minutes(1),
    }
}

/// One event of each kind.
pub(crate) fn samples(by: &Holder) -> Vec<Event> {
    let id = Position { epoch: 1, number: 9 };
    let deploy = Deploy {
        deploy: id,
        target: "prod".to_owned(),
        commit: NEW.to_owned(),
        by: by.clone(),
        rollback: true,
        before: Some(OLD.to_owned()),
        gate: Some(GateId::numbered(2)),
        run: words("make ship"),
        verify: words("curl x"),
        claim: ClaimId("c1".to_owned()),
        claimed: true,
        process: Some(process("ann")),
        host: "here".to_owned(),
        folder: "/tmp/x".to_owned(),
        log: "/tmp/x.log".to_owned(),
        started_at: START,
        renewed_at: START,
        lease_until: START,
        shipped: None,
        end: None,
    };
    vec![
        Event::DeployStarted { deploy },
        Event::DeployRenewed { deploy: id, at: START, lease_until: START },
        Event::DeployShipped { deploy: id, shipped: Shipped { at: START, exit: 0 } },
        Event::DeployEnded {
            deploy: id,
            end: End { at: START, outcome: Outcome::Succeeded, verify: Some(0) },
        },
        Event::RolledBack {
            deploy: id,
            target: "prod".to_owned(),
            from: Some(OLD.to_owned()),
            to: NEW.to_owned(),
        },
    ]
}

struct Stage {
    world: World,
    rules: Rules,
}

impl Stage {
    fn new(rules: Rules) -> Self {
        let mut world = World::with(["ann", "bob"]);
        let mut policy = Policy { source_hash: "one".to_owned(), ..Policy::default() };
        policy.deploys.insert("prod".to_owned(), rules.clone());
        let person = world.person();
        world.decide(person, |view, context| trust::give(view, &policy, context)).unwrap();
        Self { world, rules }
    }

    fn plain() -> Self {
        Self::new(Rules { gate: false, ..rules() })
    }

    fn request(&self, commit: &str) -> Request {
        let live = deploys::live(&self.world.store, "prod").unwrap().0.map(|live| live.commit);
        Request {
            target: "prod".to_owned(),
            commit: commit.to_owned(),
            rollback: false,
            facts: Facts {
                rules: self.rules.clone(),
                landed: "origin/main".to_owned(),
                older: live.as_deref() == Some(NEW) && commit == OLD,
                live,
                ..Facts::default()
            },
            process: Some(process("ann")),
            host: "here".to_owned(),
            folder: String::new(),
            log: String::new(),
        }
    }

    fn begin(&mut self, who: &str, request: &Request) -> Result<Begun, Refusal> {
        let context = self.world.context(Some(who));
        self.world.decide(context, |view, context| deploys::begin(view, request, context))
    }

    fn start(&mut self, who: &str, commit: &str) -> Deploy {
        let request = self.request(commit);
        match self.begin(who, &request).unwrap() {
            Begun::Started { deploy, .. } => *deploy,
            other => panic!("{other:?}"),
        }
    }

    fn end(&mut self, who: &str, id: Token, run: u8, verify: Option<u8>) -> Outcome {
        let context = self.world.context(Some(who));
        self.world.decide(context, |view, at| deploys::shipped(view, id, run, at)).unwrap();
        let context = self.world.context(Some(who));
        let ended =
            self.world.decide(context, |view, at| deploys::finish(view, id, verify, at)).unwrap();
        ended.end.unwrap().outcome
    }

    fn refused(&mut self, who: &str, request: &Request) -> Refused {
        match self.begin(who, request) {
            Err(Refusal::Deploy(refused)) => *refused,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_outcome_follows_from_how_the_commands_ended() {
    let unverified = Rules { gate: false, verify: Vec::new(), ..rules() };
    for (rules, run, verify, expected) in [
        (Rules { gate: false, ..rules() }, 0, Some(0), Outcome::Succeeded),
        (Rules { gate: false, ..rules() }, 0, Some(1), Outcome::Failed),
        (Rules { gate: false, ..rules() }, 0, None, Outcome::Failed),
        (Rules { gate: false, ..rules() }, 1, None, Outcome::Failed),
        (Rules { gate: false, ..rules() }, 1, Some(0), Outcome::Failed),
        (unverified.clone(), 0, None, Outcome::Unverified),
        (unverified.clone(), 0, Some(0), Outcome::Unverified),
        (unverified, 2, None, Outcome::Failed),
    ] {
        let mut stage = Stage::new(rules);
        let deploy = stage.start("ann", NEW);
        assert_eq!(stage.end("ann", deploy.deploy, run, verify), expected, "{run} {verify:?}");
        // The target is free again, and what reached the surface is live whatever came of it.
        let live = deploys::live(&stage.world.store, "prod").unwrap().0;
        assert_eq!(live.is_some(), run == 0);
        stage.start("bob", NEW);
        stage.world.audit();
    }
}

#[test]
fn lesson_33_two_deploys_at_once_are_one_and_who_is_told() {
    let mut stage = Stage::plain();
    let first = stage.start("ann", NEW);
    let request = stage.request(NEW);
    for who in ["bob", "ann"] {
        match stage.refused(who, &request) {
            Refused::Running(running) => assert_eq!(running.by.name, "ann"),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(
        stage.world.claim("bob", ["@deploy/prod"]).refused(),
        Refusal::Held(held) if held.holder.name == "ann"
    ));
    // Another's deploy is nobody else's to end.
    let context = stage.world.context(Some("bob"));
    let ended = stage
        .world
        .decide(context, |view, context| deploys::finish(view, first.deploy, Some(0), context));
    assert!(matches!(ended, Err(Refusal::Deploy(_))), "{ended:?}");
    assert_eq!(stage.end("ann", first.deploy, 0, Some(0)), Outcome::Succeeded);
    stage.start("bob", NEW);
}

#[test]
fn lesson_33_what_lacks_landed_work_or_is_older_than_what_is_live_is_refused() {
    let mut stage = Stage::plain();
    let mut stale = stage.request(OLD);
    stale.facts.behind = 300;
    let said = stage.refused("ann", &stale);
    assert!(matches!(said, Refused::Behind { behind: 300, .. }), "{said:?}");
    let deploy = stage.start("ann", OLD);
    stage.end("ann", deploy.deploy, 0, Some(0));
    let deploy = stage.start("ann", NEW);
    // It failed to verify, and it is live all the same.
    stage.end("ann", deploy.deploy, 0, Some(1));
    let older = stage.request(OLD);
    assert!(matches!(stage.refused("bob", &older), Refused::Older { .. }));
    // The same again is no rollback.
    let again = stage.start("bob", NEW);
    stage.end("bob", again.deploy, 0, Some(0));
    let never =
        Request { rollback: true, ..stage.request("3333333333333333333333333333333333333333") };
    assert!(matches!(stage.refused("bob", &never), Refused::NeverLive { .. }));
    assert_eq!(deploys::before(&stage.world.store, "prod").unwrap(), OLD);
    let back = Request { rollback: true, ..stage.request(OLD) };
    let Begun::Started { deploy, .. } = stage.begin("bob", &back).unwrap() else { panic!() };
    stage.end("bob", deploy.deploy, 0, Some(0));
    let told = stage.world.journal.iter().any(|entry| entry.kind == "rolled_back");
    assert!(told, "a rollback is an event");
    assert!(deploys::before(&stage.world.store, "prod").is_err(), "nothing was before the first");
    let seen_before = Request { facts: Facts { live: None, ..back.facts.clone() }, ..back };
    assert!(matches!(stage.refused("bob", &seen_before), Refused::Moved { .. }));
    stage.world.audit();
}

#[test]
fn a_dead_deployer_leaves_unknown_and_never_success() {
    for (life, waited, free) in [
        (Some(Life::Dead), Span::ZERO, true),
        (Some(Life::Alive), Span::hours(5), false),
        (Some(Life::Unknown), Span::seconds(30), false),
        (None, Span::seconds(61), true),
    ] {
        let mut stage = Stage::plain();
        let deploy = stage.start("ann", NEW);
        stage.world.pass(waited);
        let looked = |stage: &mut Stage, who: Option<&str>| -> Context {
            let mut context = stage.world.context(who);
            context.observed.runners = life.map(|life| (deploy.deploy, life)).into_iter().collect();
            context.observed.complete = true;
            context
        };
        let context = looked(&mut stage, None);
        let settled =
            stage.world.decide(context, |view, at| deploys::settle(view, deploy.deploy, at));
        assert_eq!(settled.unwrap(), free, "{life:?}");
        let record: Deploy = get(&stage.world.store, &deploy.deploy.to_string()).unwrap().unwrap();
        assert_eq!(record.state(), if free { "unknown" } else { "running" });
        let request = stage.request(NEW);
        let context = looked(&mut stage, Some("bob"));
        let next = stage.world.decide(context, |view, at| deploys::begin(view, &request, at));
        assert_eq!(next.is_ok(), free, "{life:?}: {next:?}");
        // Whoever comes back late changes nothing.
        if free {
            let context = stage.world.context(Some("ann"));
            let late = stage
                .world
                .decide(context, |view, at| deploys::finish(view, deploy.deploy, Some(0), at));
            assert!(late.is_err(), "{late:?}");
        }
    }
}

#[test]
fn a_person_approves_the_very_commit() {
    let mut stage = Stage::new(rules());
    let request = stage.request(NEW);
    let Begun::Gated { gate, opened: true } = stage.begin("ann", &request).unwrap() else {
        panic!()
    };
    let again = stage.begin("bob", &request).unwrap();
    assert_eq!(again, Begun::Gated { gate: gate.clone(), opened: false });
    let decide = |stage: &mut Stage, gate: &GateId, approves: bool| {
        let request = Decide {
            gate: gate.to_string(),
            approves,
            why: "it looks right".to_owned(),
            option: None,
            commit: None,
        };
        let context = stage.world.person();
        stage.world.decide(context, |view, at| deciding::decide(view, &request, at)).unwrap();
    };
    decide(&mut stage, &gate, true);
    let other = stage.request(OLD);
    let Begun::Gated { gate: second, opened: true } = stage.begin("ann", &other).unwrap() else {
        panic!("an approval is for its commit alone")
    };
    let deploy = stage.start("ann", NEW);
    assert_eq!(deploy.gate, Some(gate));
    decide(&mut stage, &second, false);
    stage.end("ann", deploy.deploy, 1, None);
    assert!(matches!(stage.refused("ann", &other), Refused::Denied { .. }));
    stage.world.audit();
}

#[test]
fn nothing_untrusted_unfinished_or_unknown_ships() {
    let mut stage = Stage::plain();
    let place = Placeholder { path: "a".to_owned(), line: 3, word: "TODO".to_owned() };
    let mut request = stage.request(NEW);
    request.facts.placeholders.push(place);
    assert!(matches!(stage.refused("ann", &request), Refused::Placeholders { .. }));
    let elsewhere = Request { target: "moon".to_owned(), ..stage.request(NEW) };
    assert!(matches!(stage.refused("ann", &elsewhere), Refused::NoTarget { .. }));
    // The policy changes without a person who stands for its commands.
    let changed = Rules { run: words("make evil"), gate: false, ..rules() };
    let mut policy = Policy { source_hash: "two".to_owned(), ..Policy::default() };
    policy.deploys.insert("prod".to_owned(), changed.clone());
    let context = stage.world.context(None);
    stage
        .world
        .decide(context, |_, _| Ok((vec![Event::PolicySet { policy: policy.clone() }], ())))
        .unwrap();
    stage.rules = changed;
    let request = stage.request(NEW);
    let refused = stage.begin("ann", &request);
    assert!(
        matches!(&refused, Err(Refusal::Untrusted { commands }) if commands.len() == 1),
        "{refused:?}"
    );
}

#[test]
fn a_deployer_whose_claim_was_taken_away_must_stop() {
    let mut stage = Stage::plain();
    let deploy = stage.start("ann", NEW);
    let renew = |stage: &mut Stage| {
        let context = stage.world.context(Some("ann"));
        stage.world.decide(context, |view, at| deploys::renew(view, deploy.deploy, at))
    };
    renew(&mut stage).unwrap();
    stage.world.revoke(&Target::Resources(resources(["@deploy/prod"]))).unwrap();
    assert!(matches!(renew(&mut stage), Err(Refusal::Deploy(_))));
    assert_eq!(stage.end("ann", deploy.deploy, 143, None), Outcome::Failed);
}

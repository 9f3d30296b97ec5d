//! Makes up random stories for the model: who does what, and what time passes.

use baton_core::context::Life;
use baton_core::time::Span;
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use crate::naive;

pub(crate) const SESSIONS: &[(&str, &str)] =
    &[("ann", "t1"), ("bob", "t1"), ("cat", "t2"), ("dan", "t2")];
const CALLERS: &[&str] = &["ann", "ann/x", "ann/y", "bob", "cat", "dan"];

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Claim { who: &'static str, asked: Vec<&'static str>, terms: Terms },
    Look { who: &'static str },
    Release { who: &'static str, text: &'static str },
    ReleaseAll { who: &'static str },
    Renew { who: &'static str },
    Active { who: &'static str },
    Check { who: &'static str, text: &'static str, token: Option<usize> },
    Ask { who: &'static str, text: &'static str },
    Revoke { text: &'static str },
    RevokeAll { session: &'static str },
    Settle { claim: usize },
    Call { who: &'static str, call: &'static str, limit: Span },
    CallEnd { who: &'static str, call: &'static str },
    AgentStop { who: &'static str },
    Pass { millis: u64 },
    End { session: &'static str, grace: bool },
    Return { session: usize },
    Die { session: &'static str },
    Appear { session: &'static str, life: Life, dirty: Option<&'static str> },
    RaiseEpoch,
    FailOver,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) shared: bool,
    pub(crate) wide: bool,
    pub(crate) ttl: Span,
    pub(crate) wait: Option<Span>,
    pub(crate) priority: u8,
}

/// Only makes up stories; what must hold is said by the naive rules over the world.
#[derive(Debug)]
pub(crate) struct Story;

impl ReferenceStateMachine for Story {
    type State = ();
    type Transition = Act;

    fn init_state() -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn transitions((): &()) -> BoxedStrategy<Act> {
        let who = || prop::sample::select(CALLERS);
        let session = || (0..SESSIONS.len()).prop_map(|index| SESSIONS[index].0);
        let text = || (0..naive::TEXTS.len()).prop_map(|index| naive::TEXTS[index].0);
        let name = || prop::sample::select(naive::NAMES);
        let thing = || prop_oneof![4 => text(), 1 => name()];
        let call = || prop::sample::select(&["", "c1", "c2"][..]);
        let asked = prop::collection::vec(thing(), 1..4);
        let millis = [1, 500, 4_000, 9_000, 11_000, 31_000, 61_000, 400_000, 700_000];
        let life = prop::sample::select(&[Life::Alive, Life::Dead, Life::Unknown][..]);
        prop_oneof![
            30 => (who(), asked, terms())
                .prop_map(|(who, asked, terms)| Act::Claim { who, asked, terms }),
            12 => who().prop_map(|who| Act::Look { who }),
            6 => (who(), thing()).prop_map(|(who, text)| Act::Release { who, text }),
            2 => who().prop_map(|who| Act::ReleaseAll { who }),
            4 => who().prop_map(|who| Act::Renew { who }),
            4 => who().prop_map(|who| Act::Active { who }),
            8 => (who(), text(), prop::option::of(0_usize..8))
                .prop_map(|(who, text, token)| Act::Check { who, text, token }),
            2 => (who(), text()).prop_map(|(who, text)| Act::Ask { who, text }),
            1 => thing().prop_map(|text| Act::Revoke { text }),
            1 => session().prop_map(|session| Act::RevokeAll { session }),
            2 => (0_usize..8).prop_map(|claim| Act::Settle { claim }),
            3 => (who(), call(), prop::sample::select(vec![30, 600, 3_600]).prop_map(Span::seconds))
                .prop_map(|(who, call, limit)| Act::Call { who, call, limit }),
            3 => (who(), call()).prop_map(|(who, call)| Act::CallEnd { who, call }),
            2 => who().prop_map(|who| Act::AgentStop { who }),
            12 => prop::sample::select(millis.to_vec()).prop_map(|millis| Act::Pass { millis }),
            3 => (session(), any::<bool>())
                .prop_map(|(session, grace)| Act::End { session, grace }),
            4 => (0..SESSIONS.len()).prop_map(|session| Act::Return { session }),
            2 => session().prop_map(|session| Act::Die { session }),
            4 => (session(), life, prop::option::of(text()))
                .prop_map(|(session, life, dirty)| Act::Appear { session, life, dirty }),
            1 => Just(Act::RaiseEpoch),
            1 => Just(Act::FailOver),
        ]
        .boxed()
    }

    fn apply((): (), _: &Act) {}
}

fn terms() -> impl Strategy<Value = Terms> {
    let ttl = prop::sample::select(vec![10, 60, 600]).prop_map(Span::seconds);
    let wait = prop::option::of(prop::sample::select(vec![5, 60, 3_600]).prop_map(Span::seconds));
    let priority = prop_oneof![3 => Just(0), 1 => 0..4_u8];
    (prop::bool::weighted(0.3), any::<bool>(), ttl, wait, priority)
        .prop_map(|(shared, wide, ttl, wait, priority)| Terms { shared, wide, ttl, wait, priority })
}

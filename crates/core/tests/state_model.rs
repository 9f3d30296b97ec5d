//! Random writers of shared state against a naive model: versions, conditions, reads and drafts.
//!
//! The model keeps plain maps and says what every act must give; the journal must rebuild the
//! records afterwards.

use std::collections::BTreeMap;

use baton_core::refusal::Refusal;
use baton_core::state::{Change, Read, Refused, Request, Write};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::state::{key, positions_are_true};
use crate::world::World;

const WHO: [&str; 2] = ["ann", "bob"];
const KEYS: [&str; 3] = ["a", "a/b", "c"];

#[derive(Clone, Debug)]
enum Act {
    Write {
        who: usize,
        key: usize,
        how: u8,
        if_version: Option<u64>,
        read: Option<(usize, u64)>,
        draft: bool,
    },
    Publish {
        who: usize,
        only: Option<usize>,
    },
    Discard {
        who: usize,
    },
    Come {
        who: usize,
    },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let write = (
        0..WHO.len(),
        0..KEYS.len(),
        0..4_u8,
        proptest::option::weighted(0.3, 0..5_u64),
        proptest::option::weighted(0.3, (0..KEYS.len(), 0..5_u64)),
        any::<bool>(),
    )
        .prop_map(|(who, key, how, if_version, read, draft)| Act::Write {
            who,
            key,
            how,
            if_version,
            read,
            draft,
        });
    let publish = (0..WHO.len(), proptest::option::weighted(0.3, 0..KEYS.len()))
        .prop_map(|(who, only)| Act::Publish { who, only });
    let discard = (0..WHO.len()).prop_map(|who| Act::Discard { who });
    let come = (0..WHO.len()).prop_map(|who| Act::Come { who });
    let act = prop_oneof![12 => write, 3 => publish, 1 => discard, 1 => come];
    proptest::collection::vec(act, 1..50)
}

#[derive(Clone, Debug)]
struct Draft {
    based_on: u64,
    value: Option<Json>,
    reads: BTreeMap<usize, u64>,
}

#[derive(Debug, Default)]
struct Model {
    values: BTreeMap<usize, (u64, Option<Json>)>,
    drafts: BTreeMap<(usize, usize), Draft>,
}

/// What must come of an act.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Stale,
    Refused,
}

impl Model {
    fn version(&self, key: usize) -> u64 {
        self.values.get(&key).map_or(0, |(version, _)| *version)
    }

    fn value(&self, key: usize) -> Option<Json> {
        self.values.get(&key).and_then(|(_, value)| value.clone())
    }

    fn holds(&self, key: usize, version: u64) -> bool {
        self.version(key) == version || version == 0 && self.value(key).is_none()
    }

    fn put(&mut self, key: usize, value: Option<Json>) {
        let version = self.version(key) + 1;
        self.values.insert(key, (version, value));
    }

    fn act(&mut self, act: &Act, number: usize) -> Outcome {
        match act {
            Act::Write { who, key, how, if_version, read, draft } => {
                let stale_read = read.is_some_and(|(key, version)| !self.holds(key, version));
                if stale_read || if_version.is_some_and(|version| !self.holds(*key, version)) {
                    return Outcome::Stale;
                }
                let earlier = self.drafts.get(&(*who, *key)).filter(|_| *draft).cloned();
                let there = match &earlier {
                    Some(draft) => draft.value.clone(),
                    None => self.value(*key),
                };
                let Some(after) = applied(there, *how, number) else {
                    return Outcome::Refused;
                };
                if !draft {
                    self.put(*key, after);
                    return Outcome::Done;
                }
                if after.is_none() && self.value(*key).is_none() {
                    self.drafts.remove(&(*who, *key));
                    return Outcome::Done;
                }
                let mut new = earlier.unwrap_or_else(|| Draft {
                    based_on: self.version(*key),
                    value: None,
                    reads: BTreeMap::new(),
                });
                new.value = after;
                new.reads.extend(*read);
                self.drafts.insert((*who, *key), new);
                Outcome::Done
            }
            Act::Publish { who, only } => self.publish(*who, *only),
            Act::Discard { who } => {
                let before = self.drafts.len();
                self.drafts.retain(|(whose, _), _| whose != who);
                if before == self.drafts.len() { Outcome::Refused } else { Outcome::Done }
            }
            Act::Come { who } => {
                self.drafts.retain(|(whose, _), _| whose != who);
                Outcome::Done
            }
        }
    }

    fn publish(&mut self, who: usize, only: Option<usize>) -> Outcome {
        let meant =
            |(whose, key): &(usize, usize)| *whose == who && only.is_none_or(|only| only == *key);
        let drafts: Vec<((usize, usize), Draft)> = self
            .drafts
            .iter()
            .filter(|(place, _)| meant(place))
            .map(|(place, draft)| (*place, draft.clone()))
            .collect();
        if drafts.is_empty() {
            return Outcome::Refused;
        }
        let good = |((_, key), draft): &((usize, usize), Draft)| {
            self.holds(*key, draft.based_on)
                && draft.reads.iter().all(|(key, version)| self.holds(*key, *version))
        };
        if !drafts.iter().all(good) {
            return Outcome::Stale;
        }
        for (place, draft) in drafts {
            if draft.value.is_some() || self.value(place.1).is_some() || draft.based_on != 0 {
                self.put(place.1, draft.value);
            }
            self.drafts.remove(&place);
        }
        Outcome::Done
    }
}

/// The value after a change, `Some(None)` when it is gone, `None` when that is refused.
fn applied(there: Option<Json>, how: u8, number: usize) -> Option<Option<Json>> {
    match (how, there) {
        (0, _) => Some(Some(json!([number]))),
        (1, None) => Some(Some(json!([number]))),
        (1, Some(Json::Array(mut all))) => {
            all.push(json!(number));
            Some(Some(Json::Array(all)))
        }
        (1, Some(_)) => None,
        (2, Some(Json::Object(mut map))) => {
            map.insert("n".to_owned(), json!(number));
            Some(Some(Json::Object(map)))
        }
        (2, _) => Some(Some(json!({ "n": number }))),
        (_, None) => None,
        (_, Some(_)) => Some(None),
    }
}

fn change(how: u8, number: usize) -> Change {
    match how {
        0 => Change::Set { value: json!([number]) },
        1 => Change::Append { items: vec![json!(number)] },
        2 => Change::Merge { patch: json!({ "n": number }) },
        _ => Change::Delete,
    }
}

fn outcome<T>(answer: Result<T, Refusal>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Done,
        Err(Refusal::State(refused)) => match *refused {
            Refused::Stale { .. } => Outcome::Stale,
            _ => Outcome::Refused,
        },
        Err(other) => panic!("{other}"),
    }
}

fn does(world: &mut World, act: &Act, number: usize) -> Outcome {
    match act {
        Act::Write { who, key: at, how, if_version, read, draft } => {
            let settled =
                |(at, version): &(usize, u64)| Read { key: key(KEYS[*at]), version: *version };
            let request = Request {
                write: Write {
                    key: key(KEYS[*at]),
                    change: change(*how, number),
                    if_version: *if_version,
                },
                reads: read.iter().map(settled).collect(),
                draft: *draft,
            };
            outcome(world.writes(WHO[*who], &request))
        }
        Act::Publish { who, only } => {
            let keys: Vec<_> = only.iter().map(|at| key(KEYS[*at])).collect();
            outcome(world.publish(WHO[*who], &keys))
        }
        Act::Discard { who } => outcome(world.discard(WHO[*who], &[])),
        Act::Come { who } => {
            world.end(WHO[*who], None).unwrap();
            world.start(WHO[*who], "main");
            Outcome::Done
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_writers_see_what_the_model_says(acts in acts()) {
        let mut world = World::with(WHO);
        let mut model = Model::default();
        for (number, act) in acts.iter().enumerate() {
            prop_assert_eq!(does(&mut world, act, number), model.act(act, number), "{:?}", act);
            for (at, text) in KEYS.iter().enumerate() {
                let seen = world.got(None, text).ok().map(|got| (got.version, got.value));
                prop_assert_eq!(seen, model.value(at).map(|value| (model.version(at), value)));
                for (who, name) in WHO.iter().enumerate() {
                    let mine = match model.drafts.get(&(who, at)) {
                        Some(draft) => draft.value.clone(),
                        None => model.value(at),
                    };
                    prop_assert_eq!(world.got(Some(name), text).ok().map(|got| got.value), mine);
                }
            }
        }
        positions_are_true(&world);
        world.audit();
    }
}

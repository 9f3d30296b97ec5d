//! A world with tasks in it: who files, takes and ends what.

use baton_core::id::Token;
use baton_core::refusal::Refusal;
use baton_core::task::Task;
use baton_core::task::split::{Join, OnFailure};
use baton_core::task::tally::Tally;
use baton_core::tasks::Moved;
use baton_core::tasks::adding::{self, Added};
use baton_core::tasks::editing;
use baton_core::tasks::ending::{self, Block, Change, Class, Done, Fail, Park};
use baton_core::tasks::evidence::Facts;
use baton_core::tasks::refused::Refused;
use baton_core::tasks::splitting::{self, Divided, Part};
use baton_core::tasks::taking::{self, Answer, Taken};

use crate::world::{World, resources};

pub(crate) fn filing(title: &str) -> adding::Request {
    adding::Request { title: title.to_owned(), ..adding::Request::default() }
}

pub(crate) fn best() -> taking::Request {
    taking::Request { task: None, count: 1, also: false, claim: false, explain: false }
}

pub(crate) fn this(task: &str) -> taking::Request {
    taking::Request { task: Some(task.to_owned()), ..best() }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// The refusal's own kind, which every one of a task's must be.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> Refused {
    match answer {
        Err(Refusal::Task(refused)) => *refused,
        other => panic!("should be refused, but {other:?}"),
    }
}

/// A split into parts with these titles, of which all are needed.
pub(crate) fn dividing(task: &str, titles: &[&str]) -> splitting::Request {
    let part = |title: &&str| Part { title: (*title).to_owned(), ..Part::default() };
    splitting::Request {
        task: task.to_owned(),
        parts: titles.iter().map(part).collect(),
        sequence: false,
        join: Join::All,
        on_failure: OnFailure::Continue,
        then: None,
        interface: None,
        token: None,
    }
}

impl World {
    pub(crate) fn splits(
        &mut self,
        who: Option<&str>,
        request: &splitting::Request,
    ) -> Result<Divided, Refusal> {
        let context = self.context(who);
        self.decide(context, |view, context| splitting::split(view, request, context))
    }

    pub(crate) fn file(&mut self, request: &adding::Request) -> Result<Added, Refusal> {
        let context = self.context(None);
        self.decide(context, |view, context| adding::add(view, request, context))
    }

    /// Files a task and gives its id.
    pub(crate) fn add(&mut self, title: &str) -> String {
        self.file(&filing(title)).unwrap().task.0
    }

    pub(crate) fn add_after(&mut self, title: &str, after: &[&str]) -> String {
        self.file(&adding::Request { after: strings(after), ..filing(title) }).unwrap().task.0
    }

    pub(crate) fn add_on(&mut self, title: &str, paths: &[&str]) -> String {
        let paths = resources(paths.iter().copied());
        self.file(&adding::Request { paths, ..filing(title) }).unwrap().task.0
    }

    pub(crate) fn taking(
        &mut self,
        who: &str,
        request: &taking::Request,
    ) -> Result<Answer, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| taking::take(view, request, context))
    }

    pub(crate) fn takes(&mut self, who: &str) -> Option<Taken> {
        self.takes_as(who, &best())
    }

    #[track_caller]
    pub(crate) fn takes_as(&mut self, who: &str, request: &taking::Request) -> Option<Taken> {
        match self.taking(who, request) {
            Ok(Answer::Taken(taken)) => Some(*taken),
            Ok(Answer::Nothing(_)) => None,
            Err(refusal) => panic!("{who} should take something: {refusal:?}"),
        }
    }

    pub(crate) fn finishes(
        &mut self,
        who: &str,
        task: &str,
        token: Option<Token>,
    ) -> Result<Moved, Refusal> {
        let request = Done {
            task: task.to_owned(),
            report_done: "all".to_owned(),
            report_not_done: "nothing".to_owned(),
            result: None,
            facts: Facts::default(),
            token,
        };
        let context = self.context(Some(who));
        self.decide(context, |view, context| ending::done(view, &request, context))
    }

    pub(crate) fn fails(
        &mut self,
        who: &str,
        task: &str,
        class: Class,
        token: Option<Token>,
    ) -> Result<Moved, Refusal> {
        let (task, why) = (task.to_owned(), "it broke".to_owned());
        let request = Fail { task, why, class, token };
        let context = self.context(Some(who));
        self.decide(context, |view, context| ending::fail(view, &request, context))
    }

    pub(crate) fn parks(&mut self, who: &str, task: &str) -> Result<Moved, Refusal> {
        let (task, next) = (task.to_owned(), "go on here".to_owned());
        let request = Park { task, next, back_in: None, token: None };
        let context = self.context(Some(who));
        self.decide(context, |view, context| ending::park(view, &request, context))
    }

    pub(crate) fn blocks(&mut self, who: &str, task: &str, on: &str) -> Result<Moved, Refusal> {
        let request = Block { task: task.to_owned(), on: on.to_owned(), token: None };
        let context = self.context(Some(who));
        self.decide(context, |view, context| ending::block(view, &request, context))
    }

    pub(crate) fn cancels(&mut self, who: Option<&str>, task: &str) -> Result<Moved, Refusal> {
        let request = Change { task: task.to_owned(), why: None, token: None };
        let context = self.context(who);
        self.decide(context, |view, context| ending::cancel(view, &request, context))
    }

    pub(crate) fn reopens(&mut self, who: Option<&str>, task: &str) -> Result<Moved, Refusal> {
        let request = Change { task: task.to_owned(), why: None, token: None };
        let mut context = self.context(who);
        context.actor.person = who.is_none();
        self.decide(context, |view, context| ending::reopen(view, &request, context))
    }

    pub(crate) fn updates(
        &mut self,
        who: Option<&str>,
        task: &str,
        edit: editing::Edit,
        after: &[&str],
    ) -> Result<Moved, Refusal> {
        let (task, after) = (task.to_owned(), strings(after));
        let request = editing::Request { task, edit, after, token: None };
        let context = self.context(who);
        self.decide(context, |view, context| editing::update(view, &request, context))
    }

    #[track_caller]
    pub(crate) fn task(&self, id: &str) -> Task {
        let found = self.records::<Task>().into_iter().find(|task| task.task.0 == id);
        found.unwrap_or_else(|| panic!("no task {id}"))
    }

    pub(crate) fn state(&self, id: &str) -> &'static str {
        self.task(id).state().name()
    }

    pub(crate) fn tally(&self) -> Tally {
        self.records().pop().unwrap_or_default()
    }
}

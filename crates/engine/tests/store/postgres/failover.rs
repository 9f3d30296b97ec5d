//! Another server, or the same one in another life.

use super::*;

#[test]
fn a_promotion_or_a_copy_raises_the_epoch_once() {
    for (change, because, steps) in [
        ("timeline = timeline - 1", "promoted", 1),
        ("timeline = timeline - 3", "promoted", 3),
        ("server = 'elsewhere'", "another server", 1),
    ] {
        let scratch = Scratch::new();
        let mut store = scratch.open();
        write(&mut store, &session("a", "amber")).unwrap();
        assert_eq!(state(&mut store).failed_over_at, None);
        scratch.sql(&format!("update baton.workspaces set {change}"));
        let looked = state(&mut store);
        assert_eq!(looked.epoch, 1 + steps, "{change}");
        assert!(looked.raised_because.unwrap().contains(because), "{change}");
        let decided = write(&mut store, &session("b", "birch")).unwrap();
        assert_eq!((decided.epoch, decided.failed_over_at), (1 + steps, Some(decided.now)));
        let after = state(&mut store);
        assert_eq!((after.epoch, after.raised_because), (1 + steps, None));
        assert_eq!(after.head.position, Position { epoch: 1 + steps, number: 3 });
        assert_eq!(after.failed_over_at, decided.failed_over_at);
    }
}

#[test]
fn a_commit_that_hides_a_failover_is_refused() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    scratch.sql("update baton.workspaces set timeline = timeline - 1");
    let transaction = store.begin(PATIENCE).unwrap();
    let commit = Commit { entries: &[], changes: &[], durability: Durability::Process };
    assert!(matches!(transaction.commit(&commit), Err(Error::Backend { .. })));
    assert_eq!(state(&mut store).epoch, 2);
}

#[test]
fn the_clock_never_goes_below_the_head() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    scratch.sql("update baton.workspaces set head_at = 99999999999999");
    assert_eq!(state(&mut store).now, Moment(99_999_999_999_999));
}

/// The real thing: a standby is refused, and once promoted its epoch is above the lost primary's.
#[test]
fn s05_a_promoted_standby_goes_on_in_a_higher_epoch() {
    let scratch = std::env::temp_dir();
    let primary = Cluster::start(&scratch).unwrap();
    let mut server = Postgres::connect(&primary.address("postgres")).unwrap();
    server.create_workspace(ID, None, None).unwrap();
    let mut store = server.open_workspace(ID).unwrap();
    write(&mut store, &session("a", "amber")).unwrap();
    let standby = primary.standby(&scratch).unwrap();
    let before = state(&mut store);
    let refused = Postgres::connect(&standby.address("postgres")).unwrap_err();
    assert!(refused.to_string().contains("standby"), "{refused}");
    primary.stop();
    standby.promote().unwrap();
    let server = Postgres::connect(&standby.address("postgres")).unwrap();
    let mut store = server.open_workspace(ID).unwrap();
    let promoted = write(&mut store, &session("b", "birch")).unwrap();
    assert_eq!(promoted.head, before.head);
    assert_eq!(promoted.epoch, 2);
    assert_eq!(promoted.failed_over_at, Some(promoted.now));
    assert!(promoted.raised_because.unwrap().contains("timeline 1 to 2"));
}

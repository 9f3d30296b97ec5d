//! stub
//! stub
pub const HELP: &str = "";
pub fn run(_: &[String]) -> Result<bool, crate::failure::Failure> {
    Ok(true)
}
pub fn keep_open(_: &[String]) -> Result<(), crate::failure::Failure> {
    Ok(())
}
